"""Runs the corpus on a side: a simulation, or a broker of Kafka, which is recorded."""

from __future__ import annotations

import datetime
import functools

from fakekafka.tests.fidelity import comparison, running
from fakekafka.tests.fidelity.comparison import Difference
from fakekafka.tests.fidelity.recording import Recording
from fakekafka.tests.fidelity.sides.kafka import KafkaSide
from fakekafka.tests.fidelity.sides.releases import release
from fakekafka.tests.fidelity.sides.side import Side
from fakekafka.tests.fidelity.sides.simulated import SimulatedSide
from fakekafka.tests.fidelity.stage.stage import Stage
from fakekafka.tests.fidelity.wire import answers, corpus

Answers = dict[str, list[tuple[str, dict[str, str]]]]


def play(side: Side) -> Answers:
    """Every answer by API, ordered as recordings are."""
    stage = Stage(side)
    running.prepare(stage, None)
    found = corpus.record(stage)
    return {
        api: sorted(steps, key=lambda step: (int(step[0].rpartition(" v")[2]), step[0]))
        for api, steps in found.items()
    }


@functools.cache
def simulated(kafka_version: str) -> Answers:
    """The answers of a simulation."""
    side = SimulatedSide(kafka_version, corpus.SHAPE)
    try:
        return play(side)
    finally:
        side.close()


def differences(kafka_version: str, api: str) -> list[Difference]:
    """The differences of a simulation's answers from those of Kafka."""
    known = answers.load(kafka_version, api)
    assert known is not None
    return comparison.differences(known, simulated(kafka_version)[api])


def record(kafka_version: str, *, again: bool) -> int:
    """Ask a broker of Kafka; gives the number of answers.

    What differs from the recordings that there are is one more outcome, unless they are to be made
    again.
    """
    side = KafkaSide(kafka_version, corpus.SHAPE)
    try:
        found = play(side)
    finally:
        side.close()
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    for api, steps in found.items():
        known = None if again else answers.load(kafka_version, api)
        recording = known or Recording(release(kafka_version).version)
        recording.add(steps, today)
        answers.save(kafka_version, api, recording)
    return sum(map(len, found.values()))
