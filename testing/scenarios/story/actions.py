"""What a step of a story may do: the reading of each action, and the doing.

An action is ``{action = "kill", broker = "A"}``; ``STEP_ACTIONS`` has all of them with their keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ....protocol.errors import UsageError
from ....protocol.names import ADMIN
from ...api_names import message_type
from ..actions import ACTIONS, read_topic_config
from ..pieces import check_machine
from ..spec import ActionSpec, ClusterSpec, StateExpect
from ..table import Table
from .logs import value_range

if TYPE_CHECKING:
    from ....protocol.values import TopicPartition
    from ...handles.message_gate import MessageGate
    from ...simulation import Simulation
    from ..spec import StorySpec
    from .clients import StoryClients

_WITHIN_MS = 60_000.0


class NameReader(Protocol):
    """What the readers of actions need of the story's header."""

    def broker(self, table: Table, name: str, value: Any) -> int: ...

    def state(self, table: Table) -> StateExpect: ...


class StoryDriver(Protocol):
    """What actions need of the playing of a story."""

    simulation: Simulation
    story: StorySpec
    where: TopicPartition
    clients: StoryClients
    gate: MessageGate

    def advance(
        self,
        for_ms: float | None = None,
        until: StateExpect | None = None,
        within_ms: float = 0.0,
    ) -> None: ...

    def flush(self, broker_id: int) -> None: ...

    def create_topic(self) -> None: ...


Act = Callable[[StoryDriver, Mapping[str, Any]], object]
Read = Callable[[Table, NameReader, ClusterSpec], dict[str, Any]]


def _broker(table: Table, reader: NameReader, _cluster: ClusterSpec) -> dict[str, Any]:
    if not table.has("broker"):
        raise table.error("broker", "is missing")
    return {"broker": reader.broker(table, "broker", table.raw("broker"))}


def _any_broker(table: Table, reader: NameReader, cluster: ClusterSpec) -> dict[str, Any]:
    """A named broker, or one without a part in the story, by its id."""
    value = table.raw("broker")
    if isinstance(value, int) and not isinstance(value, bool):
        return {"broker": check_machine(table, "broker", value, cluster)}
    return _broker(table, reader, cluster)


def _nothing(_table: Table, _reader: NameReader, _cluster: ClusterSpec) -> dict[str, Any]:
    return {}


def _produce(table: Table, reader: NameReader, _cluster: ClusterSpec) -> dict[str, Any]:
    raw = table.raw("values", [])
    values: list[str] = []
    for text in raw if isinstance(raw, list) else [raw]:
        if not isinstance(text, str):
            raise table.error("values", f"must be texts, not {text!r}")
        try:
            values += value_range(text)
        except ValueError as error:
            raise table.error("values", str(error)) from None
    if not values:
        raise table.error("values", "is missing; write 'm1' or ['m1', 'r0..r9']")
    acks = table.raw("acks", "all")
    if acks not in ("all", -1, 0, 1) or isinstance(acks, bool):
        raise table.error("acks", f"must be 0, 1 or 'all', not {acks!r}")
    return {
        "values": values,
        "acks": -1 if acks == "all" else acks,
        "to": reader.broker(table, "to", table.raw("to")) if table.has("to") else None,
        "retries": table.flag("retries", False),
        "timeout_ms": table.integer("timeout_ms", 30_000, 1),
    }


def _run(table: Table, reader: NameReader, _cluster: ClusterSpec) -> dict[str, Any]:
    if table.has("for_ms") == table.has("until"):
        raise table.error("", "run needs for_ms, or until with a state to wait for")
    if table.has("for_ms"):
        return {"for_ms": table.number("for_ms", 0.0)}
    return {
        "until": reader.state(table.table("until")),
        "within_ms": table.number("within_ms", _WITHIN_MS),
    }


def _machine(table: Table, name: str, reader: NameReader, cluster: ClusterSpec) -> int | str | None:
    if not table.has(name):
        return None
    value = table.raw(name)
    if isinstance(value, str) and (value == "clients" or "-" in value or value == ADMIN):
        return check_machine(table, name, value, cluster)
    if isinstance(value, int):
        return check_machine(table, name, value, cluster)
    return reader.broker(table, name, value)


def _messages(table: Table, reader: NameReader, cluster: ClusterSpec) -> dict[str, Any]:
    raw = table.raw("messages", [])
    names = raw if isinstance(raw, list) else [raw]
    try:
        types = [message_type(str(name)) for name in names]
    except UsageError as error:
        raise table.error("messages", str(error)) from None
    return {
        "messages": tuple(types),
        "source": _machine(table, "from", reader, cluster),
        "target": _machine(table, "to", reader, cluster),
    }


