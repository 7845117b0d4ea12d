"""Nine questions about leader election, each answered by a simulation (``fakekafka questions``).

``answer`` simulates a question for each emulated version in virtual time, with a fixed seed, and
collects the findings: states observed in the runs, and a conclusion drawn from these states alone.
Findings that versions share are listed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...protocol.errors import UsageError
from ...protocol.versions import JUDGED_VERSIONS, behaviour
from .clients import clients_during_an_election, unavailability
from .moves import return_of_the_leader, two_strategies_of_a_shutdown
from .offline import leaving_the_isr, outsider_after_all_offline, start_one_by_one
from .probe import AnswerFunction, Finding, sentence
from .states import leader_of_a_new_topic, partition_state_machine

QUESTIONS: Mapping[int, tuple[str, AnswerFunction]] = {
    1: ("What is the partition state machine?", partition_state_machine),
    2: ("How is the leader of a new topic chosen?", leader_of_a_new_topic),
    3: (
        "All replicas are offline and one that was not in the ISR starts: does it become leader?",
        outsider_after_all_offline,
    ),
    4: (
        "All replicas are offline and start one by one: who becomes leader, the first to start?",
        start_one_by_one,
    ),
    5: (
        "The leader's broker went down and comes back: does it get leadership back?",
        return_of_the_leader,
    ),
    6: (
        "What do producers and consumers do at the moment of election?",
        clients_during_an_election,
    ),
    7: ("What does an election do to the partition meanwhile?", unavailability),
    8: ("When a broker crashes, do its replicas leave the ISR at once?", leaving_the_isr),
    9: (
        "Why does one broker's shutdown trigger both the controlled-shutdown and the offline "
        "strategy?",
        two_strategies_of_a_shutdown,
    ),
}
"""Each question, with the function that answers it for a version, by number."""


@dataclass(frozen=True)
class Answer:
    """A question with its findings."""

    number: int
    question: str
    findings: Mapping[str, Finding]
    """Findings by emulated version."""

    @property
    def holds(self) -> bool:
        """True if the facts support every claim, in every version."""
        return not any(finding.contradictions for finding in self.findings.values())

    @property
    def columns(self) -> tuple[str, ...]:
        return next(iter(self.findings.values())).columns

    @property
    def rows(self) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Distinct rows as (versions, cells), with the versions in which each occurs."""
        return _merge({version: found.rows for version, found in self.findings.items()})

    @property
    def conclusions(self) -> list[tuple[tuple[str, ...], str]]:
        """Conclusions as (versions, text); the one shared by all versions comes first."""
        return self._sentences({v: found.clauses for v, found in self.findings.items()})

    @property
    def contradictions(self) -> list[tuple[tuple[str, ...], str]]:
        """Claims that the facts do not support, as (versions, claim)."""
        return _merge({v: found.contradictions for v, found in self.findings.items()})

    def _sentences(self, clauses: Mapping[str, Sequence[str]]) -> list[tuple[tuple[str, ...], str]]:
        by_versions: dict[tuple[str, ...], list[str]] = {}
        all_versions = tuple(self.findings)
        by_versions[all_versions] = []
        for versions, clause in _merge(clauses):
            by_versions.setdefault(versions, []).append(clause)
        return [(versions, sentence(texts)) for versions, texts in by_versions.items() if texts]

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as plain values, for JSON."""
        return {
            "number": self.number,
            "question": self.question,
            "holds": self.holds,
            "columns": list(self.columns),
            "versions": {
                version: {
                    "rows": [list(row) for row in finding.rows],
                    "conclusion": finding.conclusion,
                    "contradictions": finding.contradictions,
                    "facts": finding.facts,
                }
                for version, finding in self.findings.items()
            },
        }


def answer(number: int, versions: Iterable[str] = JUDGED_VERSIONS) -> Answer:
    """Answer a question for these versions.

    Raises ``UsageError`` for an unknown number or version.
    """
    if number not in QUESTIONS:
        raise UsageError(f"there is no question {number}; they are numbered 1 to {len(QUESTIONS)}")
    question, answer_function = QUESTIONS[number]
    requested = tuple(dict.fromkeys(versions))
    if not requested:
        raise UsageError("name at least one kafka_version")
    for version in requested:
        behaviour(version)
    return Answer(number, question, {version: answer_function(version) for version in requested})


def _merge(lists: Mapping[str, Sequence[Any]]) -> list[tuple[tuple[str, ...], Any]]:
    """Return the distinct entries with the versions in which they occur, in order of appearance.

    The lists are merged position by position, so that variants of an entry stay together.
    """
    versions_of: dict[Any, list[str]] = {}
    longest = max(len(entries) for entries in lists.values())
    for position in range(longest):
        for version, entries in lists.items():
            if position < len(entries):
                versions_with_entry = versions_of.setdefault(entries[position], [])
                if version not in versions_with_entry:
                    versions_with_entry.append(version)
    return [
        (tuple(v for v in lists if v in versions_with_entry), e)
        for e, versions_with_entry in versions_of.items()
    ]
