"""Records the outcome of each step of a history, and compares it with the expected outcome."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

from fakekafka.exploration.step import Step
from fakekafka.tests.fidelity.comparison import Difference
from fakekafka.tests.fidelity.recording import Steps
from fakekafka.tests.fidelity.stage.normalisation import lines
from fakekafka.tests.fidelity.stage.observation import ABSENT
from fakekafka.tests.fidelity.stage.stage import Stage

READY_S = 15.0
_RUN = re.compile(r"-run\d+")


class Parted(Exception):
    """The run differs from what was expected, so later steps are not comparable."""

    def __init__(self, number: int, differences: list[Difference]) -> None:
        super().__init__(number, differences)
        self.number = number
        """Number of the step in the history."""
        self.differences = differences


class Account:
    """The outcomes of a run; raises ``Parted`` at the first difference from expected ones."""

    def __init__(self, stage: Stage, expected: Steps | None) -> None:
        self.stage = stage
        self.number = 0
        self.internal: list[str] = []
        """Topics of coordinators; they outlive a history, so their epochs are not recorded."""
        self._expected = expected
        self._label = ""

    def begin(self, number: int, step: Step[Any] | str) -> None:
        self.number = number
        self._label = step if isinstance(step, str) else f"{number + 1} {step}"

    # -- names ---------------------------------------------------------------------------------

    def own(self, name: str) -> str:
        """Return a group's or transactional id's name, made unique to this run on its side."""
        return f"{name}-run{self.stage.side.runs}"

    def is_own(self, name: str) -> bool:
        return name.endswith(self.own(""))

    def plain(self, tree: Any) -> Any:
        """Return a response as it is recorded, with the names that the steps use."""
        return _without_runs(self.stage.normalised(tree))

    def coordinator(self, topic: str) -> int:
        """Return the coordinator, the leader of an internal topic; -1 if the history did not create
        the topic."""
        return self.stage.leader(topic) if topic in self.internal else -1

    # -- what is written down ------------------------------------------------------------------

    def answer(self, tree: Any) -> None:
        """Record an answer."""
        self.stage.write(self._label, self.plain(tree))
        self._check()

    def look(self, *, hurry: bool = True) -> None:
        """Record the state of the cluster; with ``hurry``, as soon as it is as expected."""
        label = f"look: {self._label}"
        self.stage.side.expected = self._expect(label) if hurry else None
        self.stage.look(self._label)
        self._check()
        if self.internal:
            self.observe("coordinators", self._led)

    def observe(self, what: str, ask: Callable[[], Any]) -> None:
        """Record a value that settles: ask until it is as expected or changes no more."""
        stage = self.stage
        label = f"{self._label}: {what}"
        stage.side.expected = self._expect(label)
        stage.steps.append((label, stage.side.settle(lambda: lines(self.plain(ask())))))
        self._check()

    def ask_again(self, ask: Callable[[], Any], errors: Collection[str]) -> Any:
        """Ask until the answer has none of these errors, or is as expected."""
        told: Any = None
        expected = self._expect(self._label)

        def is_told() -> bool:
            nonlocal told
            told = ask()
            shown = self.plain(told)
            return lines(shown) == expected or not any(error in str(shown) for error in errors)

        self.stage.side.wait(is_told, READY_S)
        return told

    def _led(self) -> dict[str, str]:
        observer = self.stage.observer
        found = {}
        for topic in self.internal:
            state = observer.state(topic, 0)
            found[topic] = f"leader {state['leader']}, isr {state['isr']}" if state else ABSENT
        return found

    def _expect(self, label: str) -> dict[str, str] | None:
        at = len(self.stage.steps)
        if self._expected is None or at >= len(self._expected):
            return None
        expected_label, seen = self._expected[at]
        return dict(seen) if expected_label == label else None

    def _check(self) -> None:
        self.stage.side.expected = None
        if self._expected is None:
            return
        at = len(self.stage.steps) - 1
        label, seen = self.stage.steps[at]
        if at >= len(self._expected) or self._expected[at][0] != label:
            known = "nothing" if at >= len(self._expected) else self._expected[at][0]
            raise Parted(self.number, [Difference(label, "the step", ("comes",), known)])
        here = self._expected[at][1]
        found = [
            Difference(label, key, (seen.get(key, ABSENT),), here.get(key, ABSENT))
            for key in sorted({*seen, *here})
            if seen.get(key, ABSENT) != here.get(key, ABSENT)
        ]
        if found:
            raise Parted(self.number, found)


def _without_runs(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {_without_runs(key): _without_runs(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_without_runs(element) for element in tree]
    return _RUN.sub("", tree) if isinstance(tree, str) else tree
