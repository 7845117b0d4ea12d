"""Scenario files: what they may contain, and how wrong ones are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fakekafka.scenarios.actions import ACTIONS
from fakekafka.scenarios.conditions import Condition
from fakekafka.scenarios.context import ScenarioError
from fakekafka.scenarios.file import expand_matrix, load_scenario, parse_scenario, with_parameters
from fakekafka.scenarios.spec import ScenarioSpec
from fakekafka.testing.handles.roles import BrokerReference
from fakekafka.tests.support.paths import ROOT

EXAMPLES = ROOT / "examples" / "scenarios"
BASE = """
[cluster]
brokers = 3
zookeepers = 3
[cluster.topics.orders]
partitions = 2
[cluster.topics.audit]
assignment = [[1, 2], [2, 3]]
"""


def parse(text: str) -> ScenarioSpec:
    return parse_scenario(BASE + text, "run.toml")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_examples_are_valid(path: Path) -> None:
    """Every example loads, is named like its file, and has expectations (a story after every
    step)."""
    spec = load_scenario(path)
    assert spec.name == path.stem
    assert spec.description
    if spec.story is None:
        assert spec.expect
        assert spec.workloads
    else:
        assert all(step.expect.replicas or step.expect.answers for step in spec.story.steps)
    assert parse_scenario(spec.text, spec.source, spec.parameters) == spec
    assert len(expand_matrix(spec)) >= 1


def test_three_examples_are_there() -> None:
    """The examples include a failover, an asymmetric partition and a rolling restart."""
    names = {path.stem for path in EXAMPLES.glob("*.toml")}
    assert {"failover", "asymmetric_partition", "rolling_restart"} <= names


def test_the_run_of_the_determinism_check_has_faults_of_many_kinds() -> None:
    """The determinism check has five brokers, three partitions with three replicas, and sixty
    virtual seconds."""
    spec = load_scenario(EXAMPLES / "asymmetric_partition.toml")
    (topic,) = spec.cluster.topics
    assert (spec.cluster.brokers, topic.partitions, topic.replication_factor) == (5, 3, 3)
    assert spec.stop.at_ms == 60_000
    actions = {fault.action for fault in spec.faults}
    assert {"kill", "start", "partition"} <= actions
    assert any(f.arguments.get("both_ways") is False for f in spec.faults)


def test_defaults() -> None:
    """An empty scenario is valid and has the defaults."""
    spec = parse_scenario("", "empty.toml")
    assert spec.name == "empty"
    assert spec.cluster.brokers == 3
    assert spec.stop.at_ms == 60_000
    assert spec.network.latency == {"constant_ms": 0.25}


def test_kafka_names_need_no_quotes() -> None:
    """Dotted keys, which TOML reads as tables, become Kafka's dotted names again."""
    spec = parse_scenario(
        "cluster.config.zookeeper.session.timeout.ms = 6000\n"
        'cluster.config."replica.lag.time.max.ms" = 9000\n'
        "[cluster.topics.t]\nconfig.min.insync.replicas = 2\nconfig.preallocate = true"
    )
    assert spec.cluster.config == {
        "zookeeper.session.timeout.ms": 6000,
        "replica.lag.time.max.ms": 9000,
    }
    assert spec.cluster.topics[0].config == {"min.insync.replicas": "2", "preallocate": "true"}


def test_assignment_determines_the_counts() -> None:
    """The lists of an assignment determine the numbers of partitions and replicas."""
    audit = parse("").cluster.topics[1]
    assert (audit.partitions, audit.replication_factor) == (2, 2)
    assert audit.assignment == ((1, 2), (2, 3))


def test_workload() -> None:
    """A workload may be an open or a closed loop, with sizes and acks."""
    spec = parse(
        '[[workload]]\ntopic = "orders"\nrate_per_s = 50\nrecord_bytes = [10, 20]\nacks = 1\n'
        '[[workload]]\ntopic = "audit"\nmodel = "closed"\nin_flight = 4\npartitions = [1]'
    )
    one, other = spec.workloads
    assert (one.acks, one.idempotent, one.record_bytes, one.name) == (
        1,
        False,
        (10, 20),
        "workload-1",
    )
    assert (other.model, other.in_flight, other.acks, other.partitions) == ("closed", 4, -1, (1,))
    assert other.idempotent


