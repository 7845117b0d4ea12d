"""The account of outages: who waits, what ends a wait, its cause and its phases."""

from __future__ import annotations

import pytest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.tracing.story.outages import LEAST_US, OutageAccount

P = "t-0"
SECOND = 1_000_000


@pytest.fixture
def account() -> OutageAccount:
    """Return an account with leader 1 and ISR 1, 2, 3 of partition t-0, and controller 3."""
    account = OutageAccount()
    account.decide(0, 3, P, 1, 0, [1, 2, 3])
    return account


def test_a_short_wait_is_no_outage(account: OutageAccount) -> None:
    account.begin_wait(10, P)
    account.acknowledge(10 + LEAST_US - 1, 1, P)
    account.end_wait(10 + LEAST_US - 1, P, failed=False)
    assert not account.outages
    assert not account.open_outages(10 * SECOND)


def test_a_wait_of_a_second_is_an_outage_even_without_a_visible_cause(
    account: OutageAccount,
) -> None:
    account.begin_wait(10, P)
    account.end_wait(10 + LEAST_US, P, failed=False)
    (outage,) = account.outages
    assert (outage.unavailable_us, outage.cause) == (LEAST_US, None)
    assert outage.phases_us()["client"] == LEAST_US


def test_a_partition_without_waiting_clients_has_no_outage(account: OutageAccount) -> None:
    account.crash(SECOND, 1)
    assert not account.open_outages(60 * SECOND)
    account.begin_wait(60 * SECOND, P)
    (outage,) = account.open_outages(70 * SECOND)
    assert outage.begun_us == 60 * SECOND


def test_an_acknowledgement_to_any_client_ends_an_outage(
    account: OutageAccount,
) -> None:
    account.begin_wait(0, P)
    account.begin_wait(5 * SECOND, P)
    account.end_wait(7 * SECOND, P, failed=False)
    (outage,) = account.outages
    assert (outage.begun_us, outage.ended_us) == (0, 7 * SECOND)
    (still,) = account.open_outages(20 * SECOND)
    assert still.begun_us == 7 * SECOND


def test_an_outage_ends_when_the_last_waiting_client_gives_up(account: OutageAccount) -> None:
    account.begin_wait(0, P)
    account.begin_wait(1, P)
    account.end_wait(3 * SECOND, P, failed=True)
    assert not account.outages
    account.end_wait(4 * SECOND, P, failed=True)
    (outage,) = account.outages
    assert (outage.is_acknowledged, outage.ended_us, outage.unavailable_us) == (
        False, 4 * SECOND, None,
    )  # fmt: skip
    assert not account.open_outages(60 * SECOND)


def test_a_change_of_leader_makes_a_short_wait_an_outage(account: OutageAccount) -> None:
    account.begin_wait(0, P)
    account.decide(1_000, 3, P, 2, 1, [2, 3])
    account.take_over(1_250, 2, P, 1)
    account.end_wait(2_000, P, failed=False)
    (outage,) = account.outages
    assert (outage.leader, outage.new_leader, outage.unavailable_us) == (1, 2, 2_000)


@pytest.mark.parametrize(("length_us", "count"), [(9_999, 0), (10_000, 1)])
def test_a_shrunk_isr_makes_a_wait_beyond_a_round_trip_an_outage(
    account: OutageAccount, length_us: int, count: int
) -> None:
    account.begin_wait(0, P)
    account.decide(1_000, 3, P, 1, 1, [1, 3])
    account.end_wait(length_us, P, failed=False)
    assert len(account.outages) == count


@pytest.mark.parametrize(("after_us", "is_blamed"), [(SECOND, True), (SECOND + 1, False)])
def test_a_wait_soon_after_a_dead_broker_left_the_isr_is_blamed_on_its_death(
    account: OutageAccount, after_us: int, is_blamed: bool
) -> None:
    """DP-62: a new epoch may have fenced a follower, which delays acknowledgements by a back-off.
    The whole outage counts as the client's phase, as the decision is over.
    """
    crash = account.crash(0, 2)
    account.decide(SECOND, 3, P, 1, 1, [1, 3])
    account.take_over(SECOND, 1, P, 1)
    account.begin_wait(SECOND + after_us, P)
    account.end_wait(SECOND + after_us + LEAST_US, P, failed=False)
    account.restart(60 * SECOND, 2)
    (outage,) = account.outages
    assert (outage.leader, outage.cause) == (1, crash if is_blamed else None)
    assert outage.follows_epoch is is_blamed
    assert outage.phases_us()["client"] == LEAST_US


