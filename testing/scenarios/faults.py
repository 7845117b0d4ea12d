"""The faults a scenario may name, and how each is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...protocol.errors import UsageError
from ..actions import ACTIONS
from ..api_names import error_code, request_type
from ..defaults import log_dirs
from .pieces import (
    PARTITION_NAME,
    check_broker,
    check_machine,
    check_partition,
    make_condition,
    read_condition,
    read_latency,
    read_machine,
)
from .spec import ClusterSpec, FaultSpec, StopSpec
from .table import Table

Read = Callable[[Table, ClusterSpec], dict[str, Any]]


def _nothing(_table: Table, _cluster: ClusterSpec) -> dict[str, Any]:
    return {}


def _isolate(table: Table, cluster: ClusterSpec) -> dict[str, Any]:
    return {"machine": read_machine(table, "machine", cluster)}


def _partition(table: Table, cluster: ClusterSpec) -> dict[str, Any]:
    groups = table.items("groups")
    if len(groups) < 2 or not all(isinstance(group, list) and group for group in groups):
        raise table.error("groups", f"must be two lists of machines or more, not {groups!r}")
    named = [[check_machine(table, "groups", m, cluster) for m in group] for group in groups]
    everyone = [machine for group in named for machine in group]
    if len(set(map(str, everyone))) != len(everyone):
        raise table.error("groups", "a machine stands in two groups")
    return {"groups": named, "both_ways": table.flag("both_ways", True)}


def _drop(table: Table, cluster: ClusterSpec) -> dict[str, Any]:
    if not table.has("probability"):
        raise table.error("probability", "is missing; write how likely a message is lost, 0 to 1")
    return {"probability": table.number("probability", 0.0, 0.0, 1.0), **_link(table, cluster)}


def _latency(table: Table, cluster: ClusterSpec) -> dict[str, Any]:
    if not table.has("latency"):
        raise table.error("latency", "is missing; write {constant_ms = 5} or another model")
    return {**read_latency(table.table("latency")).arguments(), **_link(table, cluster)}


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


def _elect_leaders(table: Table, cluster: ClusterSpec) -> dict[str, Any]:
    partitions = None
    if table.has("partitions"):
        names = table.items("partitions")
        partitions = [_partition_name(table, "partitions", text, cluster) for text in names]
    election = table.text("election", "preferred", ("preferred", "unclean"))
    return {"election": election, "partitions": partitions}


def _reassign(table: Table, cluster: ClusterSpec) -> dict[str, Any]:
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


def _server(table: Table, cluster: ClusterSpec) -> dict[str, Any]:
    server = table.integer("server", 1, 1)
    if server > cluster.zookeepers:
        raise table.error("server", f"no ZooKeeper {server}; ids are 1 to {cluster.zookeepers}")
    return {"server": server}


def _inject(table: Table, cluster: ClusterSpec) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "api": table.text("api"),
        "times": table.integer("requests", 1, 1),
        "delay_ms": table.number("delay_ms", 0.0),
        "disconnect": table.flag("disconnect", False),
    }
    try:
        request_type(arguments["api"])
        if table.has("error"):
            arguments["error"] = error_code(table.raw("error")).name
    except UsageError as error:
        raise table.error("error" if "API" not in str(error) else "api", str(error)) from None
    if "error" not in arguments and not arguments["delay_ms"] and not arguments["disconnect"]:
        raise table.error("", "inject needs an error, a delay_ms or disconnect = true")
    if table.has("broker"):
        arguments["broker"] = check_machine(table, "broker", table.integer("broker", 1), cluster)
    return arguments


def _log_dir(table: Table, cluster: ClusterSpec) -> dict[str, Any]:
    directory = table.integer("directory", 0)
    last = max(len(log_dirs(cluster.config.get("log.dirs"))) - 1, 0)
    if directory > last:
        raise table.error(
            "directory", f"no log directory {directory}; log.dirs has those from 0 to {last}"
        )
    return {"directory": directory}


def _note(table: Table, _cluster: ClusterSpec) -> dict[str, Any]:
    text = table.text("text")
    if not text:
        raise table.error("text", "is missing")
    return {"text": text}


def _start(_table: Table, _cluster: ClusterSpec) -> dict[str, Any]:
    return {"wait": False}


_READERS: dict[str, Read] = {
    "start": _start,
    "fail_log_dir": _log_dir,
    "isolate": _isolate,
    "partition": _partition,
    "drop": _drop,
    "latency": _latency,
    "elect_leaders": _elect_leaders,
    "reassign": _reassign,
    "kill_zookeeper": _server,
    "start_zookeeper": _server,
    "inject": _inject,
    "note": _note,
}
"""Action to the reader of its own keys, where it has some beside ``broker``."""


def read_fault(table: Table, cluster: ClusterSpec, stop: StopSpec) -> FaultSpec:
    """One entry of ``faults``."""
    if not table.has("action"):
        raise table.error("action", f"is missing; there are {', '.join(ACTIONS)}")
    action = table.text("action", choices=ACTIONS)
    when = read_condition(table, "when")
    if when is None and not table.has("at_ms"):
        raise table.error("at_ms", "is missing; a fault needs at_ms or when")
    at_ms = table.number("at_ms", 0.0, 0.0, stop.at_ms)
    if table.has("after_ms") and when is None:
        raise table.error("after_ms", "counts from the condition in when; without one use at_ms")
    times = table.integer("times", 1, 1)
    every_ms = table.number("every_ms", 0.0)
    if (times > 1) != (every_ms > 0):
        raise table.error("every_ms", "belongs to times > 1, and times > 1 needs it")
    about_broker = ACTIONS[action].is_about_broker
    broker = check_broker(table, "broker", cluster) if about_broker else None
    arguments = _READERS.get(action, _nothing)(table, cluster)
    expected = table.raw("expect", [])
    texts = expected if isinstance(expected, list) else [expected]
    spec = FaultSpec(
        action=action,
        at_ms=at_ms,
        when=when,
        after_ms=table.number("after_ms", 0.0),
        times=times,
        every_ms=every_ms,
        broker=broker,
        arguments=arguments,
        expect=tuple(make_condition(table, "expect", text) for text in texts),
        expect_within_ms=table.number("expect_within_ms", 0.0),
    )
    table.finish()
    return spec