def test_faults_with_time_and_condition() -> None:
    """A fault acts at a time or on a condition, once or repeatedly."""
    spec = parse(
        '[[faults]]\nat_ms = 5\naction = "kill"\nbroker = "leader:orders-0"\n'
        "times = 3\nevery_ms = 100\n"
        '[[faults]]\nwhen = "alive(1)"\nafter_ms = 7\naction = "elect_leaders"\n'
        'election = "unclean"\npartitions = ["orders-1"]\nexpect = "alive(2)"'
    )
    kill, elect = spec.faults
    assert (kill.broker, kill.times, kill.every_ms) == (BrokerReference("leader:orders-0"), 3, 100)
    assert (elect.when, elect.after_ms) == (Condition("alive(1)"), 7)
    assert elect.arguments == {"election": "unclean", "partitions": [("orders", 1)]}
    assert elect.expect == (Condition("alive(2)"),)


GOOD_FAULTS: dict[str, tuple[str, dict[str, Any]]] = {
    "isolate": ('machine = "zk-2"', {"machine": "zk-2"}),
    "partition": ("groups = [[1], [2, 'zk-1']]", {"groups": [[1], [2, "zk-1"]], "both_ways": True}),
    "drop": (
        "probability = 0.5\nsource = 1\ntarget = 2",
        {"probability": 0.5, "source": 1, "target": 2},
    ),
    "restore": ("source = 1", {"source": 1, "target": None}),
    "bandwidth": ("mb_per_s = 10", {"mb_per_s": 10.0}),
    "latency": ("latency = {uniform_ms = [1, 2]}", {"uniform_ms": (1.0, 2.0)}),
    "reassign": ("replicas = {orders-1 = [2, 3]}", {"targets": {("orders", 1): [2, 3]}}),
    "kill_zookeeper": ("server = 3", {"server": 3}),
    "start_zookeeper": ("", {"server": 1}),
    "inject": (
        'api = "Fetch"\nerror = "NOT_LEADER_OR_FOLLOWER"\nrequests = 2\nbroker = 1',
        {
            "api": "Fetch",
            "error": "NOT_LEADER_OR_FOLLOWER",
            "times": 2,
            "delay_ms": 0.0,
            "disconnect": False,
            "broker": 1,
            "nth": 1,
        },
    ),
    "note": ('text = "here it comes"', {"text": "here it comes"}),
    "heal": ("", {}),
    "fail_log_dir": ("broker = 1", {"directory": 0}),
    "set_clock_rate": ("broker = 2\nrate = 1.02", {"rate": 1.02}),
    "set_zookeeper_clock_rate": ("rate = 0.95", {"server": 1, "rate": 0.95}),
    "shift_clock": ("broker = 2\nshift_ms = -500", {"shift_ms": -500.0}),
    "power_off": ('broker = "controller"\ntorn = true', {"torn": True}),
}


@pytest.mark.parametrize("action", GOOD_FAULTS)
def test_fault_arguments(action: str) -> None:
    """Each action has its own keys."""
    text, arguments = GOOD_FAULTS[action]
    (fault,) = parse(f'[[faults]]\nat_ms = 1\naction = "{action}"\n{text}').faults
    assert fault.arguments == arguments


@pytest.mark.parametrize("action", [name for name, one in ACTIONS.items() if one.is_about_broker])
def test_actions_about_a_broker_need_one(action: str) -> None:
    """An action about a broker that names none is refused with the key and the valid forms."""
    with pytest.raises(
        ScenarioError, match=r"faults\[0\]\.broker: is missing; write a broker id, or a role"
    ):
        parse(f'[[faults]]\nat_ms = 1\naction = "{action}"')


