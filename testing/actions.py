"""What can be done to a cluster by name: the table behind scenarios, stories and the control API.

``ACTIONS["kill"].perform(cluster, {"broker": 1})`` does it. How the arguments are written in a
scenario is read in ``scenarios/faults.py``, in a request in ``control_api/operations.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .emulated_cluster import EmulatedCluster

Perform = Callable[["EmulatedCluster", Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that can be done; ``perform`` takes its arguments by name."""

    summary: str
    perform: Perform
    example: Mapping[str, Any]
    """Its keys as a scenario writes them, for a cluster of three brokers and a topic orders."""
    is_about_broker: bool = False
    """Whether it has a ``broker``, which a scenario may also name by its role."""


def _of_broker(summary: str, method: str, **fixed: Any) -> Action:
    def perform(cluster: EmulatedCluster, arguments: Mapping[str, Any]) -> Any:
        return getattr(cluster.broker(arguments["broker"]), method)(**fixed)

    return Action(summary, perform, {"broker": 1}, is_about_broker=True)


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


def _inject(cluster: EmulatedCluster, arguments: Mapping[str, Any]) -> None:
    names = ("error", "times", "broker", "delay_ms", "disconnect")
    cluster.inject(arguments["api"], **{n: arguments[n] for n in names if n in arguments})


def _note(cluster: EmulatedCluster, arguments: Mapping[str, Any]) -> None:
    cluster.runtime.note("note", "scenario", arguments["text"])


ACTIONS: Mapping[str, Action] = MappingProxyType(
    {
        "kill": _of_broker("kill a broker", "kill"),
        "power_off": _of_broker("cut a broker's power", "power_off"),
        "shutdown": _of_broker("shut a broker down in control", "shutdown"),
        "start": Action("start a broker", _start, {"broker": 1}, is_about_broker=True),
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
            is_about_broker=True,
        ),
        "isolate": Action(
            "cut a machine off from all others",
            lambda cluster, arguments: cluster.network.isolate(arguments["machine"]),
            {"machine": 2},
        ),
        "partition": Action(
            "cut the links between groups of machines",
            _partition,
            {"groups": [[1], [2, 3]], "both_ways": False},
        ),
        "heal": Action("undo cuts and losses", lambda cluster, _: cluster.network.heal(), {}),
        "drop": Action(
            "lose messages with a probability",
            lambda cluster, arguments: cluster.network.drop(**arguments),
            {"probability": 0.1, "source": 1, "target": 2},
        ),
        "latency": Action(
            "set the delay of all links or of one",
            _latency,
            {"latency": {"constant_ms": 5}, "source": 1, "target": 2},
        ),
        "elect_leaders": Action(
            "run a preferred or unclean election",
            _elect_leaders,
            {"election": "preferred", "partitions": ["orders-0"]},
        ),
        "reassign": Action(
            "move partitions to other brokers",
            lambda cluster, arguments: cluster.reassign_partitions(arguments["replicas"]),
            {"replicas": {"orders-0": [2, 3, 1]}},
        ),
        "resign_controller": Action(
            "elect a controller anew", lambda cluster, _: cluster.controller.resign(), {}
        ),
        "kill_zookeeper": Action(
            "kill a ZooKeeper server",
            lambda cluster, arguments: cluster.zookeeper.server(arguments["server"]).kill(),
            {"server": 1},
        ),
        "start_zookeeper": Action(
            "start a ZooKeeper server",
            lambda cluster, arguments: cluster.zookeeper.server(arguments["server"]).start(),
            {"server": 1},
        ),
        "inject": Action(
            "answer, delay or break off the next requests of an API",
            _inject,
            {"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "requests": 2},
        ),
        "note": Action("write a note into the trace", _note, {"text": "here"}),
    }
)
"""Every action by the name that all languages give it."""
