"""Rules that hold back messages of chosen kinds, to be delivered or dropped later."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .roles import machine_name

if TYPE_CHECKING:
    from ...actors.delivery import Delivery
    from ..running import RunningCluster


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """Matches messages of some kinds (empty for all) between machines (None for any)."""

    messages: tuple[type, ...] = ()
    source: str | None = None
    target: str | None = None
    is_between_nodes: bool = False
    """True to leave out what a node sends to itself, such as an event of the controller."""

    def __call__(self, delivery: Delivery) -> bool:
        return (
            (not self.messages or type(delivery.message) in self.messages)
            and self.source in (None, delivery.sender.machine)
            and self.target in (None, delivery.target.machine)
            and not (self.is_between_nodes and delivery.sender is delivery.target)
        )

    def __str__(self) -> str:
        kinds = ", ".join(kind.__name__ for kind in self.messages) or "all messages"
        source = "" if self.source is None else f" from {self.source}"
        target = "" if self.target is None else f" to {self.target}"
        return f"{kinds}{source}{target}"

    def covers(self, other: MessageFilter) -> bool:
        """Return whether this filter matches everything that another one matches."""
        return (
            (not self.messages or (bool(other.messages) and {*other.messages} <= {*self.messages}))
            and self.source in (None, other.source)
            and self.target in (None, other.target)
        )


class MessageGate:
    """Holds back messages by rules, each of which can be ended separately."""

    def __init__(self, running: RunningCluster) -> None:
        self._running = running
        self._network = running.runtime.network
        self._rules: list[MessageFilter] = []

    def _filter(
        self, messages: tuple[type, ...], source: int | str | None, target: int | str | None
    ) -> MessageFilter:
        source, target = (
            None if end is None else machine_name(self._running, end) for end in (source, target)
        )
        return MessageFilter(messages, source, target)

    def hold(
        self, messages: tuple[type, ...], source: int | str | None, target: int | str | None
    ) -> None:
        """Hold back matching messages from now on; a controller's events only if their kind is
        given."""
        rule = self._filter(messages, source, target)
        if not messages:
            rule = replace(rule, is_between_nodes=True)
        self._rules.append(rule)
        self._fault(f"{rule}: held back")
        self._network.hold(rule)

    def release(
        self, messages: tuple[type, ...], source: int | str | None, target: int | str | None
    ) -> None:
        """End the rules that these arguments cover, and deliver the held messages that match."""
        wanted = self._end_rules(messages, source, target)
        self._fault(f"{wanted}: released")
        self._network.release(wanted)

    def lose(
        self, messages: tuple[type, ...], source: int | str | None, target: int | str | None
    ) -> None:
        """End the rules that these arguments cover, and drop the held messages that match."""
        wanted = self._end_rules(messages, source, target)
        self._fault(f"{wanted}: lost")
        self._network.lose_held(wanted)

    def _fault(self, text: str) -> None:
        self._running.runtime.note("fault", "network", text)

    def _end_rules(
        self, messages: tuple[type, ...], source: int | str | None, target: int | str | None
    ) -> MessageFilter:
        wanted = self._filter(messages, source, target)
        for rule in [rule for rule in self._rules if wanted.covers(rule)]:
            self._rules.remove(rule)
            self._network.stop_holding(rule)
        return wanted
