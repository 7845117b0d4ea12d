"""An application that consumes, transforms and produces exactly once.

Brokers die while records are copied from one topic to another, those among them that coordinate the
transactions and the group; a second application takes the transactional id over now and then. At
the end readers of committed records have to find every record of the input in the output, once and
in its order.

One thing is excepted, because Kafka has it too (docs/kafka/groups-and-transactions.md): a broker
that does not know yet that it coordinates a group no longer answers with the positions it knows,
and who goes on from there copies again what was committed since.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ...actors.clients.transformer import SimulatedTransformer
from ...actors.delivery import Delivery
from ...protocol.data import READ_COMMITTED
from ...protocol.groups import OffsetFetchResponse
from ...protocol.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ...protocol.java_hashing import bucket_of, java_string_hash
from ...protocol.names import broker_name
from ...protocol.records.batch import RecordBatch
from ...protocol.records.format import Record
from ...protocol.values import TopicPartition
from ...testing.simulation import Simulation
from .. import cluster_steps as steps
from ..faults import one_of
from ..generator import Choices, Choose, Draws
from ..step import Step
from ..world import World
from .judge import Judge

BROKERS = 4
PARTITIONS = 2
APPLICATIONS_MAX = 3
GROUP_ID = "transformers"
HEALED_MS = 240_000
"""Virtual time that a healed cluster has to finish."""


class CopyWorld(World):
    """A cluster, the applications, and what readers of committed records got."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation, alive_min=BROKERS - 2)
        self.inputs: list[TopicPartition] = [
            TopicPartition("in", number) for number in range(PARTITIONS)
        ]
        self.outputs: list[TopicPartition] = [
            TopicPartition("out", number) for number in range(PARTITIONS)
        ]
        self.transformers: list[SimulatedTransformer] = []
        self.found: dict[TopicPartition, list[Record]] = {}
        """What readers of committed records got, of the input and of the output."""
        self.sent: int = 0
        self.former: int = 0
        """Answers with positions that a former coordinator gave."""
        self._producer = simulation.producer(acks="all", max_in_flight=1)
        simulation.runtime.network.observe(self._look)

    def _look(self, delivery: Delivery) -> None:
        """Count positions that come from a broker which coordinates the group no longer."""
        if type(delivery.message) is OffsetFetchResponse and not delivery.message.error:
            number = bucket_of(java_string_hash(GROUP_ID), PARTITIONS)
            leader = self.leader(OFFSETS_TOPIC, number)
            if leader is None or delivery.sender.name != broker_name(leader):
                self.former += 1

    def feed(self, count: int) -> None:
        for _ in range(count):
            self._producer.produce(self.inputs[self.sent % PARTITIONS], b"%d" % self.sent)
            self.sent += 1

    def leaders(self, topic: str) -> list[int]:
        leaders = (self.leader(topic, number) for number in range(PARTITIONS))
        return [leader for leader in leaders if leader is not None]


@dataclass(frozen=True)
class Feed(Step[CopyWorld]):
    """So many records more of the input."""

    count: int

    def do(self, world: CopyWorld) -> bool:
        world.feed(self.count)
        return True


@dataclass(frozen=True)
class StartApplication(Step[CopyWorld]):
    """An application starts; the one before it that has the id becomes a zombie."""

    transaction_timeout_ms: int
    delivery_timeout_ms: int
    request_timeout_ms: int

    def do(self, world: CopyWorld) -> bool:
        number = len(world.transformers) + 1
        transformer = world.simulation.transformer(
            "copy",
            world.inputs,
            world.outputs,
            f"application-{number}",
            group_id=GROUP_ID,
            returns_when_fenced=number == 1,
            transaction_timeout_ms=self.transaction_timeout_ms,
            delivery_timeout_ms=self.delivery_timeout_ms,
            request_timeout_ms=self.request_timeout_ms,
        )
        world.transformers.append(transformer)
        return True


Drawn = Iterator[Step[Any]]


def application(rng: random.Random) -> StartApplication:
    return StartApplication(
        rng.choice((5000, 60000)), rng.choice((3000, 120000)), rng.choice((1000, 30000))
    )


def _kill_leader(world: CopyWorld, rng: random.Random) -> Drawn:
    """Of a partition of the two internal topics, or of the output."""
    leaders = world.leaders(rng.choice((TRANSACTIONS_TOPIC, OFFSETS_TOPIC, "out")))
    if leaders:
        yield steps.Kill(rng.choice(leaders))


def _stop(world: CopyWorld, rng: random.Random) -> Drawn:
    mortal = world.mortal()
    if mortal:
        yield steps.Stop(rng.choice(mortal))
        yield steps.Wait(2000)


