"""The control API: what ``Cluster`` can do, as HTTP and JSON, for tests in any language.

One table of operations feeds the dispatcher and the OpenAPI document at ``/openapi.json``. Bodies
are JSON objects; an answer is a JSON value. Errors: 400 for misuse, 409 with Kafka's error code
for what the cluster refused, 404 for an unknown path.
"""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..protocol.errors import FakeKafkaError, KafkaError, UsageError

if TYPE_CHECKING:
    from .cluster import Cluster

_JSON_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "object": (dict,),
    "array": (list,),
}


@dataclass(frozen=True)
class Operation:
    """One thing that can be asked over HTTP."""

    method: str
    path: str
    """Path with ``{name}`` for parts that are parameters."""
    summary: str
    run: Callable[[Cluster, dict[str, Any]], Any]
    parameters: tuple[tuple[str, str, bool], ...] = ()
    """(name, type, required) of the body's fields: str, int, float, bool, object or array."""

    def match(self, method: str, path: str) -> dict[str, str] | None:
        """The path's parameters when this operation is meant."""
        wanted, given = self.path.split("/"), path.split("/")
        if method != self.method or len(wanted) != len(given):
            return None
        found = {}
        for part, value in zip(wanted, given, strict=True):
            if part.startswith("{"):
                found[part[1:-1]] = value
            elif part != value:
                return None
        return found


def _view(cluster: Cluster, arguments: dict[str, Any]) -> dict[str, Any]:
    view = cluster.partition(arguments["topic"], int(arguments["partition"]))
    shown = dataclasses.asdict(view)
    replicas = shown.pop("_replicas")
    shown["replica_views"] = [replicas[broker] for broker in view.replicas]
    return shown


def _brokers(cluster: Cluster, _arguments: dict[str, Any]) -> list[dict[str, Any]]:
    handles = [cluster.broker(broker_id) for broker_id in cluster.broker_ids]
    return [{"id": h.id, "state": h.state, "is_alive": h.is_alive, "port": h.port} for h in handles]


def _broker(action: str) -> Callable[[Cluster, dict[str, Any]], Any]:
    def run(cluster: Cluster, arguments: dict[str, Any]) -> Any:
        return getattr(cluster.broker(int(arguments["broker"])), action)()

    return run


