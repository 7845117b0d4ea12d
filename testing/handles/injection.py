"""Injected answers: a fault aimed at the next requests of one API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol.awaiting import Disconnected
from ...wire.kafka.error_responses import error_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...actors.delivery import Delivery
    from ...actors.runtime.runtime import Runtime
    from ...protocol.errors import ErrorCode


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
