"""The world of an application that consumes, transforms and produces exactly once.

Records are copied from one topic to another while brokers die, including the coordinators of the
transactions and of the group. Now and then, another application takes over the transactional id. At
the end, readers of committed records must find every input record in the output, exactly once and
in order.

There is one known exception, which Kafka shares (docs/kafka/groups-and-transactions.md): a former
group coordinator that does not know yet that it was replaced answers with old positions, and an
application that resumes there copies the records committed since then again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from ...actors.clients.transformer import SimulatedTransformer
from ...actors.delivery import Delivery
from ...protocol.groups import OffsetFetchResponse
from ...protocol.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ...protocol.java_hashing import bucket_of, java_string_hash
from ...protocol.names import broker_name
from ...protocol.records.format import Record
from ...protocol.transactions import TxnOffsetCommitRequest, WriteTxnMarkersRequest
from ...protocol.values import TopicPartition
from ...testing.simulation import Simulation
from .. import cluster_steps as steps
from ..faults import one_of
from ..generator import Choices, Choose
from ..step import Step
from ..world import World

BROKERS = 4
PARTITIONS = 2
APPLICATIONS_MAX = 3
GROUP_ID = "transformers"


class CopyWorld(World):
    """A cluster, its applications, and the records that readers of committed records found."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation, alive_min=BROKERS - 2)
        self.inputs: list[TopicPartition] = [
            TopicPartition("in", number) for number in range(PARTITIONS)
        ]
        self.outputs: list[TopicPartition] = [
            TopicPartition("out", number) for number in range(PARTITIONS)
        ]
        self.transformers: list[SimulatedTransformer] = []
        self.committed_records: dict[TopicPartition, list[Record]] = {}
        """Records found by readers of committed records, in the input and in the output."""
        self.sent: int = 0
        self.former_coordinator_answers: int = 0
        """Number of answers with positions by a former coordinator."""
        self.late_offset_commits: int = 0
        """Number of offset commits by producers whose transaction a marker of a later epoch had
        already ended."""
        self._epochs: dict[int, int] = {}  # producer id -> the latest epoch of a marker
        self._producer = simulation.producer(acks="all", max_in_flight=1)
        simulation.runtime.network.observe(self._observe)

    def _observe(self, delivery: Delivery) -> None:
        """Count the answers of former coordinators, and offset commits that come too late."""
        message = delivery.message
        if type(message) is OffsetFetchResponse and not message.error:
            number = bucket_of(java_string_hash(GROUP_ID), PARTITIONS)
            leader = self.leader(OFFSETS_TOPIC, number)
            if leader is None or delivery.sender.name != broker_name(leader):
                self.former_coordinator_answers += 1
        elif type(message) is WriteTxnMarkersRequest:
            for marker in message.markers:
                latest = self._epochs.get(marker.producer_id, -1)
                self._epochs[marker.producer_id] = max(latest, marker.producer_epoch)
        elif type(message) is TxnOffsetCommitRequest:
            self.late_offset_commits += message.producer_epoch < self._epochs.get(
                message.producer_id, -1
            )

    def feed(self, count: int) -> None:
        for _ in range(count):
            self._producer.produce(self.inputs[self.sent % PARTITIONS], b"%d" % self.sent)
            self.sent += 1

    def leaders(self, topic: str) -> list[int]:
        leaders = (self.leader(topic, number) for number in range(PARTITIONS))
        return [leader for leader in leaders if leader is not None]

    def differences(self) -> list[str]:
        """Describe the differences between the input and the output that readers found."""
        found = self.committed_records
        expected: dict[TopicPartition, dict[int, list[bytes | None]]] = {}
        for number, where in enumerate(self.inputs):
            for record in found.get(where, ()):
                output = self.outputs[record.offset % PARTITIONS]
                values = expected.setdefault(output, {}).setdefault(number, [])
                values.append(record.value)
        stored = {record.value for where in self.inputs for record in found.get(where, ())}
        problems = []
        if len(stored) != self.sent:
            problems.append(f"{len(stored)} of {self.sent} are stored")
        for where in self.outputs:
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


class Feed(Step[CopyWorld]):
    """Produces further records of the input."""

    count: int

    def do(self, world: CopyWorld) -> bool:
        world.feed(self.count)
        return True


class StartApplication(Step[CopyWorld]):
    """Starts an application; its predecessor with the same transactional id becomes a zombie."""

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
    """Kill the leader of a partition of an internal topic or of the output topic."""
    leaders = world.leaders(rng.choice((TRANSACTIONS_TOPIC, OFFSETS_TOPIC, "out")))
    if leaders:
        yield steps.Kill(rng.choice(leaders))


def _stop(world: CopyWorld, rng: random.Random) -> Drawn:
    stoppable_brokers = world.stoppable_brokers()
    if stoppable_brokers:
        yield steps.Stop(rng.choice(stoppable_brokers))
        yield steps.Wait(2000)


def _take_over(world: CopyWorld, rng: random.Random) -> Drawn:
    if len(world.transformers) < APPLICATIONS_MAX:
        yield application(rng)


def _freeze(world: CopyWorld, rng: random.Random) -> Drawn:
    broker = rng.choice(world.alive())
    yield steps.Freeze(broker)
    yield steps.Wait(rng.choice((100, 2000, 9000)))
    yield steps.Thaw(broker)


def _after_feed(choose: Choose[CopyWorld]) -> Choose[CopyWorld]:
    """Return a choice that produces input records, and waits, before the given choice."""

    def feed_and_choose(world: CopyWorld, rng: random.Random) -> Drawn:
        yield Feed(rng.randint(5, 30))
        yield steps.Wait(rng.choice((5, 50, 300, 1500, 4000)))
        yield from choose(world, rng)

    return feed_and_choose


CHOICES: Choices = {
    "kill": (2, _after_feed(one_of(World.stoppable_brokers, steps.Kill))),
    "kill a leader": (2, _after_feed(_kill_leader)),
    "start": (2, _after_feed(one_of(World.down, steps.Start))),
    "stop": (1, _after_feed(_stop)),
    "take over": (1, _after_feed(_take_over)),
    "freeze": (1, _after_feed(_freeze)),
}