def _records(cluster: Cluster, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    def text(value: bytes | None) -> str | None:
        return None if value is None else value.decode("utf-8", "backslashreplace")

    records = cluster.records(arguments["topic"], int(arguments["partition"]))
    return [
        {"offset": r.offset, "timestamp": r.timestamp, "key": text(r.key), "value": text(r.value)}
        for r in records
    ]


def _create_topic(cluster: Cluster, arguments: dict[str, Any]) -> None:
    assignment = arguments.get("assignment")
    cluster.create_topic(
        arguments["name"],
        arguments.get("partitions", 1),
        arguments.get("replication_factor"),
        arguments.get("config"),
        None if assignment is None else {int(p): list(r) for p, r in assignment.items()},
    )


def _elect(cluster: Cluster, arguments: dict[str, Any]) -> dict[str, str]:
    partitions = arguments.get("partitions")
    wanted = None if partitions is None else [(topic, number) for topic, number in partitions]
    outcome = cluster.elect_leaders(arguments.get("election", "preferred"), wanted)
    return {str(partition): error.name for partition, error in outcome.items()}


def _reassign(cluster: Cluster, arguments: dict[str, Any]) -> None:
    cluster.reassign_partitions(
        {(entry[0], entry[1]): entry[2] for entry in arguments["reassignments"]}
    )


def _inject(cluster: Cluster, arguments: dict[str, Any]) -> None:
    names = ("error", "times", "broker", "delay_ms", "disconnect")
    cluster.inject(arguments["api"], **{n: arguments[n] for n in names if n in arguments})


def _partition_network(cluster: Cluster, arguments: dict[str, Any]) -> None:
    cluster.network.partition(*arguments["groups"], both_ways=arguments.get("both_ways", True))


def _controller(cluster: Cluster, _arguments: dict[str, Any]) -> dict[str, Any]:
    controller = cluster.controller
    return {"id": controller.id, "epoch": controller.epoch, "metrics": controller.metrics}


_BROKER_ACTIONS = ("kill", "power_off", "shutdown", "start", "restart", "pause", "resume")

OPERATIONS: tuple[Operation, ...] = (
    Operation("GET", "/brokers", "all brokers with their state", _brokers),
    *(
        Operation("POST", f"/brokers/{{broker}}/{action}", f"{action} a broker", _broker(action))
        for action in _BROKER_ACTIONS
    ),
    Operation("GET", "/topics", "names of all topics", lambda cluster, _: cluster.topics()),
    Operation(
        "POST",
        "/topics",
        "create a topic",
        _create_topic,
        (
            ("name", "str", True),
            ("partitions", "int", False),
            ("replication_factor", "int", False),
            ("config", "object", False),
            ("assignment", "object", False),
        ),
    ),
    Operation(
        "DELETE", "/topics/{topic}", "delete a topic", lambda c, a: c.delete_topic(a["topic"])
    ),
    Operation(
        "POST",
        "/topics/{topic}/partitions",
        "grow a topic",
        lambda c, a: c.create_partitions(a["topic"], a["count"]),
        (("count", "int", True),),
    ),
    Operation(
        "POST",
        "/topics/{topic}/config",
        "set configurations of a topic",
        lambda c, a: c.alter_config(a["topic"], a["config"]),
        (("config", "object", True),),
    ),
    Operation("GET", "/topics/{topic}/{partition}", "a partition's snapshot", _view),
    Operation("GET", "/topics/{topic}/{partition}/records", "the leader's records", _records),
    Operation(
        "POST",
        "/topics/{topic}/{partition}/records",
        "append a record; gives its offset",
        lambda c, a: c.produce(
            a["topic"], a["value"], a.get("key"), int(a["partition"]), a.get("acks", -1)
        ),
        (("value", "str", True), ("key", "str", False), ("acks", "int", False)),
    ),
    Operation(
        "POST",
        "/elect_leaders",
        "run a preferred or unclean election",
        _elect,
        (("election", "str", False), ("partitions", "array", False)),
    ),
    Operation(
        "POST",
        "/reassign_partitions",
        "move partitions: [topic, partition, [brokers] or null] each",
        _reassign,
        (("reassignments", "array", True),),
    ),
    Operation("GET", "/controller", "the active controller and its metrics", _controller),
    Operation("POST", "/controller/resign", "elect anew", lambda c, _: c.controller.resign()),
    Operation(
        "POST",
        "/zookeeper/expire_session/{broker}",
        "expire a broker's session",
        lambda c, a: c.zookeeper.expire_session(int(a["broker"])),
    ),
    Operation(
        "POST",
        "/network/partition",
        "cut the links between groups of machines",
        _partition_network,
        (("groups", "array", True), ("both_ways", "bool", False)),
    ),
    Operation("POST", "/network/heal", "undo cuts and losses", lambda c, _: c.network.heal()),
    Operation(
        "POST",
        "/network/latency",
        "set the delay of all links",
        lambda c, a: c.network.latency(a["constant_ms"]),
        (("constant_ms", "float", True),),
    ),
    Operation(
        "POST",
        "/inject",
        "answer, delay or break off the next requests of an API",
        _inject,
        (
            ("api", "str", True),
            ("error", "str", False),
            ("times", "int", False),
            ("broker", "int", False),
            ("delay_ms", "float", False),
            ("disconnect", "bool", False),
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
                                name: {"type": _JSON_TYPES.get(kind, kind)}
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


def _is_a(value: Any, kind: str) -> bool:
    """Whether a JSON value has a type of the table; null counts as any, as not given."""
    if value is None:
        return True
    if isinstance(value, bool):
        return kind == "bool"
    return isinstance(value, _PYTHON_TYPES[kind])


def dispatch(cluster: Cluster, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    """(HTTP status, JSON value) of one call."""
    path = path.rstrip("/") or "/"
    if (method, path) == ("GET", "/openapi.json"):
        return 200, openapi()
    for operation in OPERATIONS:
        found = operation.match(method, path)
        if found is None:
            continue
        known = [name for name, _, _ in operation.parameters]
        unknown = [name for name in body if name not in known]
        missing = [n for n, _, needed in operation.parameters if needed and n not in body]
        if unknown or missing:
            wrong = f"unknown {unknown}" if unknown else f"missing {missing}"
            return 400, {"error": f"{method} {operation.path}: {wrong}; fields are {known}"}
        for name, kind, _ in operation.parameters:
            if not _is_a(body.get(name), kind):
                wrong = f"{name} must be {_JSON_TYPES.get(kind, kind)}, not {body[name]!r}"
                return 400, {"error": f"{method} {operation.path}: {wrong}"}
        try:
            return 200, operation.run(cluster, {**body, **found})
        except KafkaError as error:
            return 409, {"error": str(error), "code": int(error.code), "name": error.code.name}
        except (FakeKafkaError, ValueError, TypeError, KeyError, IndexError) as error:
            return 400, {"error": f"{method} {path}: {error}"}
    return 404, {"error": f"there is no {method} {path}; see /openapi.json"}


class ControlServer:
    """Serves the control API of a cluster on 127.0.0.1 in threads of its own.

    Raises ``UsageError`` for a number that is no port and ``OSError`` for a port in use.
    """

    def __init__(self, cluster: Cluster, port: int = 0) -> None:
        if not 0 <= port <= 65535:
            raise UsageError(f"the control port must be between 0 and 65535, not {port}")

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                raw = self.rfile.read(length)
                try:
                    body = json.loads(raw) if raw.strip() else {}
                    if not isinstance(body, dict):
                        raise UsageError("the body must be a JSON object")
                except (ValueError, UsageError) as error:
                    status, value = 400, {"error": f"the body is no JSON object: {error}"}
                else:
                    status, value = dispatch(cluster, self.command, self.path, body)
                data = json.dumps(value, default=str).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_DELETE = _answer  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """The caller sees the answers; a log of them would only be noise."""

        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        except OSError as error:
            raise OSError(error.errno, f"control port {port}: {error.strerror}") from None
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=lambda: self._server.serve_forever(poll_interval=0.05),
            name="fakekafka-control",
            daemon=True,
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