def test_an_epoch_with_all_members_is_blamed_for_nothing(account: OutageAccount) -> None:
    account.crash(0, 2)
    account.decide(SECOND, 3, P, 1, 1, [1, 3])
    account.decide(5 * SECOND, 3, P, 1, 2, [1, 3])
    account.begin_wait(5 * SECOND, P)
    account.end_wait(7 * SECOND, P, failed=False)
    (outage,) = account.outages
    assert outage.cause is None


def test_phases_of_an_election(account: OutageAccount) -> None:
    account.begin_wait(SECOND, P)
    crash = account.crash(2 * SECOND, 1)
    account.note_watch_event(8 * SECOND, "controller-3", "NodeChildrenChanged", "/brokers/ids")
    account.decide(8 * SECOND + 1_000, 3, P, 2, 1, [2, 3])
    account.take_over(8 * SECOND + 1_500, 2, P, 1)
    account.end_wait(9 * SECOND, P, failed=False)
    (outage,) = account.outages
    assert outage.cause is crash
    assert outage.phases_us() == {
        "before": SECOND, "detect": 6 * SECOND, "elect": 1_000, "propagate": 500, "shrink": 0,
        "restore": 0, "client": SECOND - 1_500,
    }  # fmt: skip


def test_phases_of_a_leader_that_waits_for_a_member_of_its_isr(account: OutageAccount) -> None:
    """The phase "shrink" lasts until the controller removes the dead follower from the ISR."""
    account.begin_wait(SECOND, P)
    crash = account.crash(SECOND, 2)
    account.note_watch_event(8 * SECOND, "controller-3", "NodeChildrenChanged", "/brokers/ids")
    account.decide(8 * SECOND + 1_000, 3, P, 1, 1, [1, 3])
    account.take_over(8 * SECOND + 1_500, 1, P, 1)
    account.end_wait(9 * SECOND, P, failed=False)
    (outage,) = account.outages
    assert outage.cause is crash
    assert outage.phases_us() == {
        "before": 0, "detect": 7 * SECOND, "elect": 0, "propagate": 500, "shrink": 1_000,
        "restore": 0, "client": SECOND - 1_500,
    }  # fmt: skip


def test_phases_of_a_leader_that_asks_for_a_smaller_isr(account: OutageAccount) -> None:
    account.begin_wait(SECOND, P)
    account.disturbances.fault(2 * SECOND, "broker-2", "paused")
    account.note_isr_request(32 * SECOND, P, 0, [1, 3])
    account.end_wait(32 * SECOND + 500, P, failed=False)
    (outage,) = account.outages
    assert outage.cause is not None
    assert outage.cause.text == "broker-2 was paused"
    phases = outage.phases_us()
    assert (phases["before"], phases["shrink"], phases["client"]) == (SECOND, 30 * SECOND, 500)


def test_phases_of_a_partition_whose_only_replica_has_to_return(account: OutageAccount) -> None:
    """Until its only replica is back, the partition is in the phase "restore", not "elect"."""
    account.begin_wait(SECOND, P)
    account.crash(SECOND, 1)
    account.note_watch_event(8 * SECOND, "controller-3", "NodeChildrenChanged", "/brokers/ids")
    account.restart(20 * SECOND, 1)
    account.decide(20 * SECOND + 1_000, 3, P, 1, 1, [1])
    account.take_over(20 * SECOND + 1_500, 1, P, 1)
    account.end_wait(21 * SECOND, P, failed=False)
    (outage,) = account.outages
    phases = outage.phases_us()
    assert (phases["detect"], phases["restore"]) == (7 * SECOND, 12 * SECOND)
    assert sum(phases.values()) == 20 * SECOND


