"""Operations on brokers, on the controller, and on leaders."""

from __future__ import annotations

from typing import Any

from ..scenarios.actions import LOG_DIRECTORY
from ..testing.api_names import request_type
from ..testing.handles.message_values import plain_value, read_message
from ..testing.parameters.cluster_kinds import API
from ..testing.parameters.kinds import INDEX, OBJECT, STRING, number
from ..testing.parameters.parameter import optional, required
from . import cluster_state
from .acting import acting
from .operation import Operation, ServedCluster

_BROKERS, _CONTROLLER = "brokers", "controller"
_ASK_S, _ASK_S_MAX = 30, 300


def _one(served: ServedCluster, arguments: dict[str, Any]) -> dict[str, Any]:
    broker_id = served.cluster.broker(arguments["broker"]).id
    return next(
        shown for shown in cluster_state.brokers(served.cluster) if shown["id"] == broker_id
    )


def _metrics(served: ServedCluster, arguments: dict[str, Any]) -> dict[str, Any]:
    return served.cluster.broker(arguments["broker"]).metrics


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
    Operation(
        "GET",
        "/brokers",
        _BROKERS,
        "all brokers with their state",
        lambda served, _: cluster_state.brokers(served.cluster),
        gives="an array of brokers",
    ),
    Operation("GET", "/brokers/{broker}", _BROKERS, "one broker", _one, gives="the broker"),
    Operation(
        "GET",
        "/brokers/{broker}/metrics",
        _BROKERS,
        "a broker's metrics by Kafka's names",
        _metrics,
        gives="an object of metrics",
    ),
    Operation(
        "GET",
        "/brokers/{broker}/log_dirs",
        _BROKERS,
        "a broker's log directories and the partitions in them",
        _log_dirs,
        gives="an array of directories",
    ),
    acting("/brokers/{broker}/kill", "kill", _BROKERS),
    acting("/brokers/{broker}/power_off", "power_off", _BROKERS),
    acting("/brokers/{broker}/shutdown", "shutdown", _BROKERS),
    acting("/brokers/{broker}/start", "start", _BROKERS),
    acting("/brokers/{broker}/restart", "restart", _BROKERS),
    acting("/brokers/{broker}/pause", "pause", _BROKERS),
    acting("/brokers/{broker}/resume", "resume", _BROKERS),
    acting("/brokers/{broker}/shift_clock", "shift_clock", _BROKERS),
    acting("/brokers/{broker}/set_clock_rate", "set_clock_rate", _BROKERS),
    acting("/brokers/{broker}/fail_log_dir", "fail_log_dir", _BROKERS),
    Operation(
        "POST",
        "/brokers/{broker}/repair_log_dir",
        _BROKERS,
        "put a failed log directory in order for the next start",
        _repair,
        (LOG_DIRECTORY,),
    ),
    Operation(
        "POST",
        "/brokers/{broker}/move_replica",
        _BROKERS,
        "begin to move a broker's replica to another of its log directories",
        _move_replica,
        (
            required("topic", STRING),
            required("partition", INDEX),
            required("log_dir", STRING, "a path that GET .../log_dirs shows"),
        ),
    ),
    Operation(
        "POST",
        "/brokers/{broker}/ask",
        _BROKERS,
        "send a broker any request, as another broker would",
        _ask,
        (
            required("api", API, "Kafka's name, such as Metadata"),
            optional("request", OBJECT, "the fields of fakekafka's request of that name"),
            optional(
                "timeout_s",
                number("seconds", most=_ASK_S_MAX, is_above=True),
                f"at most {_ASK_S_MAX}",
                _ASK_S,
            ),
        ),
        gives="the response with its fields; errors by name, bytes in base64",
    ),
    Operation(
        "GET",
        "/controller",
        _CONTROLLER,
        "the active controller and its metrics",
        _controller,
        gives="its id, epoch and metrics",
    ),
    acting("/controller/resign", "resign_controller", _CONTROLLER),
    Operation(
        "POST",
        "/controller/move_to/{broker}",
        _CONTROLLER,
        "make a broker the active controller",
        _move,
    ),
    acting("/elect_leaders", "elect_leaders", _CONTROLLER),
    acting("/reassign_partitions", "reassign", _CONTROLLER, names={"targets": "reassignments"}),
    Operation(
        "GET",
        "/reassignments",
        _CONTROLLER,
        "moves that are under way",
        _reassignments,
        gives="an array of moves",
    ),
)
