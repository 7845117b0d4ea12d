"""What can be done to a cluster by name: the table behind scenarios, stories and the control API.

Each action is one entry: how a scenario writes its keys, what it does, and an example.
``ACTIONS["kill"].perform(cluster, {"broker": 1})`` does it. What a request to the control API
holds is read in ``control_api/operations.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ...protocol.config import validate_topic_config
from ..defaults import log_dirs
from .injections import inject, read_inject
from .pieces import (
    PARTITION_NAME,
    check_machine,
    check_partition,
    read_bandwidth,
    read_latency,
    read_machine,
)
from .spec import ClusterSpec
from .table import Table, flatten

if TYPE_CHECKING:
    from ..emulated_cluster import EmulatedCluster

Perform = Callable[["EmulatedCluster", Mapping[str, Any]], Any]
Read = Callable[[Table, ClusterSpec], dict[str, Any]]


def _read_nothing(_table: Table, _cluster: ClusterSpec) -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that can be done; ``perform`` takes its arguments by name."""

    summary: str
    perform: Perform
    example: Mapping[str, Any]
    """Its keys as a scenario writes them, for a cluster of three brokers and a topic orders."""
    read: Read = _read_nothing
    """Gives the arguments from a scenario's table, without the broker."""
    is_about_broker: bool = False
    """Whether it has a ``broker``, which a scenario may also name by its role."""


# -- reading -----------------------------------------------------------------------------------


def _read_isolate(table: Table, cluster: ClusterSpec) -> dict[str, Any]:
    return {"machine": read_machine(table, "machine", cluster)}


def _read_partition(table: Table, cluster: ClusterSpec) -> dict[str, Any]:
    groups = table.items("groups")
    if len(groups) < 2 or not all(isinstance(group, list) and group for group in groups):
        raise table.error("groups", f"must be two lists of machines or more, not {groups!r}")
    named = [[check_machine(table, "groups", m, cluster) for m in group] for group in groups]
    everyone = [machine for group in named for machine in group]
    if len(set(map(str, everyone))) != len(everyone):
        raise table.error("groups", "a machine stands in two groups")
    return {"groups": named, "both_ways": table.flag("both_ways", True)}


def _read_drop(table: Table, cluster: ClusterSpec) -> dict[str, Any]:
    if not table.has("probability"):
        raise table.error("probability", "is missing; write how likely a message is lost, 0 to 1")
    return {"probability": table.number("probability", 0.0, 0.0, 1.0), **_link(table, cluster)}


def _read_latency(table: Table, cluster: ClusterSpec) -> dict[str, Any]:
    if not table.has("latency"):
        raise table.error("latency", "is missing; write {constant_ms = 5} or another model")
    return {**read_latency(table.table("latency")).arguments(), **_link(table, cluster)}


def _read_bandwidth(table: Table, cluster: ClusterSpec) -> dict[str, Any]:
    return {"mb_per_s": read_bandwidth(table, "mb_per_s"), **_link(table, cluster)}


def _link(table: Table, cluster: ClusterSpec) -> dict[str, Any]:
    names = [name for name in ("source", "target") if table.has(name)]
    if len(names) == 1:
        missing = "target" if names == ["source"] else "source"
        raise table.error(missing, "is missing; a link needs both source and target")
    return {name: read_machine(table, name, cluster) for name in names}


def _partition_name(table: Table, name: str, text: Any, cluster: ClusterSpec) -> tuple[str, int]:
    match = PARTITION_NAME.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise table.error(name, f"{text!r} is no partition; write it like 'orders-0'")
    check_partition(table, name, match[1], int(match[2]), cluster)
    return match[1], int(match[2])


def _read_elect_leaders(table: Table, cluster: ClusterSpec) -> dict[str, Any]:
    partitions = None
    if table.has("partitions"):
        names = table.items("partitions")
        partitions = [_partition_name(table, "partitions", text, cluster) for text in names]
    election = table.text("election", "preferred", ("preferred", "unclean"))
    return {"election": election, "partitions": partitions}


def _read_reassign(table: Table, cluster: ClusterSpec) -> dict[str, Any]:
    moves: dict[tuple[str, int], list[int]] = {}
    inner = table.table("replicas")
    for text, replicas in inner.rest().items():
        key = _partition_name(table, "replicas", text, cluster)
        if not isinstance(replicas, list) or not replicas or len(set(replicas)) != len(replicas):
            raise inner.error(text, f"must be a list of different broker ids, not {replicas!r}")
        for broker in replicas:
            if isinstance(broker, bool) or not isinstance(broker, int):
                raise inner.error(text, f"must be a list of broker ids, not {replicas!r}")
            check_machine(inner, text, broker, cluster)
        moves[key] = replicas
    if not moves:
        raise table.error("replicas", "is missing; write {orders-0 = [2, 3, 1]}")
    return {"replicas": moves}


