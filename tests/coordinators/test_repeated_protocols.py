"""Members that name a protocol twice, or none: what they do to their group, by release."""

from __future__ import annotations

import pytest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.tests.support.group_desk import NONE, GroupDesk, error_of

TWICE = (("range", b"m"), ("range", b"n"))
UNEXPECTED = ErrorCode.UNKNOWN_SERVER_ERROR
INCONSISTENT = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("kafka_version", ["2.8", "3.9"])
def test_a_first_member_with_a_protocol_twice_is_never_answered(kafka_version: str) -> None:
    """``MemberMetadata.vote`` throws in a timer: the generation has begun, and the group hangs."""
    desk = GroupDesk(kafka_version)
    assert desk.join("a", protocols=TWICE) is None
    desk.host.advance(60_000)
    assert "a" not in desk.answers
    assert (desk.state, desk.group.generation) == ("PreparingRebalance", 1)
    assert any("no protocol in common" in line for line in desk.lines)
    assert error_of(desk.join("b")) is INCONSISTENT


def test_a_group_that_hangs_loses_its_member_after_five_minutes() -> None:
    """KAFKA-7610: a new member is not waited for any longer; the group hangs all the same."""
    desk = GroupDesk("3.9")
    desk.join("a", protocols=TWICE)
    desk.host.advance(301_000)
    assert (list(desk.group.members), desk.state) == ([], "PreparingRebalance")


@pytest.mark.parametrize("kafka_version", ["2.8", "3.9"])
def test_the_member_with_which_all_have_joined_hears_of_the_failure(kafka_version: str) -> None:
    """The vote throws in its request, which ``KafkaApis`` then answers."""
    desk = GroupDesk(kafka_version)
    desk.join("a")
    desk.host.advance(0)
    desk.sync("a", {"a": b"all"})
    again = desk.join("a", protocols=TWICE)
    assert again is not None
    assert (again.error, again.member_id, again.generation) == (UNEXPECTED, "", -1)
    assert (desk.state, desk.group.generation) == ("PreparingRebalance", 2)


def test_who_heard_of_the_failure_counts_as_one_that_waits() -> None:
    """Its callback stays with the member, so that no heartbeat is due."""
    desk = GroupDesk("3.9")
    desk.stable("a")
    assert error_of(desk.join("a", protocols=TWICE)) is UNEXPECTED
    desk.host.advance(60_000)
    assert list(desk.group.members) == [desk.ids["a"]]


def test_members_that_join_again_beside_one_with_a_protocol_twice_are_refused() -> None:
    """Two members name it three times, so that they do not seem to have it in common."""
    desk = GroupDesk("3.9")
    desk.join("a")
    desk.host.advance(0)
    desk.sync("a", {"a": b"all"})
    assert desk.join("b", protocols=TWICE) is None
    assert error_of(desk.join("a")) is INCONSISTENT
    assert "b" not in desk.answers


@pytest.mark.parametrize("kafka_version", ["0.10", "1.1"])
def test_old_releases_count_a_protocol_once(kafka_version: str) -> None:
    """KAFKA-7142: they intersect sets; the first mention says what the member reads."""
    desk = GroupDesk(kafka_version)
    desk.join("a", protocols=TWICE)
    desk.host.advance(0)
    answer = desk.answers["a"]
    assert (answer.error, answer.protocol) == (NONE, "range")
    assert [member.metadata for member in answer.members] == [b"m"]


@pytest.mark.parametrize(
    ("kafka_version", "error"), [("0.10", UNEXPECTED), ("1.1", INCONSISTENT), ("3.9", INCONSISTENT)]
)
def test_a_first_member_without_protocols(kafka_version: str, error: ErrorCode) -> None:
    """KAFKA-6005: before 1.0 it is taken in, and the vote fails at once."""
    desk = GroupDesk(kafka_version)
    assert error_of(desk.join("a", protocols=())) is error


@pytest.mark.parametrize(("kafka_version", "error"), [("0.10", NONE), ("1.1", INCONSISTENT)])
def test_a_first_member_without_a_protocol_type(kafka_version: str, error: ErrorCode) -> None:
    desk = GroupDesk(kafka_version)
    assert error_of(desk.join("a", protocol_type="")) is error


def test_a_static_member_that_comes_back_with_a_protocol_twice() -> None:
    """It takes its place, and ``GroupMetadata.selectProtocol`` throws."""
    desk = GroupDesk("3.9")
    desk.join("a", instance="one")
    desk.host.advance(0)
    desk.sync("a", {"a": b"all"})
    assert error_of(desk.join("b", instance="one", protocols=TWICE)) is UNEXPECTED
    assert desk.state == "Stable"
