"""Conditions of scenarios: expressions over the state of a simulation.

An example is ``leader("orders", 0) != 1 and isr("orders", 0) == [2, 3]``. The language is that of
trace filters (tracing/expressions.py), with the names in ``NAMES`` and the functions in
``QUESTIONS``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..protocol.errors import UsageError
from ..testing.parameters.kinds import STRING, Context, Kind, as_problem
from ..tracing.expressions import Expression, compile_expression, takes_scope

NAMES: dict[str, Callable[[Any], Any]] = {
    "now_ms": lambda simulation: simulation.now_ms,
    "controller": lambda simulation: simulation.controller.id,
    "controller_epoch": lambda simulation: simulation.controller.epoch,
    "alive_brokers": lambda simulation: [
        broker for broker in simulation.broker_ids if simulation.broker(broker).is_alive
    ],
}
"""Names available in a condition; ``controller`` is None while no controller is elected."""


def _partition_value(name: str) -> Callable[..., Any]:
    def evaluate(simulation: Any, topic: Any, number: Any) -> Any:
        value = getattr(simulation.partition(topic, number), name)
        return list(value) if isinstance(value, tuple) else value

    return takes_scope(evaluate)


def _replica_value(name: str) -> Callable[..., Any]:
    def evaluate(simulation: Any, topic: Any, number: Any, broker: Any) -> Any:
        view = simulation.partition(topic, number)
        return getattr(view.replica(broker), name) if broker in view.replicas else None

    return takes_scope(evaluate)


@takes_scope
def _is_alive(simulation: Any, broker: Any) -> Any:
    return simulation.broker(broker).is_alive


@takes_scope
def _broker_state(simulation: Any, broker: Any) -> Any:
    return simulation.broker(broker).state


@takes_scope
def _partition_count(simulation: Any, topic: Any) -> Any:
    context = simulation.running.require_controller().context
    return len(context.topics.partitions_for_topic(topic))


@takes_scope
def _group_state(simulation: Any, group_id: Any) -> Any:
    return simulation.group(group_id).state


@takes_scope
def _group_members(simulation: Any, group_id: Any) -> Any:
    return len(simulation.group(group_id).members)


@takes_scope
def _group_lag(simulation: Any, group_id: Any) -> Any:
    return sum(simulation.group(group_id).lag.values())


@takes_scope
def _is_fully_replicated(simulation: Any, *topics: Any) -> Any:
    from ..testing.checks import fully_replicated

    return fully_replicated(simulation, topics or simulation.topics())


QUESTIONS: dict[str, Callable[..., Any]] = {
    "leader": _partition_value("leader"),
    "leader_epoch": _partition_value("leader_epoch"),
    "isr": _partition_value("isr"),
    "replicas": _partition_value("replicas"),
    "partition_state": _partition_value("state"),
    "high_watermark": _partition_value("high_watermark"),
    "log_end_offset": _partition_value("log_end_offset"),
    "replica_end": _replica_value("log_end_offset"),
    "replica_high_watermark": _replica_value("high_watermark"),
    "alive": _is_alive,
    "broker_state": _broker_state,
    "partition_count": _partition_count,
    "group_state": _group_state,
    "group_members": _group_members,
    "group_lag": _group_lag,
    "fully_replicated": _is_fully_replicated,
    "sorted": sorted,
}
"""Functions available in a condition: ``leader(topic, partition)``, ``alive(broker)``, ..."""


class Condition:
    """A condition of a scenario; ``holds(simulation)`` evaluates it."""

    __slots__ = ("_expression", "text")

    def __init__(self, text: str) -> None:
        self.text: str = text
        self._expression: Expression = compile_expression(
            text, lambda simulation, name: NAMES[name](simulation), NAMES, functions=QUESTIONS
        )

    def holds(self, simulation: Any) -> bool:
        """Return whether the condition holds; False if what it refers to does not exist."""
        try:
            return self._expression.holds(simulation)
        except UsageError:
            return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Condition) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Condition({self.text!r})"


def _convert_condition(value: Any, context: Context) -> Condition:
    with as_problem():
        return Condition(STRING.convert(value, context))


CONDITION = Kind(
    "a condition",
    {"type": "string"},
    _convert_condition,
    'leader("orders", 0) == 2',
    parse_text=str,
)