def _link(table: Table, reader: NameReader, cluster: ClusterSpec) -> dict[str, Any]:
    ends = {name: _machine(table, name, reader, cluster) for name in ("from", "to")}
    for name, end in ends.items():
        if end is None:
            raise table.error(name, "is missing; a link has two ends")
    return {**ends, "both_ways": table.flag("both_ways", True)}


def _elect(table: Table, _reader: NameReader, _cluster: ClusterSpec) -> dict[str, Any]:
    return {"election": table.text("election", "preferred", ("preferred", "unclean"))}


def _config(table: Table, _reader: NameReader, _cluster: ClusterSpec) -> dict[str, Any]:
    config = read_topic_config(table)
    if not config:
        raise table.error("config", "is missing; write {min.insync.replicas = 2}")
    return {"config": config}


def _read(table: Table, reader: NameReader, _cluster: ClusterSpec) -> dict[str, Any]:
    return {
        "name": _answer_name(table),
        "offset": table.integer("offset", 0),
        "to": reader.broker(table, "to", table.raw("to")) if table.has("to") else None,
    }


def _ask_epoch(table: Table, reader: NameReader, _cluster: ClusterSpec) -> dict[str, Any]:
    return {
        "name": _answer_name(table),
        "epoch": table.integer("epoch", 0),
        "to": reader.broker(table, "to", table.raw("to")) if table.has("to") else None,
    }


def _ask_leader(table: Table, reader: NameReader, _cluster: ClusterSpec) -> dict[str, Any]:
    return {
        "name": _answer_name(table),
        "to": reader.broker(table, "to", table.raw("to")) if table.has("to") else None,
    }


def _answer_name(table: Table) -> str:
    name = table.text("name")
    if not name:
        raise table.error("name", "is missing; the answer is expected under it")
    return name


# -- doing -------------------------------------------------------------------------------------


def _shared(name: str) -> Act:
    """What the table of all actions says, with the keys the step has."""
    return lambda run, arguments: ACTIONS[name].perform(run.simulation, arguments)


def _of_clients(name: str) -> Act:
    return lambda run, arguments: getattr(run.clients, name)(**arguments)


def _of_gate(name: str) -> Act:
    return lambda run, arguments: getattr(run.gate, name)(**arguments)


def _cut(run: StoryDriver, arguments: Mapping[str, Any]) -> None:
    groups = [[arguments["from"]], [arguments["to"]]]
    both_ways = arguments["both_ways"]
    ACTIONS["partition"].perform(run.simulation, {"groups": groups, "both_ways": both_ways})


def _elect_story_leader(run: StoryDriver, arguments: Mapping[str, Any]) -> None:
    wanted = {**arguments, "partitions": [run.where]}
    ACTIONS["elect_leaders"].perform(run.simulation, wanted)


def _alter_config(run: StoryDriver, arguments: Mapping[str, Any]) -> None:
    ACTIONS["alter_config"].perform(run.simulation, {"topic": run.story.topic, **arguments})


_ON_BROKERS = (
    "kill", "power_off", "shutdown", "start", "pause", "resume", "expire_session",
)  # fmt: skip
"""What a step does to a broker as a scenario does."""

STEP_ACTIONS: dict[str, tuple[Read, Act]] = {
    "produce": (_produce, _of_clients("produce")),
    "run": (_run, lambda run, arguments: run.advance(**arguments)),
    **{name: (_any_broker, _shared(name)) for name in _ON_BROKERS},
    "flush": (_broker, lambda run, arguments: run.flush(arguments["broker"])),
    "hold": (_messages, _of_gate("hold")),
    "release": (_messages, _of_gate("release")),
    "lose": (_messages, _of_gate("lose")),
    "cut": (_link, _cut),
    "heal": (_nothing, _shared("heal")),
    "elect": (_elect, _elect_story_leader),
    "resign_controller": (_nothing, _shared("resign_controller")),
    "alter_config": (_config, _alter_config),
    "create_topic": (_nothing, lambda run, _: run.create_topic()),
    "read": (_read, _of_clients("read")),
    "ask_epoch": (_ask_epoch, _of_clients("ask_epoch")),
    "ask_leader": (_ask_leader, _of_clients("ask_leader")),
}
"""Action to the reader of its own keys, and to what it does."""


def read_action(table: Table, reader: NameReader, cluster: ClusterSpec) -> ActionSpec:
    """One entry of a step's ``do``."""
    action = table.text("action", choices=STEP_ACTIONS)
    arguments = STEP_ACTIONS[action][0](table, reader, cluster)
    table.finish()
    return ActionSpec(action, arguments)


def act(run: StoryDriver, spec: ActionSpec) -> None:
    """Do what an action says; operating errors are raised."""
    STEP_ACTIONS[spec.action][1](run, spec.arguments)
