"""Runs the corpus of requests on a simulation, or on a broker of Kafka to record it."""

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
    """Return all answers by API, in the order of the recordings."""
    stage = Stage(side)
    running.prepare(stage, None)
    found = corpus.record(stage)
    return {
        api: sorted(steps, key=lambda step: (int(step[0].rpartition(" v")[2]), step[0]))
        for api, steps in found.items()
    }


@functools.cache
def simulated(kafka_version: str) -> Answers:
    """Return the answers of a simulation."""
    side = SimulatedSide(kafka_version, corpus.SHAPE)
    try:
        return play(side)
    finally:
        side.close()


def differences(kafka_version: str, api: str) -> list[Difference]:
    """Return the differences between the answers of a simulation and of Kafka."""
    known = answers.load(kafka_version, api)
    assert known is not None
    return comparison.differences(known, simulated(kafka_version)[api])


def record(kafka_version: str, *, again: bool) -> int:
    """Record the answers of a broker of Kafka, and return their number.

    Answers that differ from the existing recordings are added as outcomes; with ``again``, they
    replace the recordings.
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
