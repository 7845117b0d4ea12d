"""The control API: what ``Cluster`` can do, as HTTP and JSON, for tests in any language.

One table of operations feeds the dispatcher and the OpenAPI document at ``/openapi.json``. Bodies
are JSON objects; an answer is a JSON value. Errors: 400 for misuse, 409 with Kafka's error code
for what the cluster refused, 404 for an unknown path, 405 for the wrong method.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ... import __version__
from ...protocol.errors import FakeKafkaError, KafkaError
from ..scenarios.actions import ACTIONS
from .fields import KINDS, checked_body, whole_number

if TYPE_CHECKING:
    from ..cluster import Cluster

_DOCUMENT = ["", "openapi.json"]
_NUMBERS = frozenset({"broker", "partition"})
"""Parts of paths that are numbers."""


@dataclass(frozen=True)
class Operation:
    """One thing that can be asked over HTTP."""

    method: str
    path: str
    """Path with ``{name}`` for parts that are parameters."""
    summary: str
    run: Callable[[Cluster, dict[str, Any]], Any]
    parameters: tuple[tuple[str, str, bool], ...] = ()
    """(name, kind, required) of the body's fields; the kinds are in ``control_api_fields``."""

    def match(self, given: list[str]) -> dict[str, str] | None:
        """The path's parameters when this operation's path is meant."""
        wanted = self.path.split("/")
        if len(wanted) != len(given):
            return None
        found = {}
        for part, value in zip(wanted, given, strict=True):
            if part.startswith("{"):
                found[part[1:-1]] = value
            elif part != value:
                return None
        return found


def _view(cluster: Cluster, arguments: dict[str, Any]) -> dict[str, Any]:
    view = cluster.partition(arguments["topic"], arguments["partition"])
    shown = dataclasses.asdict(view)
    replicas = shown.pop("_replicas")
    shown["replica_views"] = [replicas[broker] for broker in view.replicas]
    return shown


def _brokers(cluster: Cluster, _arguments: dict[str, Any]) -> list[dict[str, Any]]:
    handles = [cluster.broker(broker_id) for broker_id in cluster.broker_ids]
    return [{"id": h.id, "state": h.state, "is_alive": h.is_alive, "port": h.port} for h in handles]


def _act(name: str) -> Callable[[Cluster, dict[str, Any]], Any]:
    return ACTIONS[name].perform


