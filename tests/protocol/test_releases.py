"""Declarations of flags: their values in each release, and the agreement of their sources."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from fakekafka.docs.flag_table import Flag, declared_flags
from fakekafka.protocol.errors import UsageError
from fakekafka.protocol.releases.behaviour import Behaviour
from fakekafka.protocol.releases.release import Release
from fakekafka.protocol.versions import KAFKA_VERSIONS, behaviour

FLAGS = declared_flags()


def _numbers(release: str) -> list[int]:
    return [int(part) for part in release.split(".")]


def _told(flag: Flag, release: str) -> Any:
    """Return the flag's value in a release according to the changes that the documents list."""
    past = [c.value for c in flag.changes if _numbers(c.release) <= _numbers(release)]
    return past[-1] if past else None


def test_the_documents_list_all_flags() -> None:
    assert [flag.name for flag in FLAGS] == [
        name for name in Behaviour.__slots__ if name != "kafka_version"
    ]


@pytest.mark.parametrize("version", KAFKA_VERSIONS)
def test_the_documented_changes_lead_to_the_values_of_the_flags(version: str) -> None:
    """The changes read from the source lead to the values that brokers use."""
    flags, exact_version = behaviour(version), Release(version).exact_version
    wrong = []
    for flag in FLAGS:
        value, told = getattr(flags, flag.name), _told(flag, exact_version)
        if told is None:  # the release is older than all changes of the flag
            first = flag.changes[0].value
            told = not first if isinstance(first, bool) else value
        if value != told:
            wrong.append(flag.name)
    assert wrong == []


def test_every_flag_has_a_meaning_and_each_change_a_source() -> None:
    assert [flag.name for flag in FLAGS if not flag.meaning.endswith(".")] == []
    assert [f.name for f in FLAGS if not all(change.sources for change in f.changes)] == []


def test_changes_of_a_flag_are_in_the_order_of_releases() -> None:
    wrong = [
        flag.name
        for flag in FLAGS
        for one, other in pairwise(flag.changes)
        if _numbers(one.release) >= _numbers(other.release)
    ]
    assert wrong == []


def test_flags_of_one_source_change_together() -> None:
    """A KIP or an issue came with one release, in which all of its flags change."""
    releases: dict[str, set[str]] = {}
    for flag in FLAGS:
        for change in flag.changes:
            for source in change.sources:
                releases.setdefault(source, set()).add(change.release)
    assert {source: found for source, found in releases.items() if len(found) > 1} == {}


def test_a_release_with_bug_fixes_counts_as_one() -> None:
    """1.1 stands for 1.1.1, which has the fixes of 1.0.2; 2.8 is 2.8.2, whose syncs time out."""
    assert Release("1.1").since("1.0.2")
    assert Release("2.8").since("2.8.1")
    assert Release("0.10").before("0.10.2")
    assert not Release("1.1").since("2.0.1")
    assert Release("2.8").steps(1, {"2.4": 2, "2.8": 3, "3.4": 4}) == 3


def test_flags_are_shared_unless_some_are_replaced() -> None:
    """Flags replaced for one test do not change those of the next."""
    assert behaviour("2.8") is behaviour("2.8")
    other = behaviour("2.8", truncation="leader_epoch", alter_isr=False)
    assert (other.truncation, other.alter_isr, other.kafka_version) == (
        "leader_epoch",
        False,
        "2.8",
    )
    assert (behaviour("2.8").truncation, behaviour("2.8").alter_isr) == ("fetch", True)


def test_a_flag_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="no flag 'alter_irs'; did you mean 'alter_isr'"):
        behaviour("2.8", alter_irs=True)
    with pytest.raises(AttributeError):
        behaviour("2.8").alter_irs = True  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "value",
    ["True", "since('2.1', 'KIP-1') if x else y", "steps(1, {'2.1': 2, '2.2': 3}, 'KIP-1')"],
)
def test_a_malformed_declaration_of_a_flag_is_refused(value: str) -> None:
    """An unreadable declaration is an error, because a page must not leave it out."""
    text = f"class A:\n    def __init__(self):\n        # -- one\n        self.flag = {value}\n"
    with pytest.raises(ValueError):  # noqa: PT011 (Python's own where a source is missing)
        declared_flags(text)
