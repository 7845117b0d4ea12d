"""Operations on brokers, the controller, and leaders."""

from __future__ import annotations

from typing import Any

from ..scenarios.actions import LOG_DIRECTORY
from ..testing.api_names import request_type
from ..testing.handles.message_values import plain_value, read_message
from ..testing.parameters.cluster_kinds import API
from ..testing.parameters.kinds import INDEX, OBJECT, STRING, number
from ..testing.parameters.parameter import optional, required
from . import cluster_state
from .operation import Operation, ServedCluster
from .section import Section

_BROKERS, _CONTROLLER = Section("brokers"), Section("controller")
_ASK_S, _ASK_S_MAX = 30, 300
_BROKER_ACTIONS = (
    "kill", "power_off", "shutdown", "start", "restart", "pause", "resume", "shift_clock",
    "set_clock_rate", "fail_log_dir",
)  # fmt: skip


def _one(served: ServedCluster, arguments: dict[str, Any]) -> dict[str, Any]:
    broker_id = served.cluster.broker(arguments["broker"]).id
    return next(
        shown for shown in cluster_state.brokers(served.cluster) if shown["id"] == broker_id
    )


def _log_dirs(served: ServedCluster, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    handle = served.cluster.broker(arguments["broker"])
    disk = served.cluster.processes[handle.id].spec.disk
    stored: dict[str, list[str]] = {directory: [] for directory in disk.directories}
    for key, known in cluster_state.partitions(served.cluster).items():
        directory = disk.directory_of(key) if handle.id in known.replicas else None
        if directory is not None:
            stored[directory].append(str(key))
    return [
        {
            "directory": number,
            "path": path,
            "is_offline": path in disk.offline_dirs,
            "partitions": stored[path],
        }
        for number, path in enumerate(disk.directories)
    ]


def _repair(served: ServedCluster, arguments: dict[str, Any]) -> None:
    served.cluster.broker(arguments["broker"]).repair_log_dir(arguments.get("directory", 0))


def _move_replica(served: ServedCluster, arguments: dict[str, Any]) -> None:
    served.cluster.broker(arguments["broker"]).move_replica(
        arguments["topic"], arguments["partition"], arguments["log_dir"]
    )


def _ask(served: ServedCluster, arguments: dict[str, Any]) -> Any:
    kind = request_type(arguments["api"])
    request = read_message(kind, arguments.get("request", {}), "request")
    timeout_s = arguments.get("timeout_s", _ASK_S)
    return plain_value(served.cluster.ask(arguments["broker"], request, timeout_s))


def _controller(served: ServedCluster, _arguments: dict[str, Any]) -> dict[str, Any]:
    controller = served.cluster.controller
    return {"id": controller.id, "epoch": controller.epoch, "metrics": controller.metrics}


def _move(served: ServedCluster, arguments: dict[str, Any]) -> None:
    served.cluster.controller.move_to(arguments["broker"])


def _reassignments(served: ServedCluster, _arguments: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "topic": ongoing.topic_partition.topic,
            "partition": ongoing.topic_partition.partition,
            "replicas": ongoing.replicas,
            "adding": ongoing.adding,
            "removing": ongoing.removing,
        }
        for ongoing in served.cluster.reassignments()
    ]


BROKER_OPERATIONS: tuple[Operation, ...] = (
    _BROKERS.get(
        "/brokers",
        "all brokers with their state",
        lambda served, _: cluster_state.brokers(served.cluster),
        gives="an array of brokers",
    ),
    _BROKERS.get("/brokers/{broker}", "one broker", _one, gives="the broker"),
    _BROKERS.get(
        "/brokers/{broker}/metrics",
        "a broker's metrics by Kafka's names",
        lambda served, arguments: served.cluster.broker(arguments["broker"]).metrics,
        gives="an object of metrics",
    ),
    _BROKERS.get(
        "/brokers/{broker}/log_dirs",
        "a broker's log directories and the partitions in them",
        _log_dirs,
        gives="an array of directories",
    ),
    *(_BROKERS.act(f"/brokers/{{broker}}/{name}", name) for name in _BROKER_ACTIONS),
    _BROKERS.post(
        "/brokers/{broker}/repair_log_dir",
        "put a failed log directory in order for the next start",
        _repair,
        LOG_DIRECTORY,
    ),
    _BROKERS.post(
        "/brokers/{broker}/move_replica",
        "begin to move a broker's replica to another of its log directories",
        _move_replica,
        required("topic", STRING),
        required("partition", INDEX),
        required("log_dir", STRING, "a path that GET .../log_dirs shows"),
    ),
    _BROKERS.post(
        "/brokers/{broker}/ask",
        "send a broker any request, as another broker would",
        _ask,
        required("api", API, "Kafka's name, such as Metadata"),
        optional("request", OBJECT, "the fields of fakekafka's request of that name"),
        optional(
            "timeout_s",
            number("seconds", most=_ASK_S_MAX, is_above=True),
            f"at most {_ASK_S_MAX}",
            _ASK_S,
        ),
        gives="the response with its fields; errors by name, bytes in base64",
    ),
    _CONTROLLER.get(
        "/controller",
        "the active controller and its metrics",
        _controller,
        gives="its id, epoch and metrics",
    ),
    _CONTROLLER.act("/controller/resign", "resign_controller"),
    _CONTROLLER.post("/controller/move_to/{broker}", "make a broker the active controller", _move),
    _CONTROLLER.act("/elect_leaders", "elect_leaders"),
    _CONTROLLER.act("/reassign_partitions", "reassign", names={"targets": "reassignments"}),
    _CONTROLLER.get(
        "/reassignments", "moves that are under way", _reassignments, gives="an array of moves"
    ),
)
