"""Runs a history on a simulation and on Kafka, and compares the outcomes."""

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
        ("zookeeper.session.timeout.ms", "30000"),  # sessions are closed; none expires
        # Slow runs must not change the outcome: no slow follower leaves an ISR, and requests to a
        # frozen controller do not time out.
        ("replica.lag.time.max.ms", "60000"),
        ("controller.socket.timeout.ms", "600000"),
        ("auto.create.topics.enable", "false"),
        # A killed broker restarts with its last checkpoint of the high watermark, which does not
        # advance while the ISR is too small (Partition.maybeIncrementLeaderHW since 3.7).
        ("replica.high.watermark.checkpoint.interval.ms", "100"),
        # Followers learn the high watermark quickly.
        ("replica.fetch.wait.max.ms", "100"),
        # A silent member or producer times out within the same step.
        ("group.min.session.timeout.ms", "500"),
        ("transaction.abort.timed.out.transaction.cleanup.interval.ms", "300"),
    )
)


def of_kafka(kafka_version: str) -> dict[str, str]:
    """Return configuration that only Kafka's brokers get."""
    # The default of 128 MB is half of a broker's heap, and is allocated again by a new cleaner.
    found = {"log.cleaner.dedupe.buffer.size": "4194304"}
    if kafka_version == "0.10":
        # A follower waits for its pending fetch from a frozen leader before it handles the request
        # that names the next leader (KAFKA-6051, docs/reference/limitations.md).
        found["request.timeout.ms"] = "2000"
    return found


class Verdict(NamedTuple):
    """The outcome of a history."""

    number: int
    """Number of the step at which the sides differ; -1 if they do not."""
    differences: list[Difference]
    notes: list[str]
    """Reasons why the run cannot be judged."""

    @property
    def differs(self) -> bool:
        return bool(self.differences) and not self.notes


def simulated(kafka_version: str, history: History) -> Steps:
    """Return the steps with their outcomes in a simulation."""
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
