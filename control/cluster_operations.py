"""Operations on the cluster as a whole: its state, waiting for it, resetting it, its events."""

from __future__ import annotations

import os
from typing import Any, NoReturn

from ..protocol.errors import UsageError
from ..scenarios.conditions import CONDITION
from ..testing.parameters.cluster_kinds import MACHINE, MESSAGE
from ..testing.parameters.kinds import FLAG, INDEX, number
from ..testing.parameters.parameter import optional, required
from ..version import __version__
from . import cluster_state
from .operation import NotReady, Operation, ServedCluster
from .section import Section

_CLUSTER = Section("cluster")
_WAIT_S_MAX = 300
WAIT = optional("timeout_s", number("seconds", most=_WAIT_S_MAX), f"at most {_WAIT_S_MAX}", 10)


def _health(_served: ServedCluster, _arguments: dict[str, Any]) -> dict[str, Any]:
    return {"status": "up", "version": __version__, "pid": os.getpid()}


def _ready(served: ServedCluster, _arguments: dict[str, Any]) -> dict[str, Any]:
    state = cluster_state.overview(served.cluster)
    down = [shown["id"] for shown in state["brokers"] if shown["state"] != "running"]
    is_ready = state["is_settled"] and state["controller"]["id"] is not None and not down
    readiness = {"is_ready": is_ready, "controller": state["controller"]["id"], "not_running": down}
    if not is_ready:
        raise NotReady(readiness)
    return readiness


def _wait(served: ServedCluster, arguments: dict[str, Any]) -> None:
    condition = arguments["condition"]
    if "now_ms" in condition.text:
        raise UsageError("now_ms is virtual time, which a cluster in real time does not have")

    def holds() -> bool:
        return bool(condition.holds(served.cluster))

    holds.__qualname__ = holds.__name__ = condition.text
    served.cluster.wait_until(holds, arguments.get("timeout_s", WAIT.default))


def _reset(served: ServedCluster, arguments: dict[str, Any]) -> None:
    served.cluster.reset()
    if arguments.get("initial_topics", True):
        served.cluster.create_initial_topics()
    served.holds.clear()
    served.injections.clear()


def _streamed(_served: ServedCluster, _arguments: dict[str, Any]) -> NoReturn:
    raise AssertionError("streams are served by the application itself")


CLUSTER_OPERATIONS: tuple[Operation, ...] = (
    _CLUSTER.get("/health", "whether the process answers", _health, gives="status up"),
    _CLUSTER.get(
        "/ready",
        "whether every broker serves; status 503 while one does not",
        _ready,
        gives="is_ready true",
    ),
    _CLUSTER.get(
        "/cluster",
        "release, addresses, controller, brokers, ZooKeeper servers",
        lambda served, _: cluster_state.overview(served.cluster),
        gives="the cluster without its topics",
    ),
    _CLUSTER.get(
        "/state",
        "the cluster with its topics, replicas, offsets and faults",
        lambda served, _: cluster_state.whole_state(served),
        gives="the whole cluster",
    ),
    _CLUSTER.post(
        "/wait",
        "wait until a condition holds; status 409 if it does not in time",
        _wait,
        required("condition", CONDITION, 'such as leader("orders", 0) == 2'),
        WAIT,
    ),
    _CLUSTER.post(
        "/reset",
        "empty the cluster, and create the topics that it began with",
        _reset,
        optional("initial_topics", FLAG, "whether these are created again", True),
    ),
    _CLUSTER.act("/note", "note"),
    _CLUSTER.get(
        "/events",
        "elections, ISR changes, states of brokers, topics: server-sent events",
        _streamed,
        optional("since", INDEX, "the id of an event: also give those after it"),
        gives="a stream of events",
        is_stream=True,
    ),
    _CLUSTER.get(
        "/messages",
        "messages as they arrive: server-sent events",
        _streamed,
        optional("message", MESSAGE, "a name such as FetchResponse; any without it"),
        optional("source", MACHINE, "such as broker-1; any machine without it"),
        optional("target", MACHINE, "such as zk-1; any machine without it"),
        gives="a stream of messages",
        is_stream=True,
    ),
)