def _take_over(world: CopyWorld, rng: random.Random) -> Drawn:
    if len(world.transformers) < APPLICATIONS_MAX:
        yield application(rng)


def _freeze(world: CopyWorld, rng: random.Random) -> Drawn:
    broker = rng.choice(world.alive())
    yield steps.Freeze(broker)
    yield steps.Wait(rng.choice((100, 2000, 9000)))
    yield steps.Thaw(broker)


def _fed(choose: Choose[CopyWorld]) -> Choose[CopyWorld]:
    """Records come before whatever happens."""

    def fed(world: CopyWorld, rng: random.Random) -> Drawn:
        yield Feed(rng.randint(5, 30))
        yield steps.Wait(rng.choice((5, 50, 300, 1500, 4000)))
        yield from choose(world, rng)

    return fed


CHOICES: Choices = {
    "kill": (2, _fed(one_of(World.mortal, steps.Kill))),
    "kill a leader": (2, _fed(_kill_leader)),
    "start": (2, _fed(one_of(World.down, steps.Start))),
    "stop": (1, _fed(_stop)),
    "take over": (1, _fed(_take_over)),
    "freeze": (1, _fed(_freeze)),
}


class ExactlyOnce(Judge):
    """Every record of the input is in the output, once and in its order."""

    name = "exactly-once"
    draws: Draws = Draws(CHOICES, (6, 14))
    world: CopyWorld

    def __init__(self, kafka_version: str, seed: int, trace: bool = False) -> None:
        config = {
            "offsets.topic.num.partitions": 2,
            "transaction.state.log.num.partitions": 2,
            "default.replication.factor": 3,
            "min.insync.replicas": 2,
            "zookeeper.session.timeout.ms": 6000,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 2000,
        }
        simulation = Simulation(
            BROKERS,
            kafka_version=kafka_version,
            seed=seed,
            trace=trace,
            config=config,
            topics={"in": PARTITIONS, "out": PARTITIONS},
        )
        self.world = CopyWorld(simulation)
        application(random.Random(f"application {seed}")).do(self.world)

    def figures(self) -> dict[str, int]:
        world = self.world

        def total(of: Callable[[SimulatedTransformer], int]) -> int:
            return sum(map(of, world.transformers))

        return {
            "records": sum(len(world.found.get(where, ())) for where in world.outputs),
            "committed": total(lambda transformer: transformer.committed),
            "aborted": total(lambda transformer: transformer.aborted),
            "fenced": total(lambda transformer: transformer.fenced),
            "answers of former coordinators": world.former,
        }

    def end(self, patience_ms: int = HEALED_MS) -> list[str]:
        world, simulation = self.world, self.world.simulation
        reader = simulation.consumer(world.inputs + world.outputs, isolation_level=READ_COMMITTED)

        def read(where: TopicPartition, batch: RecordBatch, _position: int) -> None:
            world.found.setdefault(where, []).extend(batch.records())

        reader.on_batch = read
        for broker in sorted(world.paused):
            steps.Thaw(broker).do(world)
        end_ms = simulation.now_ms + patience_ms
        while simulation.now_ms < end_ms and self.differences():
            world.start_all()  # one may still be shutting down
            simulation.run_for(2000)
        problems = self.differences()
        if not problems:  # nothing may come twice later
            simulation.run_for(20_000)
            problems = self.differences()
        problems += [f"{name}: {error!r}" for name, error in simulation.failures]
        if world.former and all("records" in problem for problem in problems):
            return []
        return problems

    def differences(self) -> list[str]:
        """What differs between the input and what is read of the output."""
        world, found = self.world, self.world.found
        expected: dict[TopicPartition, dict[int, list[bytes | None]]] = {}
        for number, where in enumerate(world.inputs):
            for record in found.get(where, ()):
                output = world.outputs[record.offset % PARTITIONS]
                values = expected.setdefault(output, {}).setdefault(number, [])
                values.append(record.value)
        stored = {record.value for where in world.inputs for record in found.get(where, ())}
        problems = []
        if len(stored) != world.sent:
            problems.append(f"{len(stored)} of {world.sent} are stored")
        for where in world.outputs:
            values = [record.value for record in found.get(where, ())]
            of_inputs = expected.get(where, {})
            for number, wanted in of_inputs.items():
                members = set(wanted)
                got = [value for value in values if value in members]
                if got != wanted:
                    problems.append(
                        f"{where}, from input {number}: {len(got)} of {len(wanted)} records, "
                        f"{len(set(got))} different"
                    )
            if len(values) > sum(map(len, of_inputs.values())):
                problems.append(f"{where} has {len(values)} records, too many")
        return problems