@pytest.mark.parametrize(
    ("error", "restored_us"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, 12 * SECOND),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 12 * SECOND),
        (ErrorCode.REQUEST_TIMED_OUT, 0),
    ],
)
def test_phases_of_a_partition_with_too_few_replicas(
    account: OutageAccount, error: ErrorCode, restored_us: int
) -> None:
    """The phase "restore" counts only if writes were refused for lack of in-sync replicas."""
    account.begin_wait(SECOND, P)
    account.crash(SECOND, 2)
    account.note_watch_event(8 * SECOND, "controller-3", "NodeChildrenChanged", "/brokers/ids")
    account.decide(8 * SECOND, 3, P, 1, 1, [1])
    account.note_produce_response(9 * SECOND, "broker-1", "shop", P, error)
    account.note_isr_request(20 * SECOND, P, 1, [1, 2])
    account.end_wait(20 * SECOND + 700, P, failed=False)
    (outage,) = account.outages
    phases = outage.phases_us()
    assert (phases["detect"], phases["restore"]) == (7 * SECOND, restored_us)
    assert phases["client"] == 700 + 12 * SECOND - restored_us


def test_phases_of_an_unnoticed_pause(account: OutageAccount) -> None:
    account.disturbances.fault(SECOND, "broker-1", "paused")
    account.begin_wait(2 * SECOND, P)
    account.disturbances.fault(5 * SECOND, "broker-1", "resumed")
    account.end_wait(5 * SECOND + 700, P, failed=False)
    (outage,) = account.outages
    phases = outage.phases_us()
    assert (phases["detect"], phases["client"]) == (3 * SECOND, 700)


@pytest.mark.parametrize(
    ("actor", "text", "said"),
    [
        ("broker-1", "paused", "broker-1 was paused"),
        ("broker-2", "paused", "broker-2 was paused"),
        ("controller-1", "session expired", "the session of broker-1 expired"),
        ("network", "partition [['broker-1'], ['broker-2', 'zk-1']]", "broker-1 was cut off"),
        ("network", "partition [['broker-3', 'zk-1'], ['broker-2']] (one way)",
         "broker-2 was cut off"),
        ("network", "partition [['clients'], ['broker-1', 'broker-2']]", "clients was cut off"),
        ("network", "messages of wants are held back", "messages of wants are held back"),
        ("network", "FetchRequest from broker-3: held back",
         "FetchRequest from broker-3: held back"),
        ("network", "all links: messages are lost with probability 0.5",
         "all links: messages are lost with probability 0.5"),
        ("network", "all links: latency 900 ms", "all links: latency 900 ms"),
        ("network", "all links: latency lognormal, median 90 ms, sigma 0.5",
         "all links: latency lognormal, median 90 ms, sigma 0.5"),
    ],
)  # fmt: skip
def test_the_fault_to_blame_is_named(
    account: OutageAccount, actor: str, text: str, said: str
) -> None:
    account.disturbances.fault(5, actor, text)
    account.begin_wait(5, P)
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
        ("network", "broker-1 to broker-9: latency 900 ms"),
        ("network", "broker-9 to zk-1: messages are lost with probability 1"),
        ("network", "shop to broker-9: bandwidth 1 MB/s"),
        ("network", "FetchRequest from broker-9 to broker-1: held back"),
    ],
)
def test_faults_that_cannot_be_the_cause_are_not_named(
    account: OutageAccount, actor: str, text: str
) -> None:
    """Faults of brokers without a replica and insignificant latencies are not named as causes."""
    account.disturbances.fault(5, actor, text)
    account.begin_wait(5, P)
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
        (("network", "FetchRequest from broker-3: held back"),
         ("network", "FetchRequest from broker-3: released")),
        (("network", "FetchRequest from broker-3: held back"), ("network", "all messages: lost")),
        (("network", "all links: latency 900 ms"), ("network", "all links: latency 1 ms")),
        (("network", "all links: bandwidth 1 MB/s"),
         ("network", "all links: bandwidth without a limit")),
        (("network", "broker-1 to broker-2: latency 900 ms"),
         ("network", "broker-1 to broker-2: latency 1 ms")),
        (("network", "broker-1 to broker-2: messages are lost with probability 1"),
         ("network", "heal")),
    ],
)  # fmt: skip
def test_a_fault_that_ended_before_is_not_blamed(
    account: OutageAccount, begin: tuple[str, str], end: tuple[str, str]
) -> None:
    account.disturbances.fault(5, *begin)
    account.disturbances.fault(6, *end)
    account.begin_wait(SECOND, P)
    (outage,) = account.open_outages(3 * SECOND)
    assert outage.cause is None


