"""The named actions on a cluster, shared by scenarios, stories and the control API.

Each action is one entry: the method of a handle that performs it, and its parameters, named as in
the method. ``ACTIONS["kill"].perform(cluster, {"broker": 1})`` performs an action.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ..testing.emulated_cluster import EmulatedCluster
from ..testing.handles.broker import BrokerHandle
from ..testing.handles.controller import ControllerHandle
from ..testing.handles.injection import Injection
from ..testing.handles.injection_arguments import check_injection, injection_arguments
from ..testing.handles.network import NetworkHandle, check_groups, check_link, latency_model
from ..testing.handles.zookeeper import ZooKeeperHandle, ZooKeeperServerHandle
from ..testing.parameters.cluster_kinds import (
    API,
    ASSIGNMENT,
    BROKER,
    ELECTION,
    ERROR,
    GROUPS,
    LATENCY_MODELS,
    LOG_DIR,
    MACHINE,
    MOVES,
    PARTITION_ERRORS,
    PARTITIONS,
    REPLICA_LISTS,
    SERVER,
    TIMES,
    TOPIC_CONFIG,
)
from ..testing.parameters.kinds import (
    CLOCK_RATE,
    CLOCK_SHIFT,
    COUNT,
    FLAG,
    INDEX,
    INT32,
    MEGABYTES_PER_SECOND,
    MILLISECONDS,
    NAME,
    OBJECT,
    PROBABILITY,
    STRING,
    BadArgument,
    Context,
    as_problem,
    choice,
)
from ..testing.parameters.parameter import NO_DEFAULT, Parameter, optional, read, required

_OWNERS: Mapping[str, Callable[[EmulatedCluster, dict[str, Any]], Any]] = {
    "EmulatedCluster": lambda cluster, _: cluster,
    "BrokerHandle": lambda cluster, given: cluster.broker(given.pop("broker")),
    "ControllerHandle": lambda cluster, _: cluster.controller,
    "NetworkHandle": lambda cluster, _: cluster.network,
    "ZooKeeperHandle": lambda cluster, _: cluster.zookeeper,
    "ZooKeeperServerHandle": lambda cluster, given: cluster.zookeeper.server(given.pop("server")),
}
"""Functions that find the handle of a class; they take out the arguments that identify it."""


@dataclass(frozen=True, slots=True)
class Action:
    """An action on a cluster."""

    summary: str
    method: Callable[..., Any] | None
    """Method of a handle, called with the parameters by name except those that identify the
    handle."""
    parameters: tuple[Parameter, ...] = ()
    example: Mapping[str, Any] = field(default_factory=dict)
    """Example keys in a scenario file, for a cluster of three brokers with a topic orders."""
    function: Callable[..., Any] | None = None
    """Function that performs the action, if a plain call of the method is not enough."""
    check: Callable[[Mapping[str, Any]], object] | None = None
    """Raises ``UsageError`` for an invalid combination of arguments."""
    answer_description: str = "null"
    """Description of the control API's answer."""
    fixed_in_files: Mapping[str, Any] = field(default_factory=dict)
    """Values of arguments that scenario files cannot set; ``NO_DEFAULT`` leaves the default."""

    @property
    def is_about_broker(self) -> bool:
        """True if ``broker`` is required; a scenario resolves it when the action is due."""
        return any(one.name == "broker" and one.is_required for one in self.parameters)

    @property
    def in_files(self) -> tuple[Parameter, ...]:
        """The parameters under their names in scenario files."""
        return tuple(one.in_files for one in self.parameters if one.name not in self.fixed_in_files)

    def read_from_file(
        self, values: Mapping[str, Any], context: Context, other_keys: Sequence[str]
    ) -> dict[str, Any]:
        """Read the arguments from a scenario's table, which may also have ``other_keys``."""
        keys = {one.key or one.name: one.name for one in self.parameters}
        values_read = read(
            self.in_files, values, context, other_names=other_keys, fills_defaults=True
        )
        arguments = {keys[key]: value for key, value in values_read.items()}
        fixed = {
            name: value for name, value in self.fixed_in_files.items() if value is not NO_DEFAULT
        }
        if self.check is not None:
            with as_problem():
                self.check(arguments)
        return arguments | fixed

    def perform(self, cluster: EmulatedCluster, arguments: Mapping[str, Any]) -> Any:
        """Perform the action on a cluster."""
        given = dict(arguments)
        if self.function is not None:
            return self.function(cluster, **given)
        assert self.method is not None
        owner, _, name = self.method.__qualname__.partition(".")
        return getattr(_OWNERS[owner](cluster, given), name)(**given)


# -- actions that need more than a call ------------------------------------------------------------


def _shutdown(cluster: EmulatedCluster, broker: int | str, wait: bool = True) -> bool | None:
    handle = cluster.broker(broker)
    if wait:
        return handle.shutdown()
    handle.begin_shutdown()
    return None


def _partition(cluster: EmulatedCluster, groups: Sequence[Any], **more: Any) -> None:
    cluster.network.partition(*groups, **more)


