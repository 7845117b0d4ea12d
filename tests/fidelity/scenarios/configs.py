"""Configurations of topics and brokers are changed and described, and take effect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fakekafka.tests.fidelity.sides.side import ClusterShape
from fakekafka.tests.fidelity.stage.declaring import EVERY, SINCE_1_1, SINCE_2_8, Catalogue
from fakekafka.tests.fidelity.stage.stage import Stage

SCENARIOS = Catalogue()
scenario = SCENARIOS.scenario
_TOPIC, _BROKER, _LOGGER = 2, 4, 8
_SET, _DELETE, _APPEND, _SUBTRACT = 0, 1, 2, 3
Change = tuple[str, int, str | None]
_OWN = ClusterShape(brokers=2)
"""A shape of its own, because dynamic configurations of brokers remain."""
_DEFAULTS = ClusterShape(
    brokers=1,
    racks=(),
    config=(
        *((name, None) for name in ("auto.leader.rebalance.enable", "replica.fetch.backoff.ms")),
        *((name, None) for name in ("controlled.shutdown.retry.backoff.ms", "delete.topic.enable")),
        *((name, None) for name in ("replica.lag.time.max.ms", "unclean.leader.election.enable")),
        *((name, None) for name in ("offsets.topic.num.partitions",)),
        *((name, None) for name in ("group.initial.rebalance.delay.ms",)),
        *((name, None) for name in ("zookeeper.session.timeout.ms",)),
        *((name, None) for name in ("transaction.state.log.num.partitions",)),
        ("log.retention.ms", "600000"),
        ("num.partitions", "3"),
    ),
)
_OF_THE_MACHINE = (
    *("listeners", "advertised.listeners", "log.dirs", "log.dir", "zookeeper.connect", "port"),
    *("advertised.port", "host.name", "advertised.host.name", "node.id", "broker.id"),
)


def change(
    stage: Stage,
    label: str,
    name: str,
    *changes: Change,
    kind: int = _TOPIC,
    broker: int | None = None,
    **others: Any,
) -> None:
    configs = [{"name": n, "configOperation": o, "value": v} for n, o, v in changes]
    stage.request(
        label,
        broker,
        "IncrementalAlterConfigs",
        resources=[{"resourceType": kind, "resourceName": name, "configs": configs}],
        **{"validateOnly": False, **others},
    )


def replace(
    stage: Stage,
    label: str,
    name: str,
    config: dict[str, str | None],
    kind: int = _TOPIC,
    broker: int | None = None,
    **others: Any,
) -> None:
    configs = [{"name": n, "value": v} for n, v in config.items()]
    stage.request(
        label,
        broker,
        "AlterConfigs",
        resources=[{"resourceType": kind, "resourceName": name, "configs": configs}],
        **{"validateOnly": False, **others},
    )


def describe(
    stage: Stage,
    label: str,
    name: str,
    keys: Sequence[str] | None,
    kind: int = _TOPIC,
    broker: int | None = None,
    *,
    synonyms: bool = True,
) -> None:
    asked = {"resourceType": kind, "resourceName": name, "configurationKeys": keys}
    tree = stage.ask(broker, "DescribeConfigs", resources=[asked], includeSynonyms=synonyms)
    if isinstance(tree, dict):
        for result in tree["results"]:
            result["configs"] = [
                entry for entry in result["configs"] if entry["name"] not in _OF_THE_MACHINE
            ]
    stage.write(label, stage.normalised(tree))


@scenario(SINCE_2_8)
def topic_configs_change_one_by_one(stage: Stage) -> None:
    """A topic's configurations are set, appended to, subtracted from and deleted (KIP-339)."""
    stage.create("c", ((1, 2),), {"retention.ms": "1000000"})
    change(stage, "set", "c", ("retention.ms", _SET, "5000"), ("cleanup.policy", _SET, "compact"))
    stage.write("stored", stage.observer.json_of("/config/topics/c"))
    change(stage, "append", "c", ("cleanup.policy", _APPEND, "delete"))
    stage.write("stored after append", stage.observer.json_of("/config/topics/c"))
    change(stage, "append again", "c", ("cleanup.policy", _APPEND, "delete"))
    change(stage, "subtract", "c", ("cleanup.policy", _SUBTRACT, "compact"))
    change(stage, "subtract what is not there", "c", ("cleanup.policy", _SUBTRACT, "compact"))
    change(stage, "delete", "c", ("retention.ms", _DELETE, None))
    change(stage, "delete what is not set", "c", ("segment.ms", _DELETE, None))
    stage.write("stored in the end", stage.observer.json_of("/config/topics/c"))
    describe(stage, "described", "c", ["retention.ms", "cleanup.policy", "segment.ms"])


