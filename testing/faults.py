"""Injected answers, and messages of chosen kinds held back: faults aimed at single messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..protocol import admin, control, data
from ..protocol.awaiting import Disconnected
from ..protocol.errors import ErrorCode, UsageError
from ..wire.kafka.error_responses import error_response
from ..zkfake import messages as zookeeper
from . import arguments

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..actors.delivery import Delivery
    from ..actors.runtime.runtime import Runtime
    from .network_handle import NetworkHandle

REQUESTS: dict[str, type] = {
    name.removesuffix("Request"): value
    for module in (control, data, admin)
    for name, value in vars(module).items()
    if name.endswith("Request") and isinstance(value, type)
}
"""Kafka's requests by name."""

_MESSAGES: dict[str, type] = {
    name: value
    for module in (control, data, admin, zookeeper)
    for name, value in vars(module).items()
    if isinstance(value, type) and value.__module__ == module.__name__
}


def message_type(name: str) -> type:
    """A message by the name of its class, such as ``FetchResponse``."""
    try:
        return _MESSAGES[name]
    except KeyError:
        hint = arguments.did_you_mean(name, _MESSAGES)
        raise UsageError(f"there is no message {name!r}{hint}") from None


def request_type(api: str) -> type:
    """The message of an API given by Kafka's name (``Produce``, ``fetch``, ``LeaderAndIsr``)."""
    arguments.text("api", api)
    by_lower = {name.lower(): value for name, value in REQUESTS.items()}
    try:
        return by_lower[api.replace("_", "").lower().removesuffix("request")]
    except KeyError:
        hint = arguments.did_you_mean(api, REQUESTS)
        raise UsageError(f"there is no API {api!r}{hint}") from None


def error_code(error: str | int | ErrorCode) -> ErrorCode:
    """An error code given by name or number."""
    try:
        return ErrorCode[error.upper()] if isinstance(error, str) else ErrorCode(error)
    except (KeyError, ValueError):
        hint = arguments.did_you_mean(str(error).upper(), [code.name for code in ErrorCode])
        raise UsageError(f"there is no error code {error!r}{hint}") from None


class Injection:
    """One standing order; ``remaining`` counts down, ``cancel`` ends it."""

    def __init__(
        self,
        runtime: Runtime,
        wanted: type,
        error: ErrorCode | None,
        times: int,
        machine: str | None,
        delay_ms: float,
        disconnect: bool,
        require_own_process: Callable[[], None],
    ) -> None:
        self._require_own_process = require_own_process
        self._runtime = runtime
        self._wanted = wanted
        self._error = error
        self._machine = machine
        self._delay_us = int(delay_ms * 1000)
        self._disconnect = disconnect
        self.remaining = times
        self.applied = 0
        self._passed: dict[int, None] = {}
        runtime.network.intercept(self)

    def cancel(self) -> None:
        """Stop injecting; idempotent."""
        self._require_own_process()
        self.remaining = 0
        self._runtime.network.stop_intercepting(self)

    def __call__(self, delivery: Delivery) -> bool:
        if type(delivery.message) is not self._wanted or delivery.is_reply:
            return False
        if self._machine is not None and delivery.target.machine != self._machine:
            return False
        if delivery.message_id in self._passed:
            del self._passed[delivery.message_id]
            return False
        if self.remaining <= 0:
            return False
        self.remaining -= 1
        self.applied += 1
        runtime = self._runtime
        runtime.note("fault", delivery.target.name, f"injected into {self._wanted.__name__}")
        if self._delay_us:
            runtime.call_later(delivery.target, self._delay_us, lambda: self._act(delivery))
        else:
            self._act(delivery)
        if self.remaining == 0 and not (self._delay_us and self._error is None):
            self.cancel()
        return True

    def _act(self, delivery: Delivery) -> None:
        if self._disconnect:
            error = Disconnected("injected disconnect")
            self._runtime.network.reply(delivery.target, delivery, error)
        elif self._error is not None:
            response = error_response(delivery.message, self._error)
            self._runtime.network.reply(delivery.target, delivery, response)
        else:
            self._passed[delivery.message_id] = None
            self._runtime.network.arrive(delivery)
            if self.remaining == 0:
                self.cancel()


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """Messages of some kinds (none: all) on their way between machines (None: any)."""

    messages: tuple[type, ...] = ()
    source: str | None = None
    target: str | None = None

    def __call__(self, delivery: Delivery) -> bool:
        return (
            (not self.messages or type(delivery.message) in self.messages)
            and self.source in (None, delivery.sender.machine)
            and self.target in (None, delivery.target.machine)
        )

    def covers(self, other: MessageFilter) -> bool:
        """Whether this one holds for everything for which the other does."""
        return (
            (not self.messages or (bool(other.messages) and {*other.messages} <= {*self.messages}))
            and self.source in (None, other.source)
            and self.target in (None, other.target)
        )


class MessageGate:
    """Holds back chosen messages rule by rule; each can be let go, or lost, on its own."""

    def __init__(self, handle: NetworkHandle, runtime: Runtime) -> None:
        self._handle = handle
        self._network = runtime.network
        self._rules: list[MessageFilter] = []

    def _filter(
        self, messages: tuple[type, ...], source: int | str | None, target: int | str | None
    ) -> MessageFilter:
        names = [None if end is None else self._handle._name(end) for end in (source, target)]
        return MessageFilter(messages, *names)

    def hold(
        self, messages: tuple[type, ...], source: int | str | None, target: int | str | None
    ) -> None:
        """Keep these back from now on."""
        rule = self._filter(messages, source, target)
        self._rules.append(rule)
        self._network.hold(rule)

    def release(
        self, messages: tuple[type, ...], source: int | str | None, target: int | str | None
    ) -> None:
        """End the rules about these, and deliver those that were held."""
        wanted = self._end_rules(messages, source, target)
        self._network.release(wanted)

    def lose(
        self, messages: tuple[type, ...], source: int | str | None, target: int | str | None
    ) -> None:
        """End the rules about these, and drop those that were held."""
        wanted = self._end_rules(messages, source, target)
        self._network.lose_held(wanted)

    def _end_rules(
        self, messages: tuple[type, ...], source: int | str | None, target: int | str | None
    ) -> MessageFilter:
        wanted = self._filter(messages, source, target)
        for rule in [rule for rule in self._rules if wanted.covers(rule)]:
            self._rules.remove(rule)
            self._network.stop_holding(rule)
        return wanted
