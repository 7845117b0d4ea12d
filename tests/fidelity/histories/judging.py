"""Runs a history on a simulation and on Kafka, and makes one that differs as short as it can be."""

from __future__ import annotations

from typing import NamedTuple

from fakekafka.tests.fidelity.comparison import Difference
from fakekafka.tests.fidelity.histories import playing
from fakekafka.tests.fidelity.histories.account import Parted
from fakekafka.tests.fidelity.histories.verbs import History
from fakekafka.tests.fidelity.recording import Steps
from fakekafka.tests.fidelity.sides.side import ClusterShape, Side
from fakekafka.tests.fidelity.sides.simulated import SimulatedSide
from fakekafka.tests.fidelity.stage.stage import Stage

SHAPE = ClusterShape(
    config=(
        ("zookeeper.session.timeout.ms", "30000"),  # sessions are ended, none expires
        # What a busy machine may do within seconds it shall not do at all: no follower leaves an
        # ISR because it is slow, and who asks a controller that stands still waits on.
        ("replica.lag.time.max.ms", "60000"),
        ("controller.socket.timeout.ms", "600000"),
        ("auto.create.topics.enable", "false"),
        # A broker that is killed starts with the high watermark that it wrote down last: where the
        # ISR is too small it goes no further (Partition.maybeIncrementLeaderHW since 3.7).
        ("replica.high.watermark.checkpoint.interval.ms", "100"),
        # Followers learn the high watermark soon.
        ("replica.fetch.wait.max.ms", "100"),
        # Who falls silent is missed within the step in which that happens.
        ("group.min.session.timeout.ms", "500"),
        ("transaction.abort.timed.out.transaction.cleanup.interval.ms", "300"),
    )
)


def of_kafka(kafka_version: str) -> dict[str, str]:
    """Configuration that only Kafka's brokers get."""
    # Kafka's 128 MB are half of a broker's heap, and are taken once more when the cleaner starts.
    found = {"log.cleaner.dedupe.buffer.size": "4194304"}
    if kafka_version == "0.10":
        # A follower waits for the fetch that a frozen leader has before it obeys the next leader
        # and the controller that tells of it (KAFKA-6051, docs/reference/limitations.md).
        found["request.timeout.ms"] = "2000"
    return found


class Verdict(NamedTuple):
    """The outcome of a history."""

    number: int
    """Of the step at which the sides part; -1 where they do not."""
    differences: list[Difference]
    notes: list[str]
    """Why the run cannot be judged."""

    @property
    def differs(self) -> bool:
        return bool(self.differences) and not self.notes


def simulated(kafka_version: str, history: History) -> Steps:
    """The steps as a simulation shows them."""
    side = SimulatedSide(kafka_version, SHAPE)
    try:
        stage = Stage(side)
        playing.prepare(stage)
        playing.play(stage, history)
        for name, error in side.simulation.failures:
            stage.write(f"failure of {name}", repr(error))
        for note in stage.notes:
            stage.write("note", note)
        return stage.steps
    finally:
        side.close()


def judge(side: Side, history: History) -> Verdict:
    """Run a history on both sides."""
    expected = simulated(side.kafka_version, history)
    stage = Stage(side)
    playing.prepare(stage)
    try:
        playing.play(stage, history, expected)
    except Parted as parted:
        return Verdict(parted.number, parted.differences, stage.notes)
    if len(expected) > len(stage.steps):
        label, seen = expected[len(stage.steps)]
        return Verdict(len(history), [Difference(label, "the step", ("-",), str(seen))], [])
    return Verdict(-1, [], stage.notes)
