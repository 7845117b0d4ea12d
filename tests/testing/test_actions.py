"""The table of actions: every one can be written in a scenario, done, and is in the reference."""

from __future__ import annotations

import re

import pytest
from fakekafka.testing.actions import ACTIONS
from fakekafka.testing.control_api.operations import OPERATIONS
from fakekafka.testing.scenarios.file import parse_scenario
from fakekafka.testing.scenarios.run import ScenarioRun
from fakekafka.testing.scenarios.story.actions import STEP_ACTIONS
from fakekafka.testing.scenarios.table import ScenarioError, toml_text

HEAD = """
[cluster]
brokers = 3
[cluster.topics.orders]
partitions = 1
[stop]
at_ms = 1000
settle = false
"""
BEFORE = {"resume": "pause", "start": "kill", "start_zookeeper": "kill_zookeeper"}
"""What has to be done first."""


def fault(name: str, at_ms: int) -> str:
    keys = {"at_ms": at_ms, "action": name, **ACTIONS[name].example}
    return "[[faults]]\n" + "".join(f"{key} = {toml_text([v])[1:-1]}\n" for key, v in keys.items())


@pytest.mark.parametrize("name", ACTIONS)
def test_the_example_of_every_action_is_read_and_done(name: str) -> None:
    """What stands in the table is no prose: a scenario that has it runs without a problem."""
    faults = [*([BEFORE[name]] if name in BEFORE else []), name]
    text = HEAD + "".join(fault(one, 100 + 100 * n) for n, one in enumerate(faults))
    run = ScenarioRun(parse_scenario(text, f"{name}.toml"))
    assert run.run().problems == []


@pytest.mark.parametrize("name", ACTIONS)
def test_an_action_takes_no_key_but_its_own(name: str) -> None:
    """Every reader is strict, and names the key at fault."""
    text = HEAD + fault(name, 100) + "wrong_key = 1\n"
    with pytest.raises(ScenarioError, match=r"faults\[0\]\.wrong_key: unknown key"):
        parse_scenario(text, f"{name}.toml")


def test_the_nearest_action_is_named() -> None:
    """A slip of the pen is answered with what was meant."""
    with pytest.raises(ScenarioError, match="did you mean 'pause'"):
        parse_scenario(HEAD + fault("pause", 1).replace('"pause"', '"pauze"'), "slip.toml")


def test_actions_that_languages_share_have_one_summary() -> None:
    """The document of the control API takes its words from the table."""
    summaries = {operation.summary for operation in OPERATIONS}
    shared = {"kill", "restart", "heal", "inject", "partition", "elect_leaders", "expire_session"}
    assert {ACTIONS[name].summary for name in shared} <= summaries


def test_a_story_shares_what_it_calls_by_the_same_name() -> None:
    """A step's own actions are those that are about clients, messages, time or its partition."""
    own = set(STEP_ACTIONS) - set(ACTIONS)
    assert own == {
        "alter_config", "ask_epoch", "ask_leader", "create_topic", "cut", "elect", "flush", "hold",
        "lose", "produce", "read", "release", "run",
    }  # fmt: skip


def test_summaries_are_short() -> None:
    """One phrase each, without a full stop."""
    for action in ACTIONS.values():
        assert re.fullmatch(r"[a-z][^.]{5,60}", action.summary), action.summary
