"""Members that name a protocol twice, or none, and the effect on their group by release."""

from __future__ import annotations

import pytest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.tests.support.group_rig import NONE, GroupRig, error_of

TWICE = (("range", b"m"), ("range", b"n"))
UNEXPECTED = ErrorCode.UNKNOWN_SERVER_ERROR
INCONSISTENT = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("kafka_version", ["2.8", "3.9"])
def test_a_first_member_with_a_protocol_twice_is_never_answered(kafka_version: str) -> None:
    """A first member that names a protocol twice is not answered: ``MemberMetadata.vote`` throws in
    a timer after the generation began, and the group hangs."""
    rig = GroupRig(kafka_version)
    assert rig.join("a", protocols=TWICE) is None
    rig.host.advance(60_000)
    assert "a" not in rig.answers
    assert (rig.state, rig.group.generation) == ("PreparingRebalance", 1)
    assert any("no protocol in common" in line for line in rig.lines)
    assert error_of(rig.join("b")) is INCONSISTENT


def test_a_group_that_hangs_loses_its_member_after_five_minutes() -> None:
    """KAFKA-7610: the hanging group loses its new member after five minutes, and still hangs."""
    rig = GroupRig("3.9")
    rig.join("a", protocols=TWICE)
    rig.host.advance(301_000)
    assert (list(rig.group.members), rig.state) == ([], "PreparingRebalance")


@pytest.mark.parametrize("kafka_version", ["2.8", "3.9"])
def test_a_failed_vote_is_answered_to_the_last_member_to_join(kafka_version: str) -> None:
    """If the vote throws in the request of the last member to join, ``KafkaApis`` answers that
    request with the failure."""
    rig = GroupRig(kafka_version)
    rig.join("a")
    rig.host.advance(0)
    rig.sync("a", {"a": b"all"})
    again = rig.join("a", protocols=TWICE)
    assert again is not None
    assert (again.error, again.member_id, again.generation) == (UNEXPECTED, "", -1)
    assert (rig.state, rig.group.generation) == ("PreparingRebalance", 2)


def test_a_member_that_got_the_failure_still_counts_as_joining() -> None:
    """A member that got the failure keeps its join callback, so that no heartbeat is due."""
    rig = GroupRig("3.9")
    rig.stable("a")
    assert error_of(rig.join("a", protocols=TWICE)) is UNEXPECTED
    rig.host.advance(60_000)
    assert list(rig.group.members) == [rig.ids["a"]]


def test_members_that_join_again_beside_one_with_a_protocol_twice_are_refused() -> None:
    """Two members mention the protocol three times, so that it does not seem common to both, and
    the member that rejoins is refused."""
    rig = GroupRig("3.9")
    rig.join("a")
    rig.host.advance(0)
    rig.sync("a", {"a": b"all"})
    assert rig.join("b", protocols=TWICE) is None
    assert error_of(rig.join("a")) is INCONSISTENT
    assert "b" not in rig.answers


@pytest.mark.parametrize("kafka_version", ["0.10", "1.1"])
def test_old_releases_count_a_protocol_once(kafka_version: str) -> None:
    """KAFKA-7142: old releases intersect sets of protocols; the first mention has the metadata that
    counts."""
    rig = GroupRig(kafka_version)
    rig.join("a", protocols=TWICE)
    rig.host.advance(0)
    answer = rig.answers["a"]
    assert (answer.error, answer.protocol) == (NONE, "range")
    assert [member.metadata for member in answer.members] == [b"m"]


@pytest.mark.parametrize(
    ("kafka_version", "error"), [("0.10", UNEXPECTED), ("1.1", INCONSISTENT), ("3.9", INCONSISTENT)]
)
def test_a_first_member_without_protocols(kafka_version: str, error: ErrorCode) -> None:
    """KAFKA-6005: before 1.0 a first member without protocols is accepted, and the vote fails at
    once."""
    rig = GroupRig(kafka_version)
    assert error_of(rig.join("a", protocols=())) is error


@pytest.mark.parametrize(("kafka_version", "error"), [("0.10", NONE), ("1.1", INCONSISTENT)])
def test_a_first_member_without_a_protocol_type(kafka_version: str, error: ErrorCode) -> None:
    rig = GroupRig(kafka_version)
    assert error_of(rig.join("a", protocol_type="")) is error


def test_a_static_member_that_returns_with_a_repeated_protocol_fails() -> None:
    """A static member that returns with a protocol twice replaces its predecessor, and
    ``GroupMetadata.selectProtocol`` throws."""
    rig = GroupRig("3.9")
    rig.join("a", instance="one")
    rig.host.advance(0)
    rig.sync("a", {"a": b"all"})
    assert error_of(rig.join("b", instance="one", protocols=TWICE)) is UNEXPECTED
    assert rig.state == "Stable"
