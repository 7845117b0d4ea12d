"""Injected answers: fail, delay or disconnect the next requests of an API."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from ..protocol import admin, control, data
from ..protocol.awaiting import Disconnected
from ..protocol.errors import ErrorCode, UsageError
from .error_responses import error_response

if TYPE_CHECKING:
    from ..actors.node import Delivery
    from ..actors.runtime import Runtime

_REQUESTS: dict[str, type] = {
    name.removesuffix("Request"): value
    for module in (control, data, admin)
    for name, value in vars(module).items()
    if name.endswith("Request") and isinstance(value, type)
}


def request_type(api: str) -> type:
    """The message of an API given by Kafka's name (``Produce``, ``fetch``, ``LeaderAndIsr``)."""
    by_lower = {name.lower(): value for name, value in _REQUESTS.items()}
    try:
        return by_lower[api.replace("_", "").lower().removesuffix("request")]
    except KeyError:
        near = difflib.get_close_matches(api, _REQUESTS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"there is no API {api!r}{hint}") from None


def error_code(error: str | int | ErrorCode) -> ErrorCode:
    """An error code given by name or number."""
    try:
        return ErrorCode[error.upper()] if isinstance(error, str) else ErrorCode(error)
    except (KeyError, ValueError):
        names = [code.name for code in ErrorCode]
        near = difflib.get_close_matches(str(error).upper(), names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
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
    ) -> None:
        self._runtime = runtime
        self._wanted = wanted
        self._error = error
        self._machine = machine
        self._delay_us = int(delay_ms * 1000)
        self._disconnect = disconnect
        self.remaining = times
        self.applied = 0
        self._passed: dict[int, None] = {}
        runtime.network.interceptors.append(self)

    def cancel(self) -> None:
        """Stop injecting; idempotent."""
        self.remaining = 0
        if self in self._runtime.network.interceptors:
            self._runtime.network.interceptors.remove(self)

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
