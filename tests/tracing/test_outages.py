"""The account of outages: who waits, what ends a wait, what is to blame, how it is split."""

from __future__ import annotations

import pytest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.tracing.story.outages import LEAST_US, OutageAccount

P = "t-0"
SECOND = 1_000_000


@pytest.fixture
def account() -> OutageAccount:
    """Partition t-0 has leader 1 and the ISR 1, 2, 3; controller 3."""
    account = OutageAccount()
    account.decide(0, 3, P, 1, 0, [1, 2, 3])
    return account


def test_a_short_wait_is_no_outage(account: OutageAccount) -> None:
    account.want(10, P)
    account.acknowledge(10 + LEAST_US - 1, 1, P)
    account.answered(10 + LEAST_US - 1, P, failed=False)
    assert not account.outages
    assert not account.open_outages(10 * SECOND)


def test_a_wait_of_a_second_is_one_though_nothing_was_seen(account: OutageAccount) -> None:
    account.want(10, P)
    account.answered(10 + LEAST_US, P, failed=False)
    (outage,) = account.outages
    assert (outage.unavailable_us, outage.cause) == (LEAST_US, None)
    assert outage.phases_us()["client"] == LEAST_US


def test_nothing_is_unavailable_while_nobody_waits(account: OutageAccount) -> None:
    account.crash(SECOND, 1)
    assert not account.open_outages(60 * SECOND)
    account.want(60 * SECOND, P)
    (outage,) = account.open_outages(70 * SECOND)
    assert outage.begun_us == 60 * SECOND


def test_an_acknowledgement_to_anybody_ends_it_and_the_next_wait_begins(
    account: OutageAccount,
) -> None:
    account.want(0, P)
    account.want(5 * SECOND, P)
    account.answered(7 * SECOND, P, failed=False)
    (outage,) = account.outages
    assert (outage.begun_us, outage.ended_us) == (0, 7 * SECOND)
    (still,) = account.open_outages(20 * SECOND)
    assert still.begun_us == 7 * SECOND


def test_it_ends_without_an_acknowledgement_when_the_last_gives_up(account: OutageAccount) -> None:
    account.want(0, P)
    account.want(1, P)
    account.answered(3 * SECOND, P, failed=True)
    assert not account.outages
    account.answered(4 * SECOND, P, failed=True)
    (outage,) = account.outages
    assert (outage.is_acknowledged, outage.ended_us, outage.unavailable_us) == (
        False, 4 * SECOND, None,
    )  # fmt: skip
    assert not account.open_outages(60 * SECOND)


def test_a_change_of_leader_makes_a_short_wait_an_outage(account: OutageAccount) -> None:
    account.want(0, P)
    account.decide(1_000, 3, P, 2, 1, [2, 3])
    account.take_over(1_250, 2, P, 1)
    account.answered(2_000, P, failed=False)
    (outage,) = account.outages
    assert (outage.leader, outage.new_leader, outage.unavailable_us) == (1, 2, 2_000)


@pytest.mark.parametrize(("length_us", "count"), [(9_999, 0), (10_000, 1)])
def test_a_smaller_isr_makes_one_of_a_wait_that_is_longer_than_a_round_trip(
    account: OutageAccount, length_us: int, count: int
) -> None:
    account.want(0, P)
    account.decide(1_000, 3, P, 1, 1, [1, 3])
    account.answered(length_us, P, failed=False)
    assert len(account.outages) == count


def test_phases_of_an_election(account: OutageAccount) -> None:
    account.want(SECOND, P)
    crash = account.crash(2 * SECOND, 1)
    account.watch(8 * SECOND, "controller-3", "NodeChildrenChanged", "/brokers/ids")
    account.decide(8 * SECOND + 1_000, 3, P, 2, 1, [2, 3])
    account.take_over(8 * SECOND + 1_500, 2, P, 1)
    account.answered(9 * SECOND, P, failed=False)
    (outage,) = account.outages
    assert outage.cause is crash
    assert outage.phases_us() == {
        "before": SECOND, "detect": 6 * SECOND, "elect": 1_000, "propagate": 500, "shrink": 0,
        "client": SECOND - 1_500,
    }  # fmt: skip


def test_phases_of_a_leader_that_waits_for_a_member_of_its_isr(account: OutageAccount) -> None:
    """The controller takes the dead follower out, or the leader asks for that itself."""
    account.want(SECOND, P)
    crash = account.crash(SECOND, 2)
    account.watch(8 * SECOND, "controller-3", "NodeChildrenChanged", "/brokers/ids")
    account.decide(8 * SECOND + 1_000, 3, P, 1, 1, [1, 3])
    account.take_over(8 * SECOND + 1_500, 1, P, 1)
    account.answered(9 * SECOND, P, failed=False)
    (outage,) = account.outages
    assert outage.cause is crash
    assert outage.phases_us() == {
        "before": 0, "detect": 7 * SECOND, "elect": 0, "propagate": 500, "shrink": 1_000,
        "client": SECOND - 1_500,
    }  # fmt: skip


def test_phases_of_a_leader_that_asks_for_a_smaller_isr(account: OutageAccount) -> None:
    account.want(SECOND, P)
    account.disturbances.fault(2 * SECOND, "broker-2", "paused")
    account.ask_isr(32 * SECOND, P, 0, [1, 3])
    account.answered(32 * SECOND + 500, P, failed=False)
    (outage,) = account.outages
    assert outage.cause is not None
    assert outage.cause.text == "broker-2 was paused"
    phases = outage.phases_us()
    assert (phases["before"], phases["shrink"], phases["client"]) == (SECOND, 30 * SECOND, 500)