def _read_server(table: Table, cluster: ClusterSpec) -> dict[str, Any]:
    server = table.integer("server", 1, 1)
    if server > cluster.zookeepers:
        raise table.error("server", f"no ZooKeeper {server}; ids are 1 to {cluster.zookeepers}")
    return {"server": server}


def _read_log_dir(table: Table, cluster: ClusterSpec) -> dict[str, Any]:
    directory = table.integer("directory", 0)
    last = max(len(log_dirs(cluster.config.get("log.dirs"))) - 1, 0)
    if directory > last:
        raise table.error(
            "directory", f"no log directory {directory}; log.dirs has those from 0 to {last}"
        )
    return {"directory": directory}


def _read_note(table: Table, _cluster: ClusterSpec) -> dict[str, Any]:
    text = table.text("text")
    if not text:
        raise table.error("text", "is missing")
    return {"text": text}


def _read_kill(table: Table, _cluster: ClusterSpec) -> dict[str, Any]:
    return {"expire_session": table.flag("expire_session", False)}


def _read_start(_table: Table, _cluster: ClusterSpec) -> dict[str, Any]:
    return {"wait": False}


def _topic(table: Table) -> str:
    name = table.text("topic")
    if not name:
        raise table.error("topic", "is missing")
    return name


def _read_topic(table: Table, _cluster: ClusterSpec) -> dict[str, Any]:
    return {"topic": _topic(table)}


def read_topic_config(table: Table) -> dict[str, str]:
    """The configuration of a topic in ``config``, checked."""
    config = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in flatten(table.table("config").rest()).items()
    }
    try:
        validate_topic_config(config)
    except ValueError as error:
        raise table.error("config", str(error)) from None
    return config


def _read_create_topic(table: Table, cluster: ClusterSpec) -> dict[str, Any]:
    return {
        "topic": _topic(table),
        "partitions": table.integer("partitions", 1, 1),
        "replication_factor": table.integer(
            "replication_factor", min(3, len(cluster.broker_ids)), 1
        ),
        "config": read_topic_config(table),
    }


def _read_create_partitions(table: Table, _cluster: ClusterSpec) -> dict[str, Any]:
    if not table.has("count"):
        raise table.error("count", "is missing; write how many partitions the topic is to have")
    return {"topic": _topic(table), "count": table.integer("count", 1, 1)}


def _read_alter_config(table: Table, _cluster: ClusterSpec) -> dict[str, Any]:
    arguments = {"topic": _topic(table), "config": read_topic_config(table)}
    if not arguments["config"]:
        raise table.error("config", "is missing; write {min.insync.replicas = 2}")
    return arguments


# -- doing -------------------------------------------------------------------------------------


def _of_broker(summary: str, method: str, **fixed: Any) -> Action:
    def perform(cluster: EmulatedCluster, arguments: Mapping[str, Any]) -> Any:
        return getattr(cluster.broker(arguments["broker"]), method)(**fixed)

    return Action(summary, perform, {"broker": 1}, is_about_broker=True)


def _kill(cluster: EmulatedCluster, arguments: Mapping[str, Any]) -> None:
    expires = arguments.get("expire_session", False)
    cluster.broker(arguments["broker"]).kill(expire_session=expires)


def _start(cluster: EmulatedCluster, arguments: Mapping[str, Any]) -> None:
    cluster.broker(arguments["broker"]).start(wait=arguments.get("wait", True))


def _expire_session(cluster: EmulatedCluster, arguments: Mapping[str, Any]) -> None:
    cluster.zookeeper.expire_session(arguments["broker"])


def _fail_log_dir(cluster: EmulatedCluster, arguments: Mapping[str, Any]) -> None:
    cluster.broker(arguments["broker"]).fail_log_dir(arguments.get("directory", 0))


def _partition(cluster: EmulatedCluster, arguments: Mapping[str, Any]) -> None:
    cluster.network.partition(*arguments["groups"], both_ways=arguments.get("both_ways", True))


def _latency(cluster: EmulatedCluster, arguments: Mapping[str, Any]) -> None:
    cluster.network.latency(**arguments)


def _elect_leaders(cluster: EmulatedCluster, arguments: Mapping[str, Any]) -> dict[str, str]:
    partitions = arguments.get("partitions")
    wanted = None if partitions is None else [(topic, number) for topic, number in partitions]
    outcome = cluster.elect_leaders(arguments.get("election", "preferred"), wanted)
    return {str(partition): error.name for partition, error in outcome.items()}


