"""The actions of a story's steps: their keys, and the functions that perform them.

An action is written ``{action = "kill", broker = "A"}``; ``STEP_ACTIONS`` lists all of them. Those
that scenarios also have are taken from ``scenarios.actions.ACTIONS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ...testing.parameters.cluster_kinds import MACHINE, MESSAGES
from ...testing.parameters.kinds import COUNT, FLAG, INDEX, MILLISECONDS, NAME, BadArgument
from ...testing.parameters.parameter import Parameter, optional, read, required
from ..actions import ACTIONS, action_name
from ..file_kinds import ACKS
from ..spec import ActionSpec, StateExpect, StorySpec
from .context import STATE, STORY_BROKER, StoryContext
from .logs import VALUES

if TYPE_CHECKING:
    from ...protocol.values import TopicPartition
    from ...testing.handles.message_gate import MessageGate
    from ...testing.simulation import Simulation
    from .clients import StoryClients


class StoryDriver(Protocol):
    """The part of a running story that actions use."""

    simulation: Simulation
    story: StorySpec
    where: TopicPartition
    clients: StoryClients
    gate: MessageGate

    def advance(
        self, for_ms: float | None = None, until: StateExpect | None = None, within_ms: float = 0.0
    ) -> None: ...

    def flush(self, broker_id: int) -> None: ...

    def create_topic(self) -> None: ...


PerformAction = Callable[[StoryDriver, dict[str, Any]], object]


@dataclass(frozen=True, slots=True)
class StepAction:
    """An action that a step can contain."""

    perform: PerformAction
    parameters: tuple[Parameter, ...] = ()
    check: Callable[[Mapping[str, Any]], object] | None = None
    """Raises ``BadArgument`` for an invalid combination of keys."""


# -- performing --------------------------------------------------------------------------------


def _client_action(name: str, *parameters: Parameter) -> StepAction:
    return StepAction(lambda run, given: getattr(run.clients, name)(**given), parameters)


def _gate_action(name: str) -> StepAction:
    def perform(run: StoryDriver, given: dict[str, Any]) -> None:
        messages = tuple(given.get("messages", ()))
        getattr(run.gate, name)(messages, given.get("from"), given.get("to"))

    return StepAction(
        perform,
        (
            optional("messages", MESSAGES, "all between nodes without it"),
            optional("from", MACHINE, "who sends"),
            optional("to", MACHINE, "who gets them"),
        ),
    )


def _shared_action(name: str, **supplied: Callable[[StoryDriver], Any]) -> StepAction:
    """Adapt an action of ``ACTIONS``; the story supplies the arguments in ``supplied``."""

    def perform(run: StoryDriver, given: dict[str, Any]) -> None:
        supplied_values = {key: supply(run) for key, supply in supplied.items()}
        ACTIONS[name].perform(run.simulation, {**given, **supplied_values})

    parameters = ACTIONS[name].parameters
    return StepAction(
        perform, tuple(one for one in parameters if one.name not in {*supplied, "wait"})
    )


def _check_run(given: Mapping[str, Any]) -> None:
    if ("for_ms" in given) == ("until" in given):
        raise BadArgument("run needs for_ms, or until with a state to wait for")


def _cut(run: StoryDriver, given: dict[str, Any]) -> None:
    groups = [[given["from"]], [given["to"]]]
    both_ways = given.get("both_ways", True)
    ACTIONS["partition"].perform(run.simulation, {"groups": groups, "both_ways": both_ways})


_ANSWER_NAME = required("name", NAME, "the answer is expected under it")
_TO = optional("to", STORY_BROKER, "whom it asks; the leader without it")
_ON_BROKERS = (
    "kill", "power_off", "shutdown", "start", "pause", "resume", "expire_session",
)  # fmt: skip
"""Actions on brokers that steps share with scenarios."""

STEP_ACTIONS: dict[str, StepAction] = {
    "produce": _client_action(
        "produce",
        required("values", VALUES, "each is a batch of its own"),
        optional("acks", ACKS, '0, 1 or "all"', -1, default_words='"all"'),
        _TO,
        optional("retries", FLAG, "whether as a real producer does", False),
        optional("timeout_ms", COUNT, "of the request", 30_000),
    ),
    "run": StepAction(
        lambda run, given: run.advance(**given),
        (
            optional("for_ms", MILLISECONDS, "a span of time"),
            optional("until", STATE, "or a state, as in expect"),
            optional("within_ms", MILLISECONDS, "of until", 60_000.0),
        ),
        _check_run,
    ),
    **{name: _shared_action(name) for name in _ON_BROKERS},
    "flush": StepAction(
        lambda run, given: run.flush(given["broker"]),
        (required("broker", STORY_BROKER, "what it holds survives a power failure"),),
    ),
    "hold": _gate_action("hold"),
    "release": _gate_action("release"),
    "lose": _gate_action("lose"),
    "cut": StepAction(
        _cut,
        (
            required("from", MACHINE),
            required("to", MACHINE),
            optional("both_ways", FLAG, default=True),
        ),
    ),
    "heal": _shared_action("heal"),
    "elect": _shared_action("elect_leaders", partitions=lambda run: [run.where]),
    "resign_controller": _shared_action("resign_controller"),
    "alter_config": _shared_action("alter_config", topic=lambda run: run.story.topic),
    "create_topic": StepAction(lambda run, _: run.create_topic()),
    "read": _client_action("read", _ANSWER_NAME, optional("offset", INDEX, "where", 0), _TO),
    "ask_epoch": _client_action(
        "ask_epoch", _ANSWER_NAME, optional("epoch", INDEX, "which", 0), _TO
    ),
    "ask_leader": _client_action("ask_leader", _ANSWER_NAME, _TO),
}
"""All actions of steps, by name."""


def read_action(values: Mapping[str, Any], context: StoryContext) -> ActionSpec:
    """Read one entry of a step's ``do``."""
    name = action_name(values, STEP_ACTIONS, context)
    rest = {key: value for key, value in values.items() if key != "action"}
    action = STEP_ACTIONS[name]
    given = read(action.parameters, rest, context, other_names=["action"], fills_defaults=True)
    if action.check is not None:
        action.check(given)
    return ActionSpec(name, given)


def perform(run: StoryDriver, spec: ActionSpec) -> None:
    """Perform an action; its errors are raised."""
    STEP_ACTIONS[spec.action].perform(run, dict(spec.arguments))