@scenario(SINCE_2_8)
def topic_config_change_errors(stage: Stage) -> None:
    """IncrementalAlterConfigs is sent invalid names, values, operations and topics."""
    stage.create("c", ((1, 2),))
    errors: dict[str, list[Change]] = {
        "append to a number": [("retention.ms", _APPEND, "1")],
        "subtract from a number": [("retention.ms", _SUBTRACT, "1")],
        "bad value": [("retention.ms", _SET, "x")],
        "out of range": [("retention.ms", _SET, "-2")],
        "unknown name": [("nope", _SET, "1")],
        "no value": [("retention.ms", _SET, None)],
        "twice": [("retention.ms", _SET, "1"), ("retention.ms", _SET, "2")],
        "bad operation": [("retention.ms", 7, "1")],
        "nothing": [],
        "good and bad": [("retention.ms", _SET, "1"), ("segment.ms", _SET, "x")],
        "throttle": [("leader.replication.throttled.replicas", _SET, "0:1,1:2")],
        "bad throttle": [("leader.replication.throttled.replicas", _SET, "x")],
        "append to a throttle": [("leader.replication.throttled.replicas", _APPEND, "2:3")],
        "empty policy": [("cleanup.policy", _SET, "")],
    }
    for label, changes in errors.items():
        change(stage, label, "c", *changes)
    change(stage, "unknown topic", "nope", ("retention.ms", _SET, "1"))
    change(stage, "bad topic", "a b", ("retention.ms", _SET, "1"))
    change(stage, "no topic", "", ("retention.ms", _SET, "1"))
    change(stage, "bad kind", "c", ("retention.ms", _SET, "1"), kind=3)
    change(stage, "validated", "c", ("retention.ms", _SET, "77"), validateOnly=True)
    change(stage, "validated and bad", "c", ("retention.ms", _SET, "x"), validateOnly=True)
    stage.write("stored", stage.observer.json_of("/config/topics/c"))


@scenario(SINCE_1_1)
def topic_configs_are_replaced(stage: Stage) -> None:
    """AlterConfigs replaces all configurations of a topic, or refuses the new ones."""
    stage.create("c", ((1, 2),), {"retention.ms": "1000000"})
    replace(stage, "good", "c", {"min.insync.replicas": "2"})
    stage.write("stored", stage.observer.json_of("/config/topics/c"))
    replace(stage, "bad value", "c", {"min.insync.replicas": "x"})
    replace(stage, "unknown name", "c", {"nope": "x"})
    replace(stage, "no value", "c", {"retention.ms": None})
    replace(stage, "unknown topic", "nope", {"retention.ms": "1"})
    replace(stage, "bad topic", "a b", {"retention.ms": "1"})
    replace(stage, "bad kind", "c", {"retention.ms": "1"}, kind=3)
    replace(stage, "validated", "c", {"retention.ms": "1"}, validateOnly=True)
    replace(stage, "none", "c", {})
    stage.write("stored in the end", stage.observer.json_of("/config/topics/c"))


@scenario(SINCE_2_8, shape=_OWN, controller=None)
def broker_configs_change(stage: Stage) -> None:
    """Dynamic configurations of one broker and of all brokers are set, refused and deleted."""
    one = ("log.retention.ms", _SET, "77777")
    change(stage, "one", "2", one, kind=_BROKER, broker=2)
    change(stage, "all", "", ("log.cleaner.backoff.ms", _SET, "14000"), kind=_BROKER, broker=1)
    stage.pass_time(1)
    keys = ["log.retention.ms", "log.cleaner.backoff.ms", "num.partitions"]
    describe(stage, "described by 2", "2", keys, _BROKER, 2)
    describe(stage, "described by 1", "1", keys, _BROKER, 1)
    describe(stage, "the default", "", keys, _BROKER, 1)
    for label, name, asked in (
        ("another broker", "1", 2),
        ("unknown broker", "9", 2),
        ("no number", "x", 2),
    ):
        change(stage, label, name, one, kind=_BROKER, broker=asked)
    for label, changes in {
        "read-only": ("num.partitions", _SET, "7"),
        "unknown name": ("nope", _SET, "1"),
        "bad value": ("log.retention.ms", _SET, "x"),
        "only for one": ("listeners", _SET, "PLAINTEXT://:1"),
    }.items():
        change(stage, label, "2", changes, kind=_BROKER, broker=2)
    change(stage, "one undone", "2", ("log.retention.ms", _DELETE, None), kind=_BROKER, broker=2)
    undone = ("log.cleaner.backoff.ms", _DELETE, None)
    change(stage, "all undone", "", undone, kind=_BROKER, broker=1)
    stage.pass_time(3)
    describe(stage, "described in the end", "2", keys, _BROKER, 2)


