"""Recordings of Kafka: one readable text file for each scenario and release.

A file begins with the release, the number of recordings and the date of the last. A step begins
with ``==``; its lines are the values that were observed. A look at the cluster has only the values
that changed since the look before; ``-`` stands for a value that is gone. A line ``or:`` has the
value of another recording of the same step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fakekafka.tests.fidelity.stage.observation import ABSENT

FOLDER = Path(__file__).with_name("recordings")
_STEP = "== "
_OTHER = "  or: "
_LOOK = "look: "
_TOLD = "told: "

Outcomes = tuple[str, ...]
"""The values recorded for one key; more than one where Kafka leaves the outcome to chance."""
Steps = Sequence[tuple[str, Mapping[str, str]]]
"""The steps of one run: labels, and values by key."""


class OtherSteps(Exception):
    """The steps of a run are not those of the earlier recordings."""


@dataclass
class Recording:
    """The recorded outcomes of a scenario on one release of Kafka."""

    release: str
    date: str = ""
    times: int = 0
    steps: list[tuple[str, dict[str, Outcomes]]] = field(default_factory=list)

    def add(self, run: Steps, date: str) -> None:
        """Add the outcomes of one more run."""
        if self.times and [label for label, _ in run] != [label for label, _ in self.steps]:
            raise OtherSteps
        if not self.times:
            self.steps = [(label, {k: (v,) for k, v in seen.items()}) for label, seen in run]
        else:
            for (_, known), (_, seen) in zip(self.steps, run, strict=True):
                for key in [*known, *(key for key in seen if key not in known)]:
                    outcomes = known.get(key, (ABSENT,))
                    value = seen.get(key, ABSENT)
                    known[key] = outcomes if value in outcomes else (*outcomes, value)
        self.times += 1
        self.date = date

    def text(self) -> str:
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        times = "once" if self.times == 1 else f"{self.times} times"
        yield f"Kafka {self.release}, recorded {times}, last on {self.date}"
        before: dict[str, Outcomes] = {}
        for label, seen in self.steps:
            yield ""
            yield _STEP + label
            if label.startswith(_LOOK):
                shown = {k: v for k, v in seen.items() if before.get(k) != v}
                shown |= {k: (ABSENT,) for k in before if k not in seen}
                before = {k: v for k, v in seen.items() if v != (ABSENT,)}
            else:
                shown = seen
            for key in sorted(shown, key=_order):
                first, *others = shown[key]
                yield f"{key}: {first}"
                for other in others:
                    yield _OTHER + other

    @classmethod
    def read(cls, text: str) -> Recording:
        head, *rest = text.splitlines()
        release, times, date = head.removeprefix("Kafka ").split(", ")
        count = times.removeprefix("recorded ").removesuffix(" times")
        recording = cls(
            release, date.removeprefix("last on "), 1 if count == "once" else int(count)
        )
        before: dict[str, Outcomes] = {}
        seen: dict[str, Outcomes] = {}
        key = ""
        for line in rest:
            if line.startswith(_STEP):
                label = line.removeprefix(_STEP)
                is_look = label.startswith(_LOOK)
                if recording.steps and recording.steps[-1][0].startswith(_LOOK):
                    before = _present(recording.steps[-1][1])
                seen = dict(before) if is_look else {}
                recording.steps.append((label, seen))
            elif line.startswith(_OTHER):
                seen[key] = (*seen[key], line.removeprefix(_OTHER))
            elif line:
                key, _, value = (
                    line.rpartition(": ") if line.startswith(_TOLD) else line.partition(": ")
                )
                seen[key] = (value,)
        for _, last in recording.steps:
            for gone in [k for k, v in last.items() if v == (ABSENT,)]:
                del last[gone]
        return recording


def _present(seen: Mapping[str, Outcomes]) -> dict[str, Outcomes]:
    return {key: outcomes for key, outcomes in seen.items() if outcomes != (ABSENT,)}


def _order(key: str) -> tuple[bool, str]:
    return key.startswith("told: "), key


def path(kafka_version: str, name: str) -> Path:
    return FOLDER / kafka_version / f"{name}.txt"


def load(kafka_version: str, name: str) -> Recording | None:
    """Return the recording of a scenario; None if there is none."""
    file = path(kafka_version, name)
    return Recording.read(file.read_text(encoding="utf-8")) if file.exists() else None


def save(kafka_version: str, name: str, recording: Recording) -> None:
    file = path(kafka_version, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(recording.text(), encoding="utf-8")
