"""Operations on brokers, on the controller, and on leaders."""

from __future__ import annotations

from typing import Any

from ...protocol.errors import UsageError
from ..api_names import request_type
from ..handles.message_values import plain_value, read_message
from ..scenarios.actions import ACTIONS
from . import cluster_state
from .acting import act, acting
from .fields import Field
from .operation import Desk, Operation

_BROKERS, _CONTROLLER = "brokers", "controller"
_ASK_S, _ASK_S_MAX = 30, 300
_DIRECTORY = Field("directory", "integer", False, "number of the log directory, 0 by default")


def _one(desk: Desk, arguments: dict[str, Any]) -> dict[str, Any]:
    broker_id = desk.cluster.broker(arguments["broker"]).id
    return next(shown for shown in cluster_state.brokers(desk.cluster) if shown["id"] == broker_id)


def _metrics(desk: Desk, arguments: dict[str, Any]) -> dict[str, Any]:
    return desk.cluster.broker(arguments["broker"]).metrics


def _log_dirs(desk: Desk, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    handle = desk.cluster.broker(arguments["broker"])
    disk = desk.cluster.processes[handle.id].spec.disk
    stored: dict[str, list[str]] = {directory: [] for directory in disk.directories}
    for key, known in cluster_state.partitions(desk.cluster).items():
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


def _repair(desk: Desk, arguments: dict[str, Any]) -> None:
    desk.cluster.broker(arguments["broker"]).repair_log_dir(arguments.get("directory", 0))


def _shutdown(desk: Desk, arguments: dict[str, Any]) -> bool | None:
    handle = desk.cluster.broker(arguments["broker"])
    if arguments.get("wait", True):
        return handle.shutdown()
    handle.begin_shutdown()
    return None


def _move_replica(desk: Desk, arguments: dict[str, Any]) -> None:
    desk.cluster.broker(arguments["broker"]).move_replica(
        arguments["topic"], arguments["partition"], arguments["log_dir"]
    )


def _ask(desk: Desk, arguments: dict[str, Any]) -> Any:
    kind = request_type(arguments["api"])
    request = read_message(kind, arguments.get("request", {}), "request")
    timeout_s = arguments.get("timeout_s", _ASK_S)
    if not 0 < timeout_s <= _ASK_S_MAX:
        raise UsageError(f"timeout_s must be above 0 and at most {_ASK_S_MAX}, not {timeout_s}")
    return plain_value(desk.cluster.ask(arguments["broker"], request, timeout_s))


def _controller(desk: Desk, _arguments: dict[str, Any]) -> dict[str, Any]:
    controller = desk.cluster.controller
    return {"id": controller.id, "epoch": controller.epoch, "metrics": controller.metrics}


def _move(desk: Desk, arguments: dict[str, Any]) -> None:
    desk.cluster.controller.move_to(arguments["broker"])


def _reassign(desk: Desk, arguments: dict[str, Any]) -> None:
    replicas = {(topic, number): target for topic, number, target in arguments["reassignments"]}
    act("reassign")(desk, {"replicas": replicas})


def _reassignments(desk: Desk, _arguments: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "topic": ongoing.topic_partition.topic,
            "partition": ongoing.topic_partition.partition,
            "replicas": ongoing.replicas,
            "adding": ongoing.adding,
            "removing": ongoing.removing,
        }
        for ongoing in desk.cluster.reassignments()
    ]


BROKER_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "GET",
        "/brokers",
        _BROKERS,
        "all brokers with their state",
        lambda desk, _: cluster_state.brokers(desk.cluster),
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
    acting(
        "/brokers/{broker}/kill",
        "kill",
        _BROKERS,
        Field("expire_session", "boolean", False, "whether its session ends at once"),
    ),
    acting("/brokers/{broker}/power_off", "power_off", _BROKERS),
    Operation(
        "POST",
        "/brokers/{broker}/shutdown",
        _BROKERS,
        ACTIONS["shutdown"].summary,
        _shutdown,
        (Field("wait", "boolean", False, "whether to wait for its end, which is the default"),),
        gives="whether every leadership could be moved; null without waiting",
    ),
    acting(
        "/brokers/{broker}/start",
        "start",
        _BROKERS,
        Field("wait", "boolean", False, "whether to wait until it serves, which is the default"),
    ),
    acting("/brokers/{broker}/restart", "restart", _BROKERS),
    acting("/brokers/{broker}/pause", "pause", _BROKERS),
    acting("/brokers/{broker}/resume", "resume", _BROKERS),
    acting("/brokers/{broker}/fail_log_dir", "fail_log_dir", _BROKERS, _DIRECTORY),
    Operation(
        "POST",
        "/brokers/{broker}/repair_log_dir",
        _BROKERS,
        "put a failed log directory in order for the next start",
        _repair,
        (_DIRECTORY,),
    ),
    Operation(
        "POST",
        "/brokers/{broker}/move_replica",
        _BROKERS,
        "begin to move a broker's replica to another of its log directories",
        _move_replica,
        (
            Field("topic", "string", True),
            Field("partition", "integer", True),
            Field("log_dir", "string", True, "a path that GET .../log_dirs shows"),
        ),
    ),
    Operation(
        "POST",
        "/brokers/{broker}/ask",
        _BROKERS,
        "send a broker any request, as another broker would",
        _ask,
        (
            Field("api", "string", True, "Kafka's name, such as Metadata"),
            Field("request", "object", False, "the fields of fakekafka's request of that name"),
            Field("timeout_s", "number", False, f"{_ASK_S} by default, at most {_ASK_S_MAX}"),
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
    acting(
        "/elect_leaders",
        "elect_leaders",
        _CONTROLLER,
        Field("election", "string", False, "preferred, which is the default, or unclean"),
        Field("partitions", "partitions", False, "all without it"),
        gives="an object of partition to the name of its error",
    ),
    Operation(
        "POST",
        "/reassign_partitions",
        _CONTROLLER,
        "move partitions: [topic, partition, [brokers] or null] each",
        _reassign,
        (Field("reassignments", "moves", True, "null instead of brokers cancels a move"),),
    ),
    Operation(
        "GET",
        "/reassignments",
        _CONTROLLER,
        "moves that are under way",
        _reassignments,
        gives="an array of moves",
    ),
)
