"""Groups and transactional applications in scenario files."""

from __future__ import annotations

from unittest import mock

import pytest
from fakekafka.protocol.data import DeleteRecordsRequest
from fakekafka.protocol.values import TopicPartition
from fakekafka.scenarios.file import ScenarioError, parse_scenario
from fakekafka.scenarios.run import ScenarioRun
from fakekafka.tests.support.present import present

HEAD = """
[cluster.config]
zookeeper.session.timeout.ms = 2000
group.min.session.timeout.ms = 1000
group.initial.rebalance.delay.ms = 0
[cluster.topics.orders]
partitions = 4
[cluster.topics.copies]
partitions = 2
[[workload]]
topic = "orders"
rate_per_s = 50
stop_ms = 4000
[stop]
at_ms = 8000
"""
GROUP = """
[[groups]]
group_id = "billing"
topics = ["orders"]
members = 3
session_timeout_ms = 2000
heartbeat_interval_ms = 500
auto_commit_interval_ms = 500
join_every_ms = 200
"""
TRANSFORMER = """
[[transformers]]
input = "orders"
output = "copies"
"""


def run(text: str, seed: int = 1) -> ScenarioRun:
    played = ScenarioRun(parse_scenario(HEAD + text, "coordinated.toml"), seed)
    played.run()
    return played


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_a_group_survives_the_death_of_its_coordinator(assignor: str) -> None:
    """When the coordinator dies while a member is cut off, each partition ends with one owner and
    all records are committed."""
    played = run(
        GROUP + f'assignor = "{assignor}"\n'
        '[[faults]]\nat_ms = 1500\naction = "isolate"\nmachine = "billing-member-2"\n'
        "expect = \"group_members('billing') == 2 and group_state('billing') == 'Stable'\"\n"
        "expect_within_ms = 5000\n"
        '[[faults]]\nat_ms = 6000\naction = "kill"\nbroker = "coordinator:billing"\n'
        "[[expect]]\nthat = \"group_state('billing') == 'Stable' and group_lag('billing') == 0\"\n"
    )
    assert played.result.problems == []
    (group,) = played.coordinated.groups
    assert sorted(p for member in group.members for p in member.owned) == [
        TopicPartition("orders", number) for number in range(4)
    ]


def test_a_partition_with_two_owners_is_a_problem() -> None:
    """A partition that two members own is a problem, and so is one without an owner."""
    played = run(GROUP)
    assert played.result.problems == []
    (group,) = played.coordinated.groups
    doubled = [TopicPartition("orders", 0)]
    with mock.patch.object(type(group.members[0]), "owned", doubled):
        assert list(group.problems()) == [
            "group billing: two members own orders-0",
            "group billing: no member owns 3 of its partitions",
        ]


def test_static_members_are_named() -> None:
    played = run(GROUP + "is_static = true\n")
    assert played.result.problems == []
    (group,) = played.coordinated.groups
    settings = [member.group_settings.group_instance_id for member in group.members]
    assert settings == ["billing-member-1", "billing-member-2", "billing-member-3"]


@pytest.mark.parametrize("seed", range(3))
def test_records_are_copied_exactly_once_through_the_death_of_brokers(seed: int) -> None:
    """Records are copied exactly once although a leader of the target and the coordinator of the
    transactions die."""
    played = run(
        TRANSFORMER + '[[faults]]\nat_ms = 1000\naction = "kill"\nbroker = "leader:copies-0"\n'
        '[[faults]]\nat_ms = 2000\naction = "start"\nbroker = 1\n'
        '[[faults]]\nat_ms = 2500\naction = "kill"\n'
        'broker = "transaction-coordinator:transformer-1"\n',
        seed,
    )
    problems = [text for text in played.result.problems if "start" not in text]
    assert problems == []


def test_a_record_that_is_not_copied_once_is_a_problem() -> None:
    """A record that is missing from the copy, or is in it twice, is a problem."""
    played = ScenarioRun(parse_scenario(HEAD + TRANSFORMER, "coordinated.toml"))
    played.play()
    (transformer,) = played.coordinated.transformers
    assert list(transformer.problems()) == []
    played.simulation.produce("copies", ["strange"])
    played.simulation.produce("orders", ["late"])
    played.simulation.run_until(lambda: transformer.has_settled)
    played.simulation.produce("copies", ["late"])
    assert list(transformer.problems()) == [
        "transformer transformer-1: 1 records of copies are duplicates",
        "transformer transformer-1: 1 records of copies match no record of orders",
    ]
    read = TopicPartition("orders", 0)
    leader = present(played.simulation.partition(*read).leader)
    played.simulation.ask(leader, DeleteRecordsRequest(6000, ((read, 1),)))
    assert list(transformer.problems()) == [
        "transformer transformer-1: 1 records of copies are duplicates"
    ]
    played.simulation.stop()


def test_the_same_seed_gives_the_same_run() -> None:
    text = GROUP + TRANSFORMER + 'name = "copier"\n'
    runs = [run(text, seed) for seed in (5, 5, 6)]
    figures = [(one.result.metrics, one.simulation.now_ms) for one in runs]
    assert figures[0] == figures[1]
    assert figures[0] != figures[2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[groups]]", "groups[0].topics: is missing; write the names of the topics"),
        ("[[groups]]\ntopics = ['order']", "'order' is not in cluster.topics; did you mean"),
        ("[[groups]]\ntopics = ['orders']\nassignor = 'rang'", "'rang'; did you mean 'range'?"),
        (
            "[[groups]]\ntopics = ['orders']\nmembers = 0",
            "must be a whole number from 1 to 10000, not 0",
        ),
        ("[[groups]]\ntopics = ['orders']\nmember = 2", "unknown key; did you mean 'members'"),
        (GROUP + GROUP, "groups: group_id 'billing' is used twice"),
        ("[[transformers]]\ninput = 'orders'", "output: is missing"),
        ("[[transformers]]\ninput = 'orders'\noutput = 'orders'", "another topic than the input"),
        (TRANSFORMER + "name = 'workload-1-producer-1'", "two clients have the name"),
        (TRANSFORMER.replace('"copies"', '"copy"'), "'copy' is not in cluster.topics"),
        (
            "[[faults]]\nat_ms = 1\naction = 'isolate'\nmachine = 'billing-member-4'" + GROUP,
            "no machine 'billing-member-4'; did you mean 'billing-member-",
        ),
    ],
)
def test_invalid_settings_are_refused(text: str, message: str) -> None:
    """A wrong setting is refused with the key of the group or transformer at fault."""
    with pytest.raises(ScenarioError) as refused:
        parse_scenario(HEAD + text + "\n", "wrong.toml")
    assert message in str(refused.value)


def test_an_old_release_has_no_transactions() -> None:
    with pytest.raises(ScenarioError, match=r"transformers: need transactions, which Kafka 0\.10"):
        parse_scenario('[cluster]\nkafka_version = "0.10"\n' + HEAD + TRANSFORMER, "old.toml")