def _bandwidth(cluster: EmulatedCluster, mb_per_s: float | None = None, **link: Any) -> None:
    cluster.network.bandwidth(mb_per_s, **link)


def _elect_leaders(cluster: EmulatedCluster, **arguments: Any) -> dict[str, str]:
    outcome = cluster.elect_leaders(**arguments)
    return {str(partition): error.name for partition, error in outcome.items()}


def _inject(cluster: EmulatedCluster, **arguments: Any) -> Injection:
    return cluster.inject(**injection_arguments(arguments))


def _note(cluster: EmulatedCluster, text: str) -> None:
    cluster.runtime.note("note", "scenario", text)


def _check_latency(arguments: Mapping[str, Any]) -> None:
    link = {name: arguments[name] for name in ("source", "target") if name in arguments}
    latency_model(**{name: value for name, value in arguments.items() if name not in link})
    check_link(**link)


def _check_link(arguments: Mapping[str, Any]) -> None:
    check_link(arguments.get("source"), arguments.get("target"))


# -- parameters ------------------------------------------------------------------------------------

_BROKER = required("broker", BROKER)
_SERVER = optional("server", SERVER, default=1)
_CLOCK_RATE = required("rate", CLOCK_RATE, "how many times as fast as it should; 1 ends it")
_WAIT = optional("wait", FLAG, "whether to wait until it is done", True)
LINK = (
    optional("source", MACHINE, "one end of a link; all links without it"),
    optional("target", MACHINE, "the other end"),
)
LOG_DIRECTORY = optional("directory", LOG_DIR, "the number of the log directory", 0)
_TOPIC = required("topic", STRING)
TOPIC_SHAPE = (
    optional("partitions", INT32, "how many", 1),
    optional(
        "replication_factor",
        INT32,
        "replicas of each",
        default_words="3, or as many as there are brokers",
    ),
)


def action_name(values: Mapping[str, Any], known: Iterable[str], context: Context) -> str:
    """Return the ``action`` that a table names; raise ``BadArgument`` if it is unknown."""
    if "action" not in values:
        raise BadArgument(f"is missing; there are {', '.join(known)}", "action")
    name: str = choice(*known).read_at("action", values["action"], context)
    return name


def _broker_action(summary: str, method: Callable[..., Any], *parameters: Parameter) -> Action:
    return Action(summary, method, (_BROKER, *parameters), {"broker": 1})


