"""The table of actions: a scenario can state and perform each, and the reference has it."""

from __future__ import annotations

import inspect
import itertools
import re

import pytest
from fakekafka.control.operations import OPERATIONS
from fakekafka.scenarios.actions import ACTIONS
from fakekafka.scenarios.context import ScenarioError
from fakekafka.scenarios.file import parse_scenario
from fakekafka.scenarios.run import ScenarioRun
from fakekafka.scenarios.story.actions import STEP_ACTIONS
from fakekafka.testing.parameters.parameter import NO_DEFAULT
from fakekafka.testing.parameters.toml_values import toml_value
from fakekafka.tests.support.paths import ROOT

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
"""The action that has to precede each of these."""


def fault(name: str, at_ms: int) -> str:
    keys = {"at_ms": at_ms, "action": name, **ACTIONS[name].example}
    return "[[faults]]\n" + "".join(f"{key} = {toml_value(v)}\n" for key, v in keys.items())


@pytest.mark.parametrize("name", ACTIONS)
def test_the_example_of_every_action_is_read_and_done(name: str) -> None:
    """The example of every action is valid: a scenario that contains it runs without a problem."""
    faults = [*([BEFORE[name]] if name in BEFORE else []), name]
    text = HEAD + "".join(fault(one, 100 + 100 * n) for n, one in enumerate(faults))
    run = ScenarioRun(parse_scenario(text, f"{name}.toml"))
    assert run.run().problems == []


@pytest.mark.parametrize("name", ACTIONS)
def test_an_action_takes_no_key_but_its_own(name: str) -> None:
    """The reader of every action refuses an unknown key and names it."""
    text = HEAD + fault(name, 100) + "wrong_key = 1\n"
    with pytest.raises(ScenarioError, match=r"faults\[0\]\.wrong_key: unknown key"):
        parse_scenario(text, f"{name}.toml")


def test_the_nearest_action_is_named() -> None:
    """A misspelt action is refused with the nearest action's name."""
    with pytest.raises(ScenarioError, match="did you mean 'pause'"):
        parse_scenario(HEAD + fault("pause", 1).replace('"pause"', '"pauze"'), "slip.toml")


def test_actions_that_languages_share_have_one_summary() -> None:
    """The document of the control API takes the summaries of shared actions from the table."""
    summaries = {operation.summary for operation in OPERATIONS}
    shared = {
        "kill", "restart", "heal", "inject", "partition", "elect_leaders", "expire_session",
        "create_topic", "delete_topic", "create_partitions", "alter_config",
    }  # fmt: skip
    assert {ACTIONS[name].summary for name in shared} <= summaries


def test_operations_of_the_control_api_beyond_the_table_are_no_actions() -> None:
    """The control API offers every action of the table. Beside them it writes records and znodes,
    waits, asks brokers, moves replicas between directories, makes certificates, and has ids for the
    faults it starts."""
    known = {action.summary for action in ACTIONS.values()}
    posts = {f"{o.method} {o.path}" for o in OPERATIONS if o.method != "GET"}
    acting = {f"{o.method} {o.path}" for o in OPERATIONS if o.summary in known}
    assert posts - acting == {
        "POST /wait", "POST /reset", "POST /reset_offsets", "POST /wait_for_group",
        "POST /brokers/{broker}/ask", "POST /client_certificates",
        "POST /brokers/{broker}/move_replica", "POST /brokers/{broker}/repair_log_dir",
        "POST /controller/move_to/{broker}", "POST /create_topics",
        "POST /topics/{topic}/{partition}/records", "DELETE /groups/{group}",
        "POST /network/holds", "POST /network/holds/{hold}/release",
        "DELETE /network/holds/{hold}", "POST /network/release",
        "DELETE /injections/{injection}", "POST /zookeeper/node", "PUT /zookeeper/node",
        "DELETE /zookeeper/node",
    }  # fmt: skip
    assert known - {o.summary for o in OPERATIONS} == set()


CHOOSE_THE_HANDLE = {"BrokerHandle": {"broker"}, "ZooKeeperServerHandle": {"server"}}
BESIDE_THE_METHOD = {"shutdown": {"wait"}, "inject": {"errors"}}
"""Parameters for which Python has a separate method, or another form of argument."""
UNITS = {"_ms": "millisecond", "_s": "second", "mb_per_s": "megabytes per second"}


@pytest.mark.parametrize("name", [name for name, one in ACTIONS.items() if one.method is not None])
def test_handles_and_table_agree(name: str) -> None:
    """The method of an action takes its parameters by the same names, with the same defaults and
    types; names end with the unit."""
    action = ACTIONS[name]
    assert action.method is not None
    taken = dict(list(inspect.signature(action.method).parameters.items())[1:])
    owner = action.method.__qualname__.partition(".")[0]
    apart = CHOOSE_THE_HANDLE.get(owner, set()) | BESIDE_THE_METHOD.get(name, set())
    parameters = {one.name: one for one in action.parameters if one.name not in apart}
    assert set(parameters) == set(taken)
    for its, parameter in parameters.items():
        default, annotation = taken[its].default, str(taken[its].annotation)
        if parameter.default is not NO_DEFAULT and default is not inspect.Parameter.empty:
            assert parameter.default == default, its
        if parameter.kind.type is not object:
            assert annotation.startswith(parameter.kind.type.__name__), its
        units = [unit for end, unit in UNITS.items() if its.endswith(end)]
        assert not units or units[-1] in parameter.kind.words, its


def rows(page: str, heading: str) -> dict[str, str]:
    """Map each name to its row of the table of actions in a document."""
    lines = (ROOT / "docs" / page).read_text("utf-8").partition(heading)[2].splitlines()
    found = {}
    for line in itertools.takewhile(lambda text: text.startswith("|"), lines[2:]):
        for name in re.findall(r"`(\w+)`", line.split("|")[1]):
            assert name not in found, f"{page} has {name} twice"
            found[name] = line
    return found


def test_the_reference_has_the_whole_table_with_every_key() -> None:
    """The reference has every action and no other, and each row has the keys of the example."""
    told = rows("reference/scenarios.md", "| `action` | its keys |")
    assert set(told) == set(ACTIONS)
    keys = {(name, key) for name, action in ACTIONS.items() for key in action.example}
    assert [(name, key) for name, key in sorted(keys) if f"`{key}`" not in told[name]] == []


def test_the_guide_has_every_action_of_a_step() -> None:
    """The guide of simulations has every action of stories."""
    assert set(rows("guides/simulation.md", "| action | its keys |")) == set(STEP_ACTIONS)


def test_only_actions_about_clients_messages_time_and_the_steps_partition_are_a_storys_own() -> (
    None
):
    """The other actions of stories are those about clients, messages, time or the step's own
    partition."""
    own = set(STEP_ACTIONS) - set(ACTIONS)
    assert own == {
        "ask_epoch", "ask_leader", "cut", "elect", "flush", "hold", "lose", "produce", "read",
        "release", "run",
    }  # fmt: skip


def test_summaries_are_short() -> None:
    """Each summary is one phrase without a full stop."""
    for action in ACTIONS.values():
        assert re.fullmatch(r"[a-z][^.]{5,60}", action.summary), action.summary