def _records(cluster: Cluster, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    def text(value: bytes | None) -> str | None:
        return None if value is None else value.decode("utf-8", "backslashreplace")

    records = cluster.records(arguments["topic"], arguments["partition"])
    return [
        {"offset": r.offset, "timestamp": r.timestamp, "key": text(r.key), "value": text(r.value)}
        for r in records
    ]


def _create_topic(cluster: Cluster, arguments: dict[str, Any]) -> None:
    assignment = arguments.pop("assignment", None)
    if assignment is not None:
        arguments["assignment"] = {int(p): list(r) for p, r in assignment.items()}
    ACTIONS["create_topic"].perform(cluster, {"topic": arguments.pop("name"), **arguments})


def _reassign(cluster: Cluster, arguments: dict[str, Any]) -> None:
    replicas = {(topic, number): target for topic, number, target in arguments["reassignments"]}
    ACTIONS["reassign"].perform(cluster, {"replicas": replicas})


def _controller(cluster: Cluster, _arguments: dict[str, Any]) -> dict[str, Any]:
    controller = cluster.controller
    return {"id": controller.id, "epoch": controller.epoch, "metrics": controller.metrics}


_BROKER_ACTIONS = ("kill", "power_off", "shutdown", "start", "restart", "pause", "resume")

OPERATIONS: tuple[Operation, ...] = (
    Operation("GET", "/brokers", "all brokers with their state", _brokers),
    *(
        Operation("POST", f"/brokers/{{broker}}/{action}", ACTIONS[action].summary, _act(action))
        for action in _BROKER_ACTIONS
    ),
    Operation("GET", "/topics", "names of all topics", lambda cluster, _: cluster.topics()),
    Operation(
        "POST",
        "/topics",
        ACTIONS["create_topic"].summary,
        _create_topic,
        (
            ("name", "string", True),
            ("partitions", "integer", False),
            ("replication_factor", "integer", False),
            ("config", "config", False),
            ("assignment", "assignment", False),
        ),
    ),
    Operation("DELETE", "/topics/{topic}", ACTIONS["delete_topic"].summary, _act("delete_topic")),
    Operation(
        "POST",
        "/topics/{topic}/partitions",
        ACTIONS["create_partitions"].summary,
        _act("create_partitions"),
        (("count", "integer", True),),
    ),
    Operation(
        "POST",
        "/topics/{topic}/config",
        ACTIONS["alter_config"].summary,
        _act("alter_config"),
        (("config", "config", True),),
    ),
    Operation("GET", "/topics/{topic}/{partition}", "a partition's snapshot", _view),
    Operation("GET", "/topics/{topic}/{partition}/records", "the leader's records", _records),
    Operation(
        "POST",
        "/topics/{topic}/{partition}/records",
        "append a record; gives its offset",
        lambda c, a: c.produce(
            a["topic"], a["value"], a.get("key"), a["partition"], a.get("acks", -1)
        ),
        (("value", "text", True), ("key", "string", False), ("acks", "integer", False)),
    ),
    Operation(
        "POST",
        "/elect_leaders",
        ACTIONS["elect_leaders"].summary,
        _act("elect_leaders"),
        (("election", "string", False), ("partitions", "partitions", False)),
    ),
    Operation(
        "POST",
        "/reassign_partitions",
        "move partitions: [topic, partition, [brokers] or null] each",
        _reassign,
        (("reassignments", "moves", True),),
    ),
    Operation("GET", "/controller", "the active controller and its metrics", _controller),
    Operation(
        "POST",
        "/controller/resign",
        ACTIONS["resign_controller"].summary,
        _act("resign_controller"),
    ),
    Operation(
        "POST",
        "/zookeeper/expire_session/{broker}",
        ACTIONS["expire_session"].summary,
        _act("expire_session"),
    ),
    Operation(
        "POST",
        "/network/partition",
        ACTIONS["partition"].summary,
        _act("partition"),
        (("groups", "groups", True), ("both_ways", "boolean", False)),
    ),
    Operation("POST", "/network/heal", ACTIONS["heal"].summary, _act("heal")),
    Operation(
        "POST",
        "/network/latency",
        "set the delay of all links",
        _act("latency"),
        (("constant_ms", "number", True),),
    ),
    Operation(
        "POST",
        "/inject",
        ACTIONS["inject"].summary,
        _act("inject"),
        (
            ("api", "string", True),
            ("error", "string", False),
            ("times", "integer", False),
            ("broker", "integer", False),
            ("delay_ms", "number", False),
            ("disconnect", "boolean", False),
        ),
    ),
    Operation("POST", "/reset", "empty the cluster", lambda c, _: c.reset()),
)


def openapi() -> dict[str, Any]:
    """The OpenAPI 3.1 document of the control API."""
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        entry: dict[str, Any] = {
            "summary": operation.summary,
            "responses": {
                "200": {"description": "the result as JSON"},
                "400": {"description": "misuse; the message says what would be right"},
                "409": {"description": "refused by the cluster, with Kafka's error code"},
            },
        }
        names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
        if names:
            entry["parameters"] = [
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in names
            ]
        if operation.parameters:
            entry["requestBody"] = {
                "content": {
                    "application/json": {
                        "schema": {
                            "type": "object",
                            "required": [n for n, _, needed in operation.parameters if needed],
                            "properties": {
                                name: dict(KINDS[kind].schema)
                                for name, kind, _ in operation.parameters
                            },
                        }
                    }
                }
            }
        paths.setdefault(operation.path, {})[operation.method.lower()] = entry
    return {
        "openapi": "3.1.0",
        "info": {"title": "fakekafka control API", "version": __version__},
        "paths": paths,
    }


def _parts(path: str) -> list[str]:
    """The parts of a path, decoded; a query is ignored, and so is a slash at the end."""
    return list(map(unquote, path.partition("?")[0].rstrip("/").split("/")))


def methods_at(path: str) -> list[str]:
    """What a path can be asked with; empty for an unknown one."""
    parts = _parts(path)
    if parts == _DOCUMENT:
        return ["GET"]
    found = (operation.method for operation in OPERATIONS if operation.match(parts) is not None)
    return list(dict.fromkeys(found))


def dispatch(cluster: Cluster, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    """(HTTP status, JSON value) of one call."""
    parts = _parts(path)
    if method == "GET" and parts == _DOCUMENT:
        return 200, openapi()
    for operation in OPERATIONS:
        found = operation.match(parts) if operation.method == method else None
        if found is None:
            continue
        try:
            numbers = {n: whole_number(n, t) for n, t in found.items() if n in _NUMBERS}
            given = checked_body(body, operation.parameters)
            return 200, operation.run(cluster, {**given, **found, **numbers})
        except KafkaError as error:
            return 409, {"error": str(error), "code": int(error.code), "name": error.code.name}
        except (FakeKafkaError, ValueError, TypeError, KeyError, IndexError) as error:
            return 400, {"error": f"{method} {operation.path}: {error}"}
    allowed = methods_at(path)
    if allowed:
        told = " and ".join(allowed)
        return 405, {"error": f"{'/'.join(parts)} takes {told}, not {method}; see /openapi.json"}
    return 404, {"error": f"there is no {method} {'/'.join(parts) or '/'}; see /openapi.json"}