@scenario(SINCE_2_8, shape=_OWN, controller=None)
def threads_of_a_broker_change(stage: Stage) -> None:
    """A thread pool can at most be doubled or halved by one change (KIP-226)."""
    for label, value in (("more", "9"), ("too many", "99"), ("too few", "1"), ("none", "0")):
        threads = ("num.io.threads", _SET, value)
        change(stage, label, "2", threads, kind=_BROKER, broker=2)


@scenario(SINCE_2_8, shape=_OWN, controller=None)
def a_broker_cannot_follow_the_default(stage: Stage) -> None:
    """A broker keeps its old thread count when it cannot adopt a new cluster-wide default."""
    keys = ["background.threads", "min.insync.replicas"]
    threads = "background.threads"

    def step(label: str, name: str, asked: int, *changes: Change) -> None:
        change(stage, label, name, *changes, kind=_BROKER, broker=asked)
        stage.pass_time(3)
        describe(stage, f"{label}: by 1", "1", keys, _BROKER, 1)
        describe(stage, f"{label}: by 2", "2", keys, _BROKER, 2)

    step("20 for one", "1", 1, (threads, _SET, "20"))
    step("40 for all", "", 1, (threads, _SET, "40"))
    step("something else", "2", 2, ("min.insync.replicas", _SET, "2"))
    step("11 for the other", "2", 2, (threads, _SET, "11"))
    step("and back", "2", 2, (threads, _DELETE, None))
    step("none for all", "", 1, (threads, _DELETE, None))
    step("something else once more", "2", 2, ("min.insync.replicas", _SET, "2"))
    step("undone by one", "1", 1, (threads, _DELETE, None))
    undone = [(name, _DELETE, None) for name in (threads, "min.insync.replicas")]
    step("undone by the other", "2", 2, *undone)


@scenario(SINCE_2_8, shape=_OWN, controller=None)
def several_broker_configs_are_wrong(stage: Stage) -> None:
    """Several broker configurations in one request are invalid; the first failed check answers."""
    pairs: dict[str, dict[str, str]] = {
        "two pools": {"num.io.threads": "99", "background.threads": "99"},
        "pool and cleaner": {"log.cleaner.threads": "9", "num.io.threads": "99"},
        "cleaner and listeners": {
            "log.cleaner.threads": "9",
            "listener.security.protocol.map": "PLAINTEXT:SSL",
        },
        "of a listener": {"listener.name.plaintext.connections.max.reauth.ms": "x"},
        "of a mechanism": {"listener.name.plaintext.plain.num.partitions": "x"},
        "addresses and times": {"log.roll.ms": "0", "max.connections.per.ip.overrides": "a"},
        "stores": {"ssl.keystore.location": "x", "ssl.truststore.location": "x"},
        "read-only": {"num.partitions": "7", "broker.rack": "x", "log.dirs": "x"},
        "threads of a listener": {"listener.name.plaintext.num.network.threads": "5"},
    }
    for label, values in pairs.items():
        changes = [(name, _SET, value) for name, value in values.items()]
        for name in ("2", ""):
            where = "one" if name else "all"
            asked = {"kind": _BROKER, "broker": 2, "validateOnly": True}
            change(stage, f"{label}, for {where}", name, *changes, **asked)
    # Configurations that only a listener has are compared with those of the file.
    stored = ("listener.name.plaintext.num.network.threads", _SET, "5")
    change(stage, "threads stored", "2", stored, kind=_BROKER, broker=2)
    stage.pass_time(3)
    provider = ("ssl.provider", _SET, "x")
    change(stage, "then a provider", "2", provider, kind=_BROKER, broker=2)
    gone = ("listener.name.plaintext.num.network.threads", _DELETE, None)
    change(stage, "threads gone", "2", gone, kind=_BROKER, broker=2)
    stage.pass_time(3)
    change(stage, "now a provider", "2", provider, kind=_BROKER, broker=2)
    undone = ("ssl.provider", _DELETE, None)
    change(stage, "undone", "2", undone, kind=_BROKER, broker=2)