def test_a_hold_lasts_until_all_its_messages_are_released(account: OutageAccount) -> None:
    """A hold ends only when all its messages are released, not some of them or others."""
    account.disturbances.fault(5, "network", "FetchRequest, Ack from broker-3: held back")
    account.disturbances.fault(6, "network", "FetchRequest from broker-3: released")
    account.disturbances.fault(7, "network", "all messages from broker-2: lost")
    account.begin_wait(SECOND, P)
    (outage,) = account.open_outages(3 * SECOND)
    assert outage.cause is not None


@pytest.mark.parametrize(
    ("own", "all_links"),
    [
        ("latency 900 ms", "latency 0.25 ms"),
        ("bandwidth 1 MB/s", "bandwidth without a limit"),
        ("messages are lost with probability 1", "messages are lost with probability 0"),
    ],
)
def test_a_rule_of_one_link_outlasts_a_rule_of_all(
    account: OutageAccount, own: str, all_links: str
) -> None:
    """A link's own latency, bandwidth or loss stays in force when a rule for all links is set."""
    account.disturbances.fault(5, "network", f"broker-1 to broker-2: {own}")
    account.disturbances.fault(6, "network", f"all links: {all_links}")
    account.begin_wait(SECOND, P)
    (outage,) = account.open_outages(3 * SECOND)
    assert outage.cause is not None
    assert outage.cause.text.startswith("broker-1 to broker-2")


def test_the_session_of_a_dead_broker_is_part_of_its_death(account: OutageAccount) -> None:
    account.begin_wait(0, P)
    crash = account.crash(10, 1)
    account.disturbances.fault(10, "broker-1", "session expired")
    (outage,) = account.open_outages(SECOND)
    assert outage.cause is crash


def test_the_fault_nearest_to_the_leader_is_blamed(account: OutageAccount) -> None:
    """The leader's fault is blamed before a follower's, then message loss, then latency."""
    said = []
    for actor, text in (
        ("network", "all links: latency 900 ms"),
        ("network", "all links: messages are lost with probability 0.1"),
        ("broker-2", "paused"),
        ("broker-1", "paused"),
    ):
        account.disturbances.fault(5, actor, text)
        account.begin_wait(5, P)
        (outage,) = account.open_outages(2 * SECOND)
        assert outage.cause is not None
        said.append(outage.cause.kind)
    assert said == ["latency", "loss", "pause", "pause"]
    assert outage.cause is not None
    assert outage.cause.broker == 1


def test_a_client_over_tcp_waits_from_its_request_to_an_acknowledgement(
    account: OutageAccount,
) -> None:
    """A TCP client's wait lasts beyond retriable errors and lost connections; an acknowledgement
    ends it, also for requests sent earlier.
    """
    account.note_produce_request(0, "client:1", "broker-1", P)
    account.note_produce_response(
        SECOND, "broker-1", "client:1", P, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    )
    account.note_produce_request(3 * SECOND, "client:2", "broker-1", P)
    outage = account.note_produce_response(4 * SECOND, "broker-1", "client:2", P, ErrorCode.NONE)
    assert outage is not None
    assert outage.unavailable_us == 4 * SECOND
    assert not account.open_outages(60 * SECOND)


def test_a_request_that_was_refused_for_good_waits_no_longer(account: OutageAccount) -> None:
    account.note_produce_request(0, "client:1", "broker-1", P)
    account.note_produce_response(10, "broker-1", "client:1", P, ErrorCode.MESSAGE_TOO_LARGE)
    assert not account.open_outages(60 * SECOND)
    account.note_produce_request(20, "client:1", "broker-1", P)
    account.note_produce_response(
        30, "broker-1", "client:1", P, ErrorCode.DUPLICATE_SEQUENCE_NUMBER
    )
    assert not account.open_outages(60 * SECOND)


