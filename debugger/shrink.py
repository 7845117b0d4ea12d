"""Shrinks a scenario that breaks a promise to what is needed to break it.

Faults, clients, expectations and network settings are left out, several at once first, then one by
one; each attempt is a whole run from the same seed.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..protocol.errors import FakeKafkaError, UsageError
from ..scenarios.file import parse_scenario, scenario_values
from ..scenarios.run import ScenarioRun
from .writing import scenario_text

Values = dict[str, Any]
_SMALLER = {"consumers": 0, "producers": 1, "times": None, "every_ms": None}
"""Keys of a workload or a fault, and the values they are reduced to; None removes the key."""


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The result of shrinking a scenario."""

    text: str
    problem: str
    """The promise that the shrunk scenario still breaks."""
    runs: int
    dropped: tuple[str, ...]
    """Descriptions of the parts that were left out, in order."""


def shrink(
    text: str,
    parameters: dict[str, Any] | None = None,
    seed: int = 0,
    tell: Callable[[str], object] = lambda text: None,
) -> Shrunk:
    """Leave out all parts that are not needed to break the first broken promise.

    Raises ``UsageError`` for a run that breaks no promise, and for a story.
    """
    values = scenario_values(text, "<scenario>", parameters)
    if "story" in values:
        raise UsageError("a story is an ordered script; only scenarios with faults can be shrunk")
    for name in ("faults", "workload", "expect"):
        if isinstance(values.get(name), dict):
            values[name] = [values[name]]
    values["seed"] = seed
    problems = _problems(values)
    if not problems:
        raise UsageError("this run breaks no promise, so there is nothing to keep")
    search = _Search(values, problems[0], tell)
    while search.pass_once():
        pass
    return Shrunk(scenario_text(search.values), search.problem, search.runs, tuple(search.dropped))


def _problems(values: Values) -> list[str]:
    """Return the promises that a run breaks; a failure of the emulation counts, too."""
    try:
        spec = parse_scenario(scenario_text(values), "<scenario>")
        return ScenarioRun(spec).run().problems
    except FakeKafkaError:
        return []  # the values are not a scenario any more
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]


def _kind(problem: str) -> str:
    """Return a problem without its time, its numbers and its records."""
    return re.sub(r"\d+(\.\d+)?", "#", re.sub(r"^at [\d.]+ ms: ", "", problem)).partition(": b'")[0]


class _Search:
    def __init__(self, values: Values, problem: str, tell: Callable[[str], object]) -> None:
        self.values = values
        self.problem = problem
        self.runs = 1
        self.dropped: list[str] = []
        self._kind = _kind(problem)
        self._tell = tell

    def pass_once(self) -> bool:
        """Try to leave out or reduce each part; return True if one attempt succeeded."""
        before = len(self.dropped)
        for name in ("faults", "workload", "expect"):
            self._drop_entries(name)
        for reduce, about in list(_reductions(self.values)):
            # From the values as they are by now: what was left out before stays out.
            changed = reduce(self.values)
            if changed != self.values:
                self._keep_if_broken(changed, about)
        return len(self.dropped) > before

    def _drop_entries(self, name: str) -> None:
        """Leave out entries of a list: halves first, then quarters, then one by one."""
        size = max(len(self.values.get(name, ())) // 2, 1)
        while size >= 1:
            place = 0
            while place < len(self.values.get(name, ())):
                entries = self.values[name]
                attempted = entries[place : place + size]
                changed = {**self.values, name: entries[:place] + entries[place + size :]}
                if not changed[name]:
                    del changed[name]
                about = f"{name}: " + ", ".join(_described(entry) for entry in attempted)
                if not self._keep_if_broken(changed, about):
                    place += size
            size //= 2

    def _keep_if_broken(self, changed: Values, about: str) -> bool:
        self.runs += 1
        found = [problem for problem in _problems(changed) if _kind(problem) == self._kind]
        if not found:
            return False
        self.values, self.problem = changed, found[0]
        self.dropped.append(about)
        self._tell(about)
        return True


def _described(entry: Values) -> str:
    words = [str(entry[key]) for key in ("action", "name", "topic", "that") if key in entry]
    words += [f"{key}={entry[key]}" for key in ("broker", "machine", "at_ms") if key in entry]
    return " ".join(words) or "one"


def _reductions(values: Values) -> Iterator[tuple[Callable[[Values], Values], str]]:
    """Yield a reduction and its description for each setting of the network or the costs, and for
    each key of a workload or a fault that can be reduced."""
    for name in ("network", "costs"):
        if name in values:
            yield partial(_without, name), name
    for name in ("workload", "faults"):
        for place, entry in enumerate(values.get(name, ())):
            for key, less in _SMALLER.items():
                if key in entry and entry[key] != less:
                    yield partial(_reduced, name, place, key), f"{key} of {_described(entry)}"


def _without(name: str, values: Values) -> Values:
    return {key: value for key, value in values.items() if key != name}


def _reduced(name: str, place: int, key: str, values: Values) -> Values:
    changed = copy.deepcopy(values)
    entry = changed[name][place]
    if _SMALLER[key] is None:  # repetitions need both keys
        entry.pop("times", None)
        entry.pop("every_ms", None)
    else:
        entry[key] = _SMALLER[key]
    return changed