def _note(cluster: EmulatedCluster, arguments: Mapping[str, Any]) -> None:
    cluster.runtime.note("note", "scenario", arguments["text"])


def _create_topic(cluster: EmulatedCluster, arguments: Mapping[str, Any]) -> None:
    names = ("partitions", "replication_factor", "config", "assignment")
    cluster.create_topic(arguments["topic"], **{n: arguments[n] for n in names if n in arguments})


ACTIONS: Mapping[str, Action] = MappingProxyType(
    {
        "kill": Action("kill a broker", _kill, {"broker": 1}, _read_kill, is_about_broker=True),
        "power_off": _of_broker("cut a broker's power", "power_off"),
        "shutdown": _of_broker("shut a broker down in control", "shutdown"),
        "start": Action("start a broker", _start, {"broker": 1}, _read_start, is_about_broker=True),
        "restart": _of_broker("shut a broker down and start it", "restart"),
        "pause": _of_broker("freeze a broker", "pause"),
        "resume": _of_broker("let a frozen broker go on", "resume"),
        "expire_session": Action(
            "expire a broker's session", _expire_session, {"broker": 1}, is_about_broker=True
        ),
        "fail_log_dir": Action(
            "let a log directory of a broker fail",
            _fail_log_dir,
            {"broker": 1, "directory": 0},
            _read_log_dir,
            is_about_broker=True,
        ),
        "isolate": Action(
            "cut a machine off from all others",
            lambda cluster, arguments: cluster.network.isolate(arguments["machine"]),
            {"machine": 2},
            _read_isolate,
        ),
        "partition": Action(
            "cut the links between groups of machines",
            _partition,
            {"groups": [[1], [2, 3]], "both_ways": False},
            _read_partition,
        ),
        "heal": Action("undo cuts and losses", lambda cluster, _: cluster.network.heal(), {}),
        "drop": Action(
            "lose messages with a probability",
            lambda cluster, arguments: cluster.network.drop(**arguments),
            {"probability": 0.1, "source": 1, "target": 2},
            _read_drop,
        ),
        "latency": Action(
            "set the delay of all links or of one",
            _latency,
            {"latency": {"constant_ms": 5}, "source": 1, "target": 2},
            _read_latency,
        ),
        "bandwidth": Action(
            "set the bandwidth of all links or of one",
            lambda cluster, arguments: cluster.network.bandwidth(
                arguments.get("mb_per_s"), arguments.get("source"), arguments.get("target")
            ),
            {"mb_per_s": 10, "source": 1, "target": 2},
            _read_bandwidth,
        ),
        "elect_leaders": Action(
            "run a preferred or unclean election",
            _elect_leaders,
            {"election": "preferred", "partitions": ["orders-0"]},
            _read_elect_leaders,
        ),
        "reassign": Action(
            "move partitions to other brokers",
            lambda cluster, arguments: cluster.reassign_partitions(arguments["replicas"]),
            {"replicas": {"orders-0": [2, 3, 1]}},
            _read_reassign,
        ),
        "resign_controller": Action(
            "elect a controller anew", lambda cluster, _: cluster.controller.resign(), {}
        ),
        "kill_zookeeper": Action(
            "kill a ZooKeeper server",
            lambda cluster, arguments: cluster.zookeeper.server(arguments["server"]).kill(),
            {"server": 1},
            _read_server,
        ),
        "start_zookeeper": Action(
            "start a ZooKeeper server",
            lambda cluster, arguments: cluster.zookeeper.server(arguments["server"]).start(),
            {"server": 1},
            _read_server,
        ),
        "create_topic": Action(
            "create a topic",
            _create_topic,
            {"topic": "late", "partitions": 2, "replication_factor": 3},
            _read_create_topic,
        ),
        "delete_topic": Action(
            "delete a topic",
            lambda cluster, arguments: cluster.delete_topic(arguments["topic"]),
            {"topic": "orders"},
            _read_topic,
        ),
        "create_partitions": Action(
            "grow a topic",
            lambda cluster, arguments: cluster.create_partitions(
                arguments["topic"], arguments["count"]
            ),
            {"topic": "orders", "count": 2},
            _read_create_partitions,
        ),
        "alter_config": Action(
            "set configurations of a topic",
            lambda cluster, arguments: cluster.alter_config(
                arguments["topic"], arguments["config"]
            ),
            {"topic": "orders", "config": {"min.insync.replicas": 2}},
            _read_alter_config,
        ),
        "inject": Action(
            "answer, delay or break off the next requests of an API",
            inject,
            {"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "requests": 2},
            read_inject,
        ),
        "note": Action("write a note into the trace", _note, {"text": "here"}, _read_note),
    }
)
"""Every action by the name that all languages give it."""