@pytest.mark.parametrize(
    "way", ["refused", "lost", "answer lost", "broker killed", "told to retry"]
)
def test_a_retry_waits_only_for_its_own_response(account: OutageAccount, way: str) -> None:
    """A retry waits for its own response; a response belongs to the oldest open request."""
    account.note_produce_request(0, "client:1", "broker-1", P)
    account.note_produce_response(10, "broker-1", "client:1", P, ErrorCode.NONE)
    if way == "refused":
        account.note_lost_produce_request(20, "client:1", "broker-1", P, was_sent=False)
    else:
        account.note_produce_request(20, "client:1", "broker-1", P)
    if way == "lost":
        account.note_lost_produce_request(21, "client:1", "broker-1", P, was_sent=True)
    elif way == "answer lost":
        account.note_lost_response(P, "client:1", "broker-1")
    elif way == "broker killed":
        account.crash(22, 1)
        account.restart(23, 1)
    elif way == "told to retry":
        account.note_produce_response(24, "broker-1", "client:1", P, ErrorCode.NOT_ENOUGH_REPLICAS)
    (waits,) = account.open_outages(2 * SECOND)
    assert waits.begun_us == 20
    account.note_produce_request(3 * SECOND, "client:1", "broker-1", P)
    account.note_produce_request(3 * SECOND + 1, "client:1", "broker-1", P)
    account.note_produce_response(4 * SECOND, "broker-1", "client:1", P, ErrorCode.NONE)
    (waits,) = account.open_outages(60 * SECOND)
    assert waits.begun_us == 4 * SECOND
    account.note_produce_response(4 * SECOND + 2, "broker-1", "client:1", P, ErrorCode.NONE)
    assert not account.open_outages(60 * SECOND)


def test_a_deposed_leader_ends_no_outage_of_clients_of_the_new_leader(
    account: OutageAccount,
) -> None:
    """A response from a deposed leader does not end the outage of clients of the new leader."""
    account.disturbances.fault(90, "broker-1", "session expired")
    account.begin_wait(100, P)
    account.decide(200, 3, P, -1, 1, [2, 3])
    account.begin_wait(250, P)
    account.decide(300, 3, P, 2, 2, [2, 3])
    account.acknowledge(400, 1, P)
    account.end_wait(400, P, failed=False)
    assert not account.outages
    outage = account.acknowledge(230_000, 2, P)
    assert outage is not None
    assert (outage.leader, outage.new_leader, outage.unavailable_us) == (1, 2, 229_600)
    assert outage.cause is not None
    assert outage.cause.kind == "session"


def test_a_wait_that_begins_between_two_leaders_is_blamed_on_the_former(
    account: OutageAccount,
) -> None:
    """A wait that begins while there is no leader is blamed on the former leader."""
    account.disturbances.fault(90, "broker-1", "session expired")
    account.decide(200, 3, P, -1, 1, [2, 3])
    account.begin_wait(250, P)
    account.decide(300, 3, P, 2, 2, [2, 3])
    outage = account.acknowledge(400, 2, P)
    assert outage is not None
    assert outage.leader == 1
    assert outage.cause is not None


def test_a_deleted_topic_is_no_outage(account: OutageAccount) -> None:
    account.begin_wait(0, P)
    account.forget(P)
    assert not account.open_outages(60 * SECOND)
    assert not account.outages


def test_a_leader_that_becomes_known_late_counts_from_the_beginning_of_the_wait() -> None:
    """In a recording that begins in mid-run, a leader becomes known only by the decision for the
    next one; its death is still the cause, however short the wait.
    """
    account = OutageAccount()
    account.crash(SECOND, 1)
    account.begin_wait(SECOND + 10, P)
    account.note_earlier_leadership(P, 1, 4, [1, 2, 3])
    account.decide(SECOND + LEAST_US // 4, 3, P, 2, 5, [2, 3])
    account.acknowledge(SECOND + LEAST_US // 2, 2, P)
    account.end_wait(SECOND + LEAST_US // 2, P, failed=False)
    (outage,) = account.outages
    assert outage.leader == 1
    assert outage.cause is not None
    assert outage.cause.broker == 1