WRONG = {
    "[clutser]": r"run.toml: clutser: unknown key; did you mean 'cluster'\?",
    "[stop]\nat = 5": r"stop.at: unknown key; did you mean 'at_ms'\?",
    "[stop]\nat_ms = 'soon'": "must be a finite number of milliseconds >= 0, not 'soon'",
    "[stop]\nat_ms = nan": "stop.at_ms: must be a finite number",
    "[stop]\nat_ms = -1": "stop.at_ms: must be a finite number of milliseconds >= 0, not -1",
    "[stop]\nwhen = 'leader(1'": r"stop.when: expression 'leader\(1'",
    "[stop]\nwhen = 'leadr(1)'": r"unknown function leadr\(\) .*did you mean leader\(\)\?",
    "[stop]\nsettle = 1": "stop.settle: must be true or false",
    "[network]\nlos = 0.1": r"network.los: unknown key; did you mean 'loss'\?",
    "[network]\nloss = 1.5": "network.loss: must be a number from 0 to 1, not 1.5",
    "[network]\nlatency = {}": "network.latency: give exactly one of",
    "[network]\nlatency = {constant_ms = 1, uniform_ms = [1, 2]}": "give exactly one of",
    "[network]\nlatency = {uniform_ms = [2, 1]}": r"lowest first, such as \[1, 5\], not \[2, 1\]",
    "[network]\nlatency = {lognormal_ms = 3}": r"a sigma, such as \[0.5, 0.4\], not 3",
    "[network]\nlatency = {const_ms = 3}": r"did you mean 'constant_ms'\?",
    "[[network.links]]\nsource = 9\ntarget = 1": r"links\[0\].source: no broker 9; ids are 1 to 3",
    "[[workload]]\ntopic = 'order'": r"workload\[0\].topic: 'order' is not in cluster.topics; did",
    "[[workload]]\nrate_per_s = 1": r"workload\[0\].topic: '' is not in cluster.topics; there are",
    "[[workload]]\ntopic='orders'\nacks = 2": r"acks: must be 0, 1 or 'all', not 2",
    "[[workload]]\ntopic='orders'\nacks = 1\nidempotent = true": "idempotent: needs acks = 'all'",
    "[[workload]]\ntopic='orders'\nmodel = 'opened'": r"'open' or 'closed', not 'opened'; did",
    "[[workload]]\ntopic='orders'\nin_flight = 2": "belongs to model = 'closed'",
    "[[workload]]\ntopic='orders'\nmodel = 'closed'\nrate_per_s = 2": "belongs to model = 'open'",
    "[[workload]]\ntopic='orders'\nrate_per_s = 2e6": "from 0.001 to 1,000,000, not 2",
    "[[workload]]\ntopic='orders'\nmodel = 'closed'\nacks = 0": "acks: must not be 0 in a clos",
    "[[workload]]\ntopic='orders'\nrecord_bytes = [5, 1]": r"smallest, largest\], not \[5, 1\]",
    "[[workload]]\ntopic='orders'\npartitions = [2]": "orders has partitions 0 to 1, not 2",
    "[[workload]]\ntopic='orders'\nstart_ms = 5\nstop_ms = 1": "stop_ms: must be at least 5",
    "[[faults]]\nat_ms = 1": r"faults\[0\].action: is missing; there are kill",
    "[[faults]]\nat_ms = 1\naction = 'kil'": r"'kil' is not possible; did you mean 'kill'\?",
    "[[faults]]\naction = 'heal'": "a fault needs at_ms or when",
    "[[faults]]\nat_ms = 99999\naction = 'heal'": "from 0 to 60000, not 99999",
    "[[faults]]\nat_ms = 1\nafter_ms = 1\naction = 'heal'": "after_ms: counts from the condition",
    "[[faults]]\nat_ms = 1\ntimes = 2\naction = 'heal'": "times > 1 needs it",
    "[[faults]]\nat_ms = 1\naction = 'heal'\nbroker = 1": r"faults\[0\].broker: unknown key",
    "[[faults]]\nat_ms = 1\naction = 'kill'\nbroker = 4": "no broker 4; ids are 1 to 3",
    "[[faults]]\nat_ms = 1\naction = 'kill'\nbroker = 'boss'": "names no broker; write an id",
    "[[faults]]\nat_ms = 1\naction = 'kill'\nbroker = 'leader:orders-7'": "0 to 1, not 7",
    "[[faults]]\nat_ms = 1\naction = 'kill'\nbroker = true": "must be a broker id, or a role",
    "[[faults]]\nat_ms = 1\naction = 'partition'\ngroups = [[1]]": "needs two groups or more",
    "[[faults]]\nat_ms = 1\naction = 'partition'\ngroups = [[1], [1]]": "1 is in two groups",
    "[[faults]]\nat_ms = 1\naction = 'isolate'\nmachine = 'zk-9'": "there are zk-1 to zk-3",
    "[[faults]]\nat_ms = 1\naction = 'drop'": "probability: is missing",
    "[[faults]]\nat_ms = 1\naction = 'drop'\nprobability = 1\nsource = 1": "a link needs both",
    "[[faults]]\nat_ms = 1\naction = 'reassign'": "replicas: is missing",
    "[[faults]]\nat_ms = 1\naction = 'reassign'\nreplicas = {orders-0 = [1, 1]}": "different",
    "[[faults]]\nat_ms = 1\naction = 'kill_zookeeper'\nserver = 4": "no ZooKeeper 4",
    "[[faults]]\nat_ms = 1\naction = 'inject'\napi = 'Fetsh'\ndisconnect = true": "no API 'Fetsh'",
    "[[faults]]\nat_ms = 1\naction = 'inject'\napi = 'Fetch'": "inject needs an error, a delay_ms",
    "[[faults]]\nat_ms = 1\naction = 'inject'\napi = 'Fetch'\nerror = 'NOPE'": "code 'NOPE'",
    "[[faults]]\nat_ms = 1\naction = 'note'": "text: is missing",
    "[[expect]]\nat_ms = 5": r"expect\[0\].that: is missing",
    "[[expect]]\nthat = 5": r"expect\[0\].that: must be a condition, such as",
    "[[expect]]\nthat = 'a.b.c'": "unknown name 'a'",
    "metrics = ['acknowledge']": r"metrics: unknown metric 'acknowledge'; did you mean",
    "[matrix]\ncluster.brokers = 5": "matrix.cluster.brokers: must be a list of values",
    "[matrix]\ncluster.brokrs = [5]": r"value 5: .*cluster.brokrs: unknown key; did you mean",
    "[matrix]\nfaults.0.at_ms = [5]": "value 5: run.toml: faults.0.at_ms: faults has no entry",
    "seed = 'x'": "seed: must be a whole number >= 0, not 'x'",
    "cluster = 5": "not valid TOML",
    "x = ": r"^run.toml is not valid TOML: Invalid value \(at line 1, column 5\)$",
}


