"""Conditions of scenarios: expressions over the state of a simulation.

``leader("orders", 0) != 1 and isr("orders", 0) == [2, 3]`` holds or does not hold at a moment.
The language is that of trace filters (tracing/expressions.py); what can be asked stands in
``QUESTIONS``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import Any

from ...protocol.errors import UsageError
from ...tracing.expressions import Expression, compile_expression, takes_scope

NAMES: dict[str, Callable[[Any], Any]] = {
    "now_ms": lambda simulation: simulation.now_ms,
    "controller": lambda simulation: simulation.controller.id,
    "controller_epoch": lambda simulation: simulation.controller.epoch,
    "alive_brokers": lambda simulation: [
        broker for broker in simulation.broker_ids if simulation.broker(broker).is_alive
    ],
}
"""Names a condition may use; ``controller`` is None while none is elected."""


def _partition_value(name: str) -> Callable[..., Any]:
    def ask(simulation: Any, topic: Any, number: Any) -> Any:
        value = getattr(simulation.partition(topic, number), name)
        return list(value) if isinstance(value, tuple) else value

    return takes_scope(ask)


def _replica_value(name: str) -> Callable[..., Any]:
    def ask(simulation: Any, topic: Any, number: Any, broker: Any) -> Any:
        view = simulation.partition(topic, number)
        return getattr(view.replica(broker), name) if broker in view.replicas else None

    return takes_scope(ask)


@takes_scope
def _alive(simulation: Any, broker: Any) -> Any:
    return simulation.broker(broker).is_alive


@takes_scope
def _broker_state(simulation: Any, broker: Any) -> Any:
    return simulation.broker(broker).state


@takes_scope
def _count(simulation: Any, topic: Any) -> Any:
    context = simulation.running.require_controller().context
    return len(context.topics.partitions_for_topic(topic))


@takes_scope
def _replicated(simulation: Any, *topics: Any) -> Any:
    from ..checks import fully_replicated

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
    "alive": _alive,
    "broker_state": _broker_state,
    "partition_count": _count,
    "fully_replicated": _replicated,
    "sorted": sorted,
}
"""Functions a condition may call: ``leader(topic, partition)``, ``alive(broker)``, ..."""


class Condition:
    """A condition of a scenario; ``holds(simulation)`` asks it now."""

    __slots__ = ("_expression", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._expression: Expression = compile_expression(
            text, lambda simulation, name: NAMES[name](simulation), NAMES, functions=QUESTIONS
        )

    def holds(self, simulation: Any) -> bool:
        """Whether it holds; False while what it asks about does not exist (yet)."""
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


_ROLES = ("controller", "random", "leader:orders-0", "follower:orders-0", "preferred:orders-0")
_REFERENCE = re.compile(r"(leader|follower|preferred):(.+)-(\d+)")


class BrokerReference:
    """A broker named in a scenario: an id, or by the part it plays at that moment."""

    __slots__ = ("partition", "role", "text", "topic", "value")

    def __init__(self, value: int | str) -> None:
        self.text = str(value)
        self.value = value if isinstance(value, int) else None
        self.role = "id"
        self.topic = ""
        self.partition = -1
        if isinstance(value, str):
            match = _REFERENCE.fullmatch(value)
            if value in ("controller", "random"):
                self.role = value
            elif match is not None:
                self.role, self.topic, self.partition = match[1], match[2], int(match[3])
            else:
                near = difflib.get_close_matches(value, _ROLES, n=1)
                meant = f"did you mean {near[0]!r}? " if near else ""
                raise UsageError(
                    f"{value!r} names no broker; {meant}write an id such as 1, 'controller', "
                    "'random', 'leader:orders-0', 'follower:orders-0' or 'preferred:orders-0'"
                )

    def resolve(self, simulation: Any) -> int | None:
        """The broker meant now; None when there is none (no leader, no controller)."""
        if self.role == "id":
            return self.value
        if self.role == "controller":
            found = simulation.controller.id
            return None if found is None else int(found)
        if self.role == "random":
            alive = [b for b in simulation.broker_ids if simulation.broker(b).is_alive]
            return int(simulation.runtime.rng.choice(alive)) if alive else None
        view = simulation.partition(self.topic, self.partition)
        if self.role == "leader":
            return None if view.leader is None else int(view.leader)
        if self.role == "preferred":
            return int(view.replicas[0])
        followers = [
            broker
            for broker in view.replicas
            if broker != view.leader and simulation.broker(broker).is_alive
        ]
        return int(followers[0]) if followers else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BrokerReference) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"BrokerReference({self.text!r})"
