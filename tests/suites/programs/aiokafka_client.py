"""Steps of aiokafka; prints ``ok NAME`` or ``failed NAME: reason`` for each."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import ProducerFenced, TopicAlreadyExistsError

LOGIN = json.loads(sys.argv[2])
SERVER: dict[str, Any] = {"bootstrap_servers": sys.argv[1]}
if LOGIN:
    SERVER |= {
        "security_protocol": "SASL_SSL",
        "ssl_context": ssl.create_default_context(cafile=LOGIN["ca"]),
        "sasl_mechanism": LOGIN["mechanism"],
        "sasl_plain_username": LOGIN["user"],
        "sasl_plain_password": LOGIN["password"],
    }
_TIMEOUT_S = 60.0
_names = iter(range(1000))


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.02)


async def until_committed(client: Any, partition: TopicPartition, offset: int) -> None:
    """A commit is answered before its markers are written, and aiokafka does not wait for them."""
    while await client.committed(partition) != offset:
        await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def administrator() -> AsyncGenerator[Any]:
    client = AIOKafkaAdminClient(**SERVER)
    await client.start()
    try:
        yield client
    finally:
        await client.close()


@contextlib.asynccontextmanager
async def producer(**options: Any) -> AsyncGenerator[Any]:
    async with AIOKafkaProducer(**SERVER, **options) as found:
        yield found


@contextlib.asynccontextmanager
async def consumer(*topics: str, **options: Any) -> AsyncGenerator[Any]:
    options = {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 200, **options}
    async with AIOKafkaConsumer(*topics, **SERVER, **options) as found:
        yield found


async def topic(partitions: int = 1) -> str:
    name = f"topic-{next(_names)}"
    async with administrator() as client:
        await client.create_topics([NewTopic(name, partitions, 3)])
    return name


async def write(name: str, count: int, partition: int = 0) -> None:
    """Return when the records are below the high watermark, which ``acks=1`` does not wait for."""
    async with producer(acks="all") as client:
        for at in range(count):
            await client.send(name, b"value-%d" % at, partition=partition)


async def read(client: Any, count: int) -> list[bytes]:
    return [(await client.getone()).value for _ in range(count)]


async def topics() -> None:
    name = await topic(3)
    async with administrator() as client:
        assert name in await client.list_topics()
        (described,) = await client.describe_topics([name])
        assert len(described["partitions"]) == 3
        answer = await client.create_topics([NewTopic(name, 1, 1)])
        assert answer.topic_errors[0][1] == TopicAlreadyExistsError.errno
        await client.create_partitions({name: NewPartitions(5)})
        assert len((await client.describe_cluster())["brokers"]) == 3
        await client.delete_topics([name])


async def configs() -> None:
    resource = ConfigResource(ConfigResourceType.TOPIC, await topic(), {"retention.ms": "1234"})
    async with administrator() as client:
        await client.alter_configs([resource])
        (answer,) = await client.describe_configs([resource])
        values = {entry[0]: entry[1] for entry in answer.resources[0][4]}
        assert values["retention.ms"] == "1234", values


async def deleted_records() -> None:
    name = await topic()
    await write(name, 10)
    partition = TopicPartition(name, 0)
    async with administrator() as client, consumer() as reader:
        from aiokafka.admin import RecordsToDelete

        await client.delete_records({partition: RecordsToDelete(before_offset=4)})
        assert (await reader.beginning_offsets([partition]))[partition] == 4
        assert (await reader.end_offsets([partition]))[partition] == 10


def compression(codec: str | None) -> Callable[[], Awaitable[None]]:
    async def step() -> None:
        name = await topic()
        async with producer(compression_type=codec) as client:
            sent = await client.send_and_wait(name, b"v", key=b"k", headers=[("h", b"1")])
            assert sent.offset == 0
        async with consumer(name) as client:
            record = await client.getone()
            assert (record.key, record.value, record.headers) == (b"k", b"v", (("h", b"1"),))

    return step


async def positions() -> None:
    name = await topic()
    await write(name, 10)
    partition = TopicPartition(name, 0)
    async with consumer(name) as client:
        await until(client.assignment)
        client.seek(partition, 7)
        assert await read(client, 3) == [b"value-7", b"value-8", b"value-9"]
        await client.seek_to_beginning(partition)
        client.pause(partition)
        assert not await client.getmany(timeout_ms=100)
        client.resume(partition)
        assert len(await read(client, 10)) == 10
        found = await client.offsets_for_times({partition: 0})
        assert found[partition].offset == 0
        assert client.highwater(partition) == 10


async def commits() -> None:
    name = await topic()
    await write(name, 5)
    partition = TopicPartition(name, 0)
    options: dict[str, Any] = {"group_id": f"group-{name}", "enable_auto_commit": False}
    async with consumer(name, **options) as client:
        await read(client, 5)
        await client.commit({partition: (3, "noted")})
        assert await client.committed(partition) == 3
    async with consumer(**options) as client:
        client.subscribe(pattern=f"^{name}$")
        assert await read(client, 2) == [b"value-3", b"value-4"]
    async with administrator() as client:
        groups = await client.list_consumer_groups()
        assert any(found[0] == options["group_id"] for found in groups)
        offsets = await client.list_consumer_group_offsets(options["group_id"])
        assert offsets[partition].offset == 3
        await client.describe_consumer_groups([options["group_id"]])


def members(**options: Any) -> Callable[[], Awaitable[None]]:
    async def step() -> None:
        name = await topic(6)
        options["group_id"] = f"group-{name}"

        def share(*clients: Any) -> Callable[[], bool]:
            def is_shared() -> bool:
                owned = [client.assignment() for client in clients]
                return all(owned) and len(set().union(*owned)) == sum(map(len, owned)) == 6

            return is_shared

        async with consumer(name, **options) as first:
            await until(share(first))
            async with consumer(name, **options) as second, consumer(name, **options) as third:
                await until(share(first, second, third))
            await until(share(first))

    return step


async def idempotence() -> None:
    name = await topic()
    async with producer(enable_idempotence=True) as client:
        for at in range(100):
            await client.send(name, b"%d" % at)
    async with consumer(name) as client:
        assert await read(client, 100) == [b"%d" % at for at in range(100)]


async def transactions() -> None:
    name = await topic()
    async with producer(transactional_id=f"id-{name}") as client:
        await client.begin_transaction()
        await client.send_and_wait(name, b"aborted")
        await client.abort_transaction()
        async with client.transaction():
            await client.send_and_wait(name, b"committed")
    async with consumer(name, isolation_level="read_committed") as client:
        assert await read(client, 1) == [b"committed"]


async def fencing() -> None:
    name = await topic()
    async with producer(transactional_id=f"id-{name}") as old:
        await old.begin_transaction()
        await old.send_and_wait(name, b"lost")
        async with producer(transactional_id=f"id-{name}") as young:
            try:
                await old.commit_transaction()
            except ProducerFenced:
                pass
            else:
                raise AssertionError("the older producer is not fenced")
            async with young.transaction():
                await young.send_and_wait(name, b"kept")
    async with consumer(name, isolation_level="read_committed") as client:
        assert await read(client, 1) == [b"kept"]


async def transactional_offsets() -> None:
    name = await topic()
    await write(name, 3)
    partition = TopicPartition(name, 0)
    group = f"group-{name}"
    async with consumer(name, group_id=group, enable_auto_commit=False) as client:
        await read(client, 3)
        async with producer(transactional_id=f"id-{name}") as writer:
            async with writer.transaction():
                await writer.send_offsets_to_transaction({partition: 3}, group)
            await until_committed(client, partition, 3)


STEPS: dict[str, Callable[[], Awaitable[None]]] = {
    "topics are created, described and deleted": topics,
    "configs are altered and described": configs,
    "records are deleted": deleted_records,
    **{
        f"produce and consume, compression {codec}": compression(codec)
        for codec in (None, "gzip", "snappy", "lz4", "zstd")
    },
    "seek, pause, resume and offsets for times": positions,
    "commit, resume and describe the group": commits,
    "members join and leave": members(),
    "members join and leave, sticky": members(
        partition_assignment_strategy=(StickyPartitionAssignor,)
    ),
    "an idempotent producer": idempotence,
    "transactions commit and abort": transactions,
    "a newer producer fences the older": fencing,
    "offsets in a transaction": transactional_offsets,
}


async def main() -> None:
    for name, step in STEPS.items():
        try:
            await asyncio.wait_for(step(), _TIMEOUT_S)
        except Exception as error:
            print(f"failed {name}: {error!r}".replace("\n", " "), flush=True)
        else:
            print(f"ok {name}", flush=True)
    print("end")


asyncio.run(main())