ACTIONS: Mapping[str, Action] = MappingProxyType(
    {
        "kill": _broker_action(
            "kill a broker",
            BrokerHandle.kill,
            optional("expire_session", FLAG, "whether its ZooKeeper session ends at once", False),
        ),
        "power_off": _broker_action(
            "cut a broker's power",
            BrokerHandle.power_off,
            optional(
                "torn", FLAG, "whether some of what was not flushed is there, cut anywhere", False
            ),
        ),
        "shutdown": Action(
            "shut a broker down in control",
            BrokerHandle.shutdown,
            (_BROKER, _WAIT),
            {"broker": 1},
            _shutdown,
            answer_description="whether every leadership could be moved; null without waiting",
            fixed_in_files={"wait": NO_DEFAULT},
        ),
        "start": Action(
            "start a broker",
            BrokerHandle.start,
            (_BROKER, _WAIT),
            {"broker": 1},
            fixed_in_files={"wait": False},
        ),
        "restart": _broker_action("shut a broker down and start it", BrokerHandle.restart),
        "pause": _broker_action("freeze a broker", BrokerHandle.pause),
        "resume": _broker_action("let a frozen broker go on", BrokerHandle.resume),
        "shift_clock": Action(
            "set the wall clock of a broker's machine forward, or back",
            BrokerHandle.shift_clock,
            (_BROKER, required("shift_ms", CLOCK_SHIFT, "how far")),
            {"broker": 1, "shift_ms": -2000},
        ),
        "set_clock_rate": Action(
            "change the rate of a broker's clocks",
            BrokerHandle.set_clock_rate,
            (_BROKER, _CLOCK_RATE),
            {"broker": 1, "rate": 1.02},
        ),
        "expire_session": _broker_action(
            "expire a broker's session", ZooKeeperHandle.expire_session
        ),
        "fail_log_dir": Action(
            "let a log directory of a broker fail",
            BrokerHandle.fail_log_dir,
            (_BROKER, LOG_DIRECTORY),
            {"broker": 1, "directory": 0},
        ),
        "isolate": Action(
            "cut a machine off from all others",
            NetworkHandle.isolate,
            (required("machine", MACHINE),),
            {"machine": 2},
        ),
        "partition": Action(
            "cut the links between groups of machines",
            NetworkHandle.partition,
            (
                required("groups", GROUPS, "two or more, each a list of machines"),
                optional(
                    "both_ways",
                    FLAG,
                    "false cuts only the links from earlier to later groups",
                    True,
                ),
            ),
            {"groups": [[1], [2, 3]], "both_ways": False},
            _partition,
            lambda arguments: check_groups(arguments["groups"]),
        ),
        "heal": Action("undo cuts and losses", NetworkHandle.heal),
        "drop": Action(
            "lose messages with a probability",
            NetworkHandle.drop,
            (required("probability", PROBABILITY, "from 0 to 1"), *LINK),
            {"probability": 0.1, "source": 1, "target": 2},
            check=_check_link,
        ),
        "restore": Action(
            "end the faults of a link, or of all links of a machine",
            NetworkHandle.restore,
            (
                required("source", MACHINE),
                optional("target", MACHINE, "the other end; every other machine without it", None),
            ),
            {"source": 1, "target": 2},
        ),
        "latency": Action(
            "set the delay of all links or of one",
            NetworkHandle.latency,
            (*LATENCY_MODELS, *LINK),
            {"latency": {"constant_ms": 5}, "source": 1, "target": 2},
            check=_check_latency,
        ),
        "bandwidth": Action(
            "set the bandwidth of all links or of one",
            NetworkHandle.bandwidth,
            (
                optional(
                    "mb_per_s",
                    MEGABYTES_PER_SECOND,
                    "megabytes per second; no limit without it",
                    None,
                ),
                *LINK,
            ),
            {"mb_per_s": 10, "source": 1, "target": 2},
            _bandwidth,
            _check_link,
        ),
        "elect_leaders": Action(
            "run a preferred or unclean election",
            EmulatedCluster.elect_leaders,
            (
                optional("election", ELECTION, default="preferred"),
                optional("partitions", PARTITIONS, "such as orders-0; all without it", None),
            ),
            {"election": "preferred", "partitions": ["orders-0"]},
            _elect_leaders,
            answer_description="an object of partition to the name of its error",
        ),
        "reassign": Action(
            "move partitions to other brokers",
            EmulatedCluster.reassign_partitions,
            (
                required(
                    "targets",
                    MOVES,
                    "the new replicas of each partition; null cancels its move",
                    key="replicas",
                ),
            ),
            {"replicas": {"orders-0": [2, 3, 1]}},
        ),
        "resign_controller": Action("elect a controller anew", ControllerHandle.resign),
        "kill_zookeeper": Action(
            "kill a ZooKeeper server", ZooKeeperServerHandle.kill, (_SERVER,), {"server": 1}
        ),
        "start_zookeeper": Action(
            "start a ZooKeeper server", ZooKeeperServerHandle.start, (_SERVER,), {"server": 1}
        ),
        "set_zookeeper_clock_rate": Action(
            "change the rate of a ZooKeeper server's clocks",
            ZooKeeperServerHandle.set_clock_rate,
            (_SERVER, _CLOCK_RATE),
            {"server": 1, "rate": 0.95},
        ),
        "create_topic": Action(
            "create a topic",
            EmulatedCluster.create_topic,
            (
                required("name", STRING, key="topic"),
                *TOPIC_SHAPE,
                optional("config", TOPIC_CONFIG, "its configuration"),
                optional(
                    "assignment",
                    ASSIGNMENT,
                    "the replicas of each partition, instead of the two counts",
                ),
            ),
            {"topic": "late", "partitions": 2, "replication_factor": 3},
        ),
        "delete_topic": Action(
            "delete a topic",
            EmulatedCluster.delete_topic,
            (required("name", STRING, key="topic"),),
            {"topic": "orders"},
        ),
        "create_partitions": Action(
            "grow a topic",
            EmulatedCluster.create_partitions,
            (
                _TOPIC,
                required("count", INT32, "how many partitions it has afterwards"),
                optional("assignment", REPLICA_LISTS, "the replicas of each new partition"),
            ),
            {"topic": "orders", "count": 2},
        ),
        "alter_config": Action(
            "set configurations of a topic",
            EmulatedCluster.alter_config,
            (_TOPIC, required("config", TOPIC_CONFIG, "by Kafka's names")),
            {"topic": "orders", "config": {"min.insync.replicas": 2}},
        ),
        "inject": Action(
            "answer, delay or break off the next requests of an API",
            EmulatedCluster.inject,
            (
                required("api", API, "Kafka's name, such as Produce"),
                optional("error", ERROR, "the name of one of Kafka's errors"),
                optional("errors", PARTITION_ERRORS, "errors of single partitions"),
                optional("answer", OBJECT, "the fields of the response that is given"),
                optional("delay_ms", MILLISECONDS, "how long they wait", 0.0),
                optional(
                    "disconnect",
                    FLAG,
                    "whether the connection is closed instead of an answer",
                    False,
                ),
                optional(
                    "times",
                    TIMES,
                    "how many requests, or all until it is cancelled",
                    1,
                    key="requests",
                ),
                optional("broker", BROKER, "an id or a role; any without it"),
                optional("topic", STRING, "only requests about it"),
                optional("partition", INDEX, "of the topic"),
                optional("client_id", STRING, "only of this client; wildcards are allowed"),
                optional("nth", COUNT, "the first request that is met", 1),
            ),
            {"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "requests": 2},
            _inject,
            check_injection,
            answer_description="the id of the injection",
        ),
        "note": Action(
            "write a note into the trace", None, (required("text", NAME),), {"text": "here"}, _note
        ),
    }
)
"""All actions, by the name that scenarios, stories and the control API share."""