@pytest.mark.parametrize(("text", "message"), WRONG.items(), ids=range(len(WRONG)))
def test_refused(text: str, message: str) -> None:
    """Every refusal names the file, the key, and what would be valid."""
    lines = text.partition("\n")[0]
    base = text + "\n" + BASE if not lines.startswith("[") else BASE + text
    with pytest.raises(ScenarioError, match=message) as caught:
        parse_scenario(base, "run.toml")
    assert str(caught.value).startswith(("run.toml: ", "run.toml is not valid TOML: "))


WRONG_CLUSTER = {
    "brokers = 0": "cluster.brokers: must be a whole number from 1 to 10000, not 0",
    "brokers = 2.5": "cluster.brokers: must be a whole number",
    "brokers = true": "cluster.brokers: must be a whole number",
    "kafka_version = '4.0'": "kafka_version: '4.0' is not emulated; use one of '0.10'",
    "racks = ['a']": "names 1 racks for 3 brokers",
    "config.zookeper.session.timeout.ms = 1": "did you mean 'zookeeper.session.timeout.ms'",
    "config.zookeeper.session.timeout.ms = 'x'": "cluster.config: .*Not a number",
    "topics.t.replication_factor = 4": "4 replicas need 4 brokers, not 3",
    "topics.t.partitions = 0": "topics.t.partitions: must be a whole number from 1 to 1,000,000",
    "topics.t.partition = 1": r"cluster.topics.t.partition: unknown key; did you mean 'partitions'",
    "topics.t.config.nope = 1": "Unknown topic config name: nope",
    "topics.t.assignment = [[4]]": "no broker 4; ids are 1 to 3",
    "topics.t.assignment = [[1, 1]]": r"assignment\[0\]: must be a list of different broker ids",
    "topics.t = {assignment = [[1]], partitions = 1}": "cannot be combined with partitions",
    "topics.t = 5": "cluster.topics.t: must be a table, not 5",
}


