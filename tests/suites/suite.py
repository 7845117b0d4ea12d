"""Suites, with what came of them, and what should have come of them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path

FOLDER = Path(__file__).parent


class Result(Enum):
    """The way a test of a suite ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A test of a suite, with the reason where it failed."""

    result: Result
    reason: str = ""
    is_repeated: bool = False
    """Whether it had failed before."""


Outcomes = Mapping[str, Outcome]


@dataclass(frozen=True, slots=True)
class Suite:
    """A client's tests as its TOML file tells them."""

    name: str
    title: str
    version: str
    minutes: float
    """The run is stopped after so long; tests that it has not reached count as failed."""
    tools: tuple[str, ...] = ()
    """Programs that the machine must have."""
    serve: tuple[str, ...] = ()
    """Arguments of ``fakekafka serve``."""
    user: str = ""
    """``NAME:PASSWORD`` of a user whom the cluster knows."""
    mechanism: str = ""
    """The mechanism of SASL by which the program has to come in, over TLS."""
    repository: str = ""
    """Where its tests are on GitHub, if they are in no package."""
    excluded: Mapping[str, str] = field(default_factory=dict)
    """Names of tests, with the wildcards of file names, to the reason why they cannot pass."""
    unsteady: Mapping[str, str] = field(default_factory=dict)
    """The same for tests that pass on some runs, for a reason of their own."""
    repeated: Mapping[str, str] = field(default_factory=dict)
    """The same for tests that are run again when they fail, and must pass then."""

    @classmethod
    def load(cls, name: str) -> Suite:
        table = tomllib.loads((FOLDER / f"{name}.toml").read_text())
        return cls(
            name,
            table["title"],
            table["version"],
            table["minutes"],
            tuple(table.get("tools", ())),
            (*table.get("serve", ()), *(("--user", user) if (user := table.get("user")) else ())),
            table.get("user", ""),
            table.get("mechanism", ""),
            table.get("repository", ""),
            table.get("excluded", {}),
            table.get("unsteady", {}),
            table.get("repeated", {}),
        )

    def must_fail(self, test: str) -> bool:
        return any(_names(pattern, test) for pattern in self.excluded)

    def may_fail(self, test: str) -> bool:
        return self.must_fail(test) or any(_names(pattern, test) for pattern in self.unsteady)

    def may_be_repeated(self, test: str) -> bool:
        return self.may_fail(test) or any(_names(pattern, test) for pattern in self.repeated)


def _names(pattern: str, test: str) -> bool:
    return test == pattern or fnmatchcase(test, pattern)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of a run about a suite."""

    suite: Suite
    passed: tuple[str, ...]
    skipped: tuple[str, ...]
    excluded: tuple[str, ...]
    """Excluded and unsteady tests that failed."""
    failures: Mapping[str, str]
    """Tests that must pass and did not, with the reason."""
    stale: tuple[str, ...]
    """Exclusions that hold no longer: the test passes, or the suite has none of that name."""
    repeated: tuple[str, ...] = ()
    """Tests that failed before they passed."""

    @classmethod
    def of(cls, suite: Suite, outcomes: Outcomes) -> Verdict:
        passed: list[str] = []
        skipped: list[str] = []
        excluded: list[str] = []
        stale: list[str] = []
        failures: dict[str, str] = {}
        for test, outcome in outcomes.items():
            if outcome.is_repeated and not suite.may_be_repeated(test):
                failures[test] = "it failed once, and its file gives no reason to run it again"
            elif outcome.result is Result.SKIPPED:
                skipped.append(test)
            elif outcome.result is Result.PASSED:
                (stale if suite.must_fail(test) else passed).append(test)
            elif suite.may_fail(test):
                excluded.append(test)
            else:
                failures[test] = outcome.reason
        for pattern in (*suite.excluded, *suite.unsteady, *suite.repeated):
            if not any(_names(pattern, test) for test in outcomes):
                stale.append(pattern)
        if not outcomes:
            failures["the suite"] = "it ran no test"
        repeated = tuple(test for test in passed if outcomes[test].is_repeated)
        return cls(
            suite, tuple(passed), tuple(skipped), tuple(excluded), failures, tuple(stale), repeated
        )

    @property
    def is_good(self) -> bool:
        return not self.failures and not self.stale

    def lines(self) -> list[str]:
        """Return the counts, then what is wrong."""
        found = [
            f"{self.suite.name:13}{len(self.passed):5} passed {len(self.failures):4} failed "
            f"{len(self.excluded):4} excluded {len(self.skipped):4} skipped"
        ]
        found += [f"  failed: {test}: {reason}" for test, reason in self.failures.items()]
        found += [f"  excluded for nothing: {test}" for test in self.stale]
        found += [f"  passed when it was run again: {test}" for test in self.repeated]
        return found