@scenario(SINCE_1_1)
def configs_of_what_is_not_there_are_described(stage: Stage) -> None:
    """DescribeConfigs is asked for unknown topics, brokers, resource types and names."""
    stage.create("c", ((1, 2),), {"retention.ms": "5"})
    keys = ["min.insync.replicas", "retention.ms", "nope"]
    describe(stage, "some", "c", keys, broker=2)
    describe(stage, "without synonyms", "c", keys, broker=2, synonyms=False)
    describe(stage, "none", "c", [], broker=2)
    describe(stage, "unknown topic", "nope", None, broker=2)
    describe(stage, "bad topic", "a b", None, broker=2)
    describe(stage, "no topic", "", None, broker=2)
    describe(stage, "another broker", "3", None, _BROKER, 2)
    describe(stage, "no number", "x", None, _BROKER, 2)
    describe(stage, "bad kind", "x", None, 5, 2)


@scenario(SINCE_1_1, shape=_DEFAULTS, controller=None)
def configs_of_a_broker_are_described(stage: Stage) -> None:
    """All configurations of a broker are described, with Kafka's defaults."""
    describe(stage, "all", "1", None, _BROKER, 1)


@scenario(SINCE_1_1, shape=_DEFAULTS, controller=None)
def configs_of_a_topic_are_described(stage: Stage) -> None:
    """All configurations of a topic are described, with the broker's and Kafka's defaults."""
    stage.create("c", ((1,),), {"segment.ms": "1234", "cleanup.policy": "compact"})
    describe(stage, "all", "c", None, _TOPIC, 1)


@scenario(EVERY)
def minimum_of_in_sync_replicas(stage: Stage) -> None:
    """Brokers crash until acks=all fails; min.insync.replicas is then lowered and raised."""
    stage.create("m", ((1, 2, 3), (1, 2, 3)), {"min.insync.replicas": "2"})

    def write(label: str) -> None:
        stage.write(
            label, {f"acks {acks}": stage.produce("m", label, acks=acks) for acks in (-1, 1)}
        )

    write("three")
    stage.kill(2, look=False)
    write("two")
    stage.kill(3)
    write("one")
    stage.set_config_znode("topics", "m", {"min.insync.replicas": "1"})
    stage.pass_time(1)
    write("one is enough")
    stage.set_config_znode("topics", "m", {"min.insync.replicas": "3"})
    stage.pass_time(1)
    stage.start(2, look=False)
    stage.start(3)
    write("three are needed")
    stage.pass_time(1)  # a record without acknowledgements is replicated
    stage.write("content", stage.fetch("m"))


@scenario(EVERY)
def more_in_sync_replicas_are_asked_for_than_there_are(stage: Stage) -> None:
    """Writes with acks=all fail where min.insync.replicas exceeds the number of replicas."""
    stage.create("m", ((1, 2),), {"min.insync.replicas": "3"})
    stage.write("produce", {f"acks {a}": stage.produce("m", "a", acks=a) for a in (-1, 0, 1)})


@scenario(SINCE_2_8)
def levels_of_loggers(stage: Stage) -> None:
    """Invalid changes are made to the levels of a broker's loggers (KIP-412)."""
    change(stage, "set", "1", ("kafka.none", _SET, "DEBUG"), kind=_LOGGER, broker=1)
    change(stage, "bad level", "1", ("kafka.none", _SET, "LOUD"), kind=_LOGGER, broker=1)
    change(stage, "append", "1", ("kafka.none", _APPEND, "DEBUG"), kind=_LOGGER, broker=1)
    change(stage, "another broker", "2", ("root", _SET, "INFO"), kind=_LOGGER, broker=1)
    change(stage, "delete root", "1", ("root", _DELETE, None), kind=_LOGGER, broker=1)
