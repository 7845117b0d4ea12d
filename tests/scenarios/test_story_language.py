"""The language of stories: steps, expectations per version, logs; and how mistakes are refused."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka import Simulation
from fakekafka.protocol.control import LeaderAndIsrRequest
from fakekafka.protocol.data import FetchRequest, FetchResponse
from fakekafka.protocol.errors import UsageError
from fakekafka.protocol.values import TopicPartition
from fakekafka.scenarios.context import ScenarioError
from fakekafka.scenarios.file import parse_scenario
from fakekafka.scenarios.spec import ScenarioSpec
from fakekafka.scenarios.story.logs import LogRecord, format_log, read_pattern, value_range
from fakekafka.scenarios.story.play import first_difference
from fakekafka.testing.api_names import message_type
from fakekafka.testing.handles.message_gate import MessageFilter, MessageGate

BASE = """
[cluster]
brokers = 3
[cluster.topics.orders]
assignment = [[2, 3]]
[story]
partition = "orders-0"
brokers = { A = 2, B = 3 }
versions = ["0.10", "2.8", "3.9"]
[story.groups]
old = ["0.10"]
new = ["2.8", "3.9"]
"""
STEP = """
[[step]]
name = "one"
do = [{ action = "produce", values = ["m1", "r0..r2"], acks = 1 }]
[step.expect]
leader = "A"
isr = ["A", "B"]
A = { log = "[m0/0]", high_watermark = 1 }
old.A = { high_watermark = 2 }
"2.8".A = { epochs = "0@0" }
new.leader = "none"
"""


def parse(text: str, version: str = "0.10") -> ScenarioSpec:
    return parse_scenario(text, "story.toml", {"cluster.kafka_version": version})


def test_expectations_are_overlaid_per_group_and_version() -> None:
    """An expectation of a version replaces only the values it names; the others hold for all
    versions."""
    for version, high_watermark, epochs, leader in (
        ("0.10", 2, None, 2),
        ("2.8", 1, "0@0", -1),
        ("3.9", 1, None, -1),
    ):
        story = parse(BASE + STEP, version).story
        assert story is not None
        expect = story.steps[0].expect
        replica = expect.replicas[2]
        assert (replica.high_watermark, replica.epochs) == (high_watermark, epochs)
        assert (expect.leader, expect.isr) == (leader, (2, 3))
        assert replica.log is not None
        assert replica.log.text == "[m0/0]"


def test_the_first_version_is_the_default() -> None:
    spec = parse_scenario(BASE + STEP, "story.toml")
    assert spec.cluster.kafka_version == "0.10"
    assert spec.story is not None
    assert spec.story.steps[0].actions[0].arguments["values"] == ["m1", "r0", "r1", "r2"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("do = [", "doo = [", "step[0].doo: unknown key; did you mean 'do'?"),
        ('"produce"', '"prodce"', "'prodce' is not possible; did you mean 'produce'?"),
        ("acks = 1", "akcs = 1", "step[0].do[0].akcs: unknown key; did you mean 'acks'?"),
        ("acks = 1", "acks = 2", "must be 0, 1 or 'all', not 2"),
        ("r0..r2", "r2..r0", "'r2..r0' is not a range"),
        ("r0..r2", "r0..s2", "'r0..s2' is not a range"),
        ('leader = "A"', 'leader = "D"', "the story has no broker 'D'"),
        ("high_watermark = 1", "high_watermrk = 1", "did you mean 'high_watermark'?"),
        ("[m0/0]", "m0/0", "'m0/0' is not a log; write it like '[m0/0 m1/0]'"),
        ("[m0/0]", "[m0]", "'m0' is not a record; write its value and epoch"),
        ("[m0/0]", "[1..9/0]", "'1..9/0' stands at offset 0, not 1"),
        ("old.A", "odl.A", "step[0].expect.odl: unknown key; did you mean 'old'?"),
        ("new.leader", "new.leadr", "step[0].expect.new.leadr: unknown key"),
        ('old = ["0.10"]', 'old = ["1.1"]', "'1.1' is not among the versions"),
        ('versions = ["0.10"', 'versions = ["0.9"', "no version '0.9'"),
        ("A = 2, B = 3", "A = 2, B = 7", "story.brokers.B: no broker 7"),
        ('"orders-0"', '"orders-1"', "orders has partitions 0 to 0, not 1"),
        ('"orders-0"', '"order-0"', "partition: 'order' is not in cluster.topics"),
        ('name = "one"', "", "step[0].name: is missing"),
        ("[story]", "[workload]\nrate_per_s = 1\n[story]", "workload: is not allowed in a story"),
        ("[[step]]", '[[faults]]\nat_ms = -1\naction = "kill"\nbroker = 1\n[[step]]', "at_ms"),
        (
            "[[step]]",
            '[[faults]]\nwhen = "alive(1)"\naction = "kill"\nbroker = 1\n[[step]]',
            "faults: a fault in a story needs at_ms",
        ),
        ("[[step]]", "[outcome]\nlots = []\n[[step]]", "outcome.lots: unknown key"),
    ],
)
@pytest.mark.parametrize("version", ["0.10", "3.9"])
def test_mistakes_are_refused_with_a_correction(
    old: str, new: str, message: str, version: str
) -> None:
    """A mistake is refused in every version, even if it concerns only one of them."""
    text = BASE + STEP
    assert old in text
    if old == 'versions = ["0.10"':
        version = "3.9"
    with pytest.raises(ScenarioError) as refused:
        parse(text.replace(old, new, 1), version)
    assert message in str(refused.value)


def action(text: str) -> str:
    return BASE + '[[step]]\nname = "x"\ndo = [' + text + ']\n[step.expect]\nleader = "A"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "step[0].do[0].action: is missing; there are produce, run, kill"),
        ('{ action = "kill" }', "broker: is missing"),
        ('{ action = "kill", broker = "Z" }', "the story has no broker 'Z'"),
        ('{ action = "kill", broker = 9 }', "no broker 9; ids are 1 to 3"),
        ('{ action = "run" }', "run needs for_ms, or until"),
        ('{ action = "run", for_ms = 1, until = { leader = "A" } }', "run needs for_ms, or until"),
        ('{ action = "run", until = { ledaer = "A" } }', "did you mean 'leader'?"),
        ('{ action = "hold", messages = "FetchReqest" }', "did you mean 'FetchRequest'?"),
        ('{ action = "cut", from = "A" }', "do[0].to: is missing"),
        ('{ action = "alter_config" }', "config: is missing"),
        ('{ action = "alter_config", config = { min.isr = 1 } }', "min.isr"),
        ('{ action = "elect", election = "prefered" }', "did you mean 'preferred'?"),
        ('{ action = "read", offset = 1 }', "name: is missing"),
        ('{ action = "produce" }', "values: is missing"),
    ],
)
def test_actions_are_checked(text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        parse(action(text))
    assert message in str(refused.value)


def test_a_step_must_expect_something() -> None:
    with pytest.raises(ScenarioError, match=r"step\[0\].expect: is missing; write a state"):
        parse(BASE + '[[step]]\nname = "x"\n')
    with pytest.raises(ScenarioError, match="step: is missing"):
        parse(BASE)


# -- logs ----------------------------------------------------------------------------------------


def records(text: str) -> list[LogRecord]:
    return [LogRecord(value or "?", epoch) for value, epoch in read_pattern(text).records]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[]", "[]"),
        ("[m0/0 m1/0]", "[m0/0 m1/0]"),
        ("[r0/0 r1/0 r2/0]", "[r0..r2/0]"),
        ("[r0..r9/0 u10/0 u11/0]", "[r0..r9/0 u10/0 u11/0]"),
        ("[r0..r2/0 r3..r5/1]", "[r0..r2/0 r3..r5/1]"),
        ("[r0/0 r2/0 r3/0 r4/0]", "[r0/0 r2..r4/0]"),
        ("[x/0 y/0 z/0]", "[x/0 y/0 z/0]"),
    ],
)
def test_logs_are_shown_as_they_are_written(text: str, shown: str) -> None:
    """Three records that count up in one epoch are shown as a range."""
    assert format_log(records(text)) == shown
    assert read_pattern(shown).matches(records(text))


@pytest.mark.parametrize(
    ("pattern", "log", "matches"),
    [
        ("[0..2/0]", "[a/0 b/0 c/0]", True),
        ("[0..2/0 x/1]", "[a/0 b/0 c/0 x/1]", True),
        ("[x/1 1..2/0]", "[x/1 b/0 c/0]", True),
        ("[0..2/1]", "[a/0 b/0 c/0]", False),
        ("[0..2/0]", "[a/0 b/0]", False),
        ("[m0/0]", "[m0/1]", False),
        ("[m0/0]", "[m1/0]", False),
        ("[m0/0]", "[m0/0 m1/0]", False),
        ("[]", "[m0/0]", False),
    ],
)
def test_a_pattern_matches_values_epochs_and_length(pattern: str, log: str, matches: bool) -> None:
    """Bare numbers of a pattern are offsets, which match any value, but not any epoch."""
    assert read_pattern(pattern).matches(records(log)) is matches


def test_a_range_of_values() -> None:
    assert value_range("r8..r11") == ["r8", "r9", "r10", "r11"]
    assert value_range("m1") == ["m1"]
    assert value_range("a..b") == ["a..b"]


@pytest.mark.parametrize(
    ("logs", "offset"),
    [
        (["[a/0 b/0]", "[a/0 c/1]"], 1),
        (["[a/0 b/0]", "[a/0]"], None),
        (["[a/0 b/0]", "[a/0 b/0 c/0]", "[x/0]"], 0),
        (["[a/0]", "[a/1]"], 0),
        ([], None),
    ],
)
def test_where_logs_differ(logs: list[str], offset: int | None) -> None:
    """Logs differ at the first offset where two of them hold different records; a shorter log is no
    difference."""
    assert first_difference([records(log) for log in logs]) == offset


# -- holding messages ----------------------------------------------------------------------------


def test_messages_are_named_by_their_class() -> None:
    assert message_type("FetchResponse") is FetchResponse
    with pytest.raises(UsageError, match="did you mean 'FetchResponse'"):
        message_type("FetchRespnse")


@pytest.mark.parametrize(
    ("wider", "narrower", "covers"),
    [
        (MessageFilter(), MessageFilter((FetchRequest,), "a", "b"), True),
        (MessageFilter((FetchRequest,)), MessageFilter((FetchRequest,), "a"), True),
        (MessageFilter((FetchRequest,)), MessageFilter(), False),
        (MessageFilter((FetchRequest,)), MessageFilter((FetchRequest, FetchResponse)), False),
        (MessageFilter((), "a"), MessageFilter((FetchRequest,)), False),
        (MessageFilter((), None, "b"), MessageFilter((), "a", "b"), True),
    ],
)
def test_releasing_ends_the_rules_that_it_covers(wider: Any, narrower: Any, covers: bool) -> None:
    assert wider.covers(narrower) is covers


def test_held_messages_are_released_or_lost_rule_by_rule() -> None:
    """A follower whose fetch answers are held and then lost lags until its request times out."""
    where = TopicPartition("orders", 0)
    config = {"replica.socket.timeout.ms": 2000}
    topics = {"orders": {"assignment": {0: [1, 2]}}}
    with Simulation(brokers=2, topics=topics, config=config, trace=False) as simulation:
        simulation.run_for(1000)
        gate = MessageGate(simulation.running)
        held = simulation.runtime.network
        gate.hold((FetchResponse,), 1, 2)
        gate.hold((LeaderAndIsrRequest,), None, None)
        producer = simulation.producer(acks=-1)
        producer.produce(where, b"m1")
        simulation.run_for(100)
        assert held.held_count == 1
        gate.release((LeaderAndIsrRequest,), None, None)
        assert held.held_count == 1, "released something else"
        gate.lose((FetchResponse,), 1, 2)
        assert held.held_count == 0
        simulation.run_for(1000)
        assert producer.acknowledged == 0
        simulation.run_for(3000)
        assert producer.acknowledged == 1, "the follower asked again"

        gate.hold((FetchResponse,), 1, 2)
        producer.produce(where, b"m2")
        simulation.run_for(100)
        assert producer.acknowledged == 1
        gate.release((), None, None)
        simulation.run_for(10)
        assert producer.acknowledged == 2