def test_phases_of_a_pause_that_nobody_noticed(account: OutageAccount) -> None:
    account.disturbances.fault(SECOND, "broker-1", "paused")
    account.want(2 * SECOND, P)
    account.disturbances.fault(5 * SECOND, "broker-1", "resumed")
    account.answered(5 * SECOND + 700, P, failed=False)
    (outage,) = account.outages
    phases = outage.phases_us()
    assert (phases["detect"], phases["client"]) == (3 * SECOND, 700)


@pytest.mark.parametrize(
    ("actor", "text", "said"),
    [
        ("broker-1", "paused", "broker-1 was paused"),
        ("broker-2", "paused", "broker-2 was paused"),
        ("controller-1", "session expired", "broker-1: session expired"),
        ("network", "partition [['broker-1'], ['broker-2', 'zk-1']]", "broker-1 was cut off"),
        ("network", "partition [['broker-3', 'zk-1'], ['broker-2']] (one way)",
         "broker-2 was cut off"),
        ("network", "partition [['clients'], ['broker-1', 'broker-2']]", "clients was cut off"),
        ("network", "messages of wants are held back", "messages of wants are held back"),
        ("network", "all links: messages are lost with probability 0.5",
         "all links: messages are lost with probability 0.5"),
        ("network", "all links: latency 900 ms", "all links: latency 900 ms"),
        ("network", "all links: latency lognormal, median 90 ms, sigma 0.5",
         "all links: latency lognormal, median 90 ms, sigma 0.5"),
    ],
)  # fmt: skip
def test_what_is_to_blame_is_named(
    account: OutageAccount, actor: str, text: str, said: str
) -> None:
    account.disturbances.fault(5, actor, text)
    account.want(5, P)
    (outage,) = account.open_outages(2 * SECOND)
    assert outage.cause is not None
    assert outage.cause.text == said


@pytest.mark.parametrize(
    ("actor", "text"),
    [
        ("broker-9", "paused"),
        ("network", "partition [['broker-9'], ['broker-1', 'broker-2', 'broker-3']]"),
        ("network", "all links: latency 1 ms"),
        ("network", "all links: latency 1 to 5 ms"),
        ("network", "all links: latency lognormal, median 0.5 ms, sigma 0.4"),
        ("network", "all links: messages are lost with probability 0"),
    ],
)
def test_what_cannot_be_to_blame_is_not(account: OutageAccount, actor: str, text: str) -> None:
    """Brokers without a replica of the partition, and latencies of another order of size."""
    account.disturbances.fault(5, actor, text)
    account.want(5, P)
    (outage,) = account.open_outages(2 * SECOND)
    assert outage.cause is None


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (("broker-1", "paused"), ("broker-1", "resumed")),
        (("network", "partition [['broker-1'], ['broker-2', 'zk-1']]"), ("network", "heal")),
        (("network", "all links: messages are lost with probability 1"), ("network", "heal")),
        (("network", "messages of f are held back"), ("network", "messages of f are released")),
        (("network", "messages of f are held back"), ("network", "all messages are released")),
        (("network", "all links: latency 900 ms"), ("network", "all links: latency 1 ms")),
        (("network", "all links: bandwidth 1 MB/s"),
         ("network", "all links: bandwidth without a limit")),
    ],
)  # fmt: skip
def test_what_was_undone_before_is_not_to_blame(
    account: OutageAccount, begin: tuple[str, str], end: tuple[str, str]
) -> None:
    account.disturbances.fault(5, *begin)
    account.disturbances.fault(6, *end)
    account.want(SECOND, P)
    (outage,) = account.open_outages(3 * SECOND)
    assert outage.cause is None


def test_the_nearest_of_several_is_to_blame(account: OutageAccount) -> None:
    """A slow link less than a loss, that less than a follower, that less than the leader."""
    said = []
    for actor, text in (
        ("network", "all links: latency 900 ms"),
        ("network", "all links: messages are lost with probability 0.1"),
        ("broker-2", "paused"),
        ("broker-1", "paused"),
    ):
        account.disturbances.fault(5, actor, text)
        account.want(5, P)
        (outage,) = account.open_outages(2 * SECOND)
        assert outage.cause is not None
        said.append(outage.cause.kind)
    assert said == ["latency", "loss", "pause", "pause"]
    assert outage.cause is not None
    assert outage.cause.broker == 1


def test_a_client_over_tcp_waits_from_its_request_to_an_acknowledgement(
    account: OutageAccount,
) -> None:
    """A retriable error and a lost connection are no end; what somebody asked before one that has
    its acknowledgement does not count."""
    account.request(0, "client:1", 7, P)
    account.produced(
        SECOND, "broker-1", "client:1", P, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 7
    )
    account.request(3 * SECOND, "client:2", 8, P)
    outage = account.produced(4 * SECOND, "broker-1", "client:2", P, ErrorCode.NONE, 8)
    assert outage is not None
    assert outage.unavailable_us == 4 * SECOND
    assert not account.open_outages(60 * SECOND)


def test_a_request_that_was_refused_for_good_waits_no_longer(account: OutageAccount) -> None:
    account.request(0, "client:1", 7, P)
    account.produced(10, "broker-1", "client:1", P, ErrorCode.MESSAGE_TOO_LARGE, 7)
    assert not account.open_outages(60 * SECOND)
    account.request(20, "client:1", 8, P)
    account.produced(30, "broker-1", "client:1", P, ErrorCode.DUPLICATE_SEQUENCE_NUMBER, 8)
    assert not account.open_outages(60 * SECOND)


def test_a_deleted_topic_is_no_outage(account: OutageAccount) -> None:
    account.want(0, P)
    account.forget(P)
    assert not account.open_outages(60 * SECOND)
    assert not account.outages
