"""The differences between a recording of Kafka and a run of this project."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fakekafka.tests.fidelity.recording import Outcomes, Recording, Steps
from fakekafka.tests.fidelity.stage.observation import ABSENT


class Difference(NamedTuple):
    """A value of a step that differs from the recording of Kafka."""

    step: str
    key: str
    kafka: Outcomes
    here: str

    def __str__(self) -> str:
        kafka = "\n           or ".join(self.kafka)
        return f"at {self.step!r}, {self.key}:\n  Kafka has {kafka}\n  here it is {self.here}"


def differences(recording: Recording, run: Steps) -> list[Difference]:
    """Return all differences in order, up to the first step that only one side has."""
    return list(_differences(recording, run))


def _differences(recording: Recording, run: Steps) -> Iterator[Difference]:
    for number, (label, known) in enumerate(recording.steps):
        if number >= len(run):
            yield Difference(label, "the step", ("is there",), "is missing")
            return
        own_label, seen = run[number]
        if own_label != label:
            yield Difference(label, "the step", ("comes",), f"is {own_label!r}")
            return
        for key in [*known, *(key for key in seen if key not in known)]:
            outcomes = known.get(key, (ABSENT,))
            here = seen.get(key, ABSENT)
            if here not in outcomes:
                yield Difference(label, key, outcomes, here)
    if len(run) > len(recording.steps):
        yield Difference(run[len(recording.steps)][0], "the step", ("does not come",), "comes")
