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
        """The records that readers of committed records got, of the input and of the output."""
        self.sent: int = 0
        self.former: int = 0
        """Answers with positions that a former coordinator gave."""
        self.late: int = 0
        """Offsets that a producer commits though a marker of a later epoch ended its
        transaction."""
        self._epochs: dict[int, int] = {}  # producer id -> the latest epoch of a marker
        self._producer = simulation.producer(acks="all", max_in_flight=1)
        simulation.runtime.network.observe(self._look)

    def _look(self, delivery: Delivery) -> None:
        """Count positions that come from a broker which coordinates the group no longer, and those
        that are committed too late."""
        message = delivery.message
        if type(message) is OffsetFetchResponse and not message.error:
            number = bucket_of(java_string_hash(GROUP_ID), PARTITIONS)
            leader = self.leader(OFFSETS_TOPIC, number)
            if leader is None or delivery.sender.name != broker_name(leader):
                self.former += 1
        elif type(message) is WriteTxnMarkersRequest:
            for marker in message.markers:
                latest = self._epochs.get(marker.producer_id, -1)
                self._epochs[marker.producer_id] = max(latest, marker.producer_epoch)
        elif type(message) is TxnOffsetCommitRequest:
            self.late += message.producer_epoch < self._epochs.get(message.producer_id, -1)

    def feed(self, count: int) -> None:
        for _ in range(count):
            self._producer.produce(self.inputs[self.sent % PARTITIONS], b"%d" % self.sent)
            self.sent += 1

    def leaders(self, topic: str) -> list[int]:
        leaders = (self.leader(topic, number) for number in range(PARTITIONS))
        return [leader for leader in leaders if leader is not None]

    def differences(self) -> list[str]:
        """Return what differs between the input and what is read of the output."""
        found = self.found
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
    """So many records more of the input."""

    count: int

    def do(self, world: CopyWorld) -> bool:
        world.feed(self.count)
        return True


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