@pytest.mark.parametrize(("text", "message"), WRONG_CLUSTER.items())
def test_refused_clusters(text: str, message: str) -> None:
    """An invalid cluster is refused before any broker starts."""
    with pytest.raises(ScenarioError, match=message):
        parse_scenario(f"[cluster]\n{text}", "run.toml")


def test_missing_file(tmp_path: Path) -> None:
    """A missing file is refused without a traceback."""
    with pytest.raises(ScenarioError, match=r"none\.toml cannot be read: No such file"):
        load_scenario(tmp_path / "none.toml")


def test_matrix_yields_every_combination() -> None:
    """A matrix yields every combination, the last key changing fastest, each with its own
    parameters."""
    spec = parse(
        "[[faults]]\nat_ms = 1\naction = 'heal'\n"
        "[matrix]\ncluster.brokers = [3, 5]\nfaults.0.at_ms = [10, 20]\n"
    )
    expanded = expand_matrix(spec)
    assert [tuple(s.parameters.values()) for s in expanded] == [(3, 10), (3, 20), (5, 10), (5, 20)]
    assert [(s.cluster.brokers, s.faults[0].at_ms) for s in expanded] == [
        (3, 10), (3, 20), (5, 10), (5, 20),
    ]  # fmt: skip
    assert all(not s.matrix for s in expanded)


def test_parameters_reach_kafka_names_and_replace_them() -> None:
    """The part of a parameter after ``config`` is one dotted name and replaces the file's value,
    however that was written."""
    spec = parse_scenario("cluster.config.zookeeper.session.timeout.ms = 6000")
    changed = with_parameters(spec, {"cluster.config.zookeeper.session.timeout.ms": 9000})
    assert changed.cluster.config == {"zookeeper.session.timeout.ms": 9000}
    again = parse_scenario(changed.text, parameters=changed.parameters)
    assert again.cluster.config == changed.cluster.config


def test_matrix_of_values_that_only_go_together() -> None:
    """Values of a matrix are valid in combination only: five replicas need five brokers."""
    text = (
        "[cluster.topics.t]\nreplication_factor = 3\n"
        "[matrix]\ncluster.brokers = [3, 5]\ncluster.topics.t.partitions = [1, 2]"
    )
    assert len(expand_matrix(parse_scenario(text))) == 4


class FakeView:
    leader = 2
    isr = (2, 3)
    replicas = (1, 2, 3)
    high_watermark = 7


class FakeBroker:
    def __init__(self, number: int) -> None:
        self.is_alive = number != 1


class FakeController:
    id = 3
    epoch = 4


class FakeSimulation:
    """The part of a simulation that conditions use."""

    now_ms = 1234.5
    broker_ids = (1, 2, 3)
    controller = FakeController()

    def partition(self, topic: str, number: int) -> FakeView:
        from fakekafka.protocol.errors import UsageError

        if topic != "orders":
            raise UsageError(f"there is no topic {topic!r}")
        return FakeView()

    def broker(self, number: int) -> FakeBroker:
        return FakeBroker(number)


CONDITIONS = {
    "leader('orders', 0) == 2": True,
    "leader('orders', 0) != 2": False,
    "isr('orders', 0) == [2, 3]": True,
    "isr('orders', 0) == (2, 3)": True,
    "1 in isr('orders', 0)": False,
    "len(isr('orders', 0)) == 2 and now_ms > 1000": True,
    "leader('nothing', 0) != 2": False,
    "alive(1) or alive(2)": True,
    "alive_brokers == [2, 3]": True,
    "controller == 3 and controller_epoch == 4": True,
    "high_watermark('orders', 0) >= 7": True,
    "sorted(isr('orders', 0))[0] == 2": True,
}


@pytest.mark.parametrize(("text", "holds"), CONDITIONS.items())
def test_conditions(text: str, holds: bool) -> None:
    """A condition about something that does not exist (yet) is false, not an error."""
    assert Condition(text).holds(FakeSimulation()) is holds
