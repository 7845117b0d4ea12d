"""The time that each client's requests take, which ``request_percentage`` limits (KIP-124)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from ....protocol.data import RequestContext
from ....statemachines.security.client_quotas import ClientQuotas


class RequestTimer:
    """Sees every message that arrives, and counts a client's request until the next one comes.

    The time is that of the processor: waiting costs nothing.
    """

    __slots__ = ("_broker", "_handled", "_now_ms", "_quotas")

    def __init__(self, broker: str, quotas: ClientQuotas, now_ms: Callable[[], int]) -> None:
        self._broker = broker
        self._quotas = quotas
        self._now_ms = now_ms
        self._handled = threading.local()
        """Whose request a thread is handling, and since when."""

    def on_delivery(self, delivery: Any) -> None:
        """A message is about to be handled."""
        now_ns = time.thread_time_ns()
        before = getattr(self._handled, "request", None)
        if before is not None:
            context, begun_ns = before
            user = context.principal.partition(":")[2]
            elapsed_ns = now_ns - begun_ns
            self._quotas.use_request_time(user, context.client_id, elapsed_ns, self._now_ms())
        context = delivery.context
        is_mine = type(context) is RequestContext and delivery.target.name == self._broker
        self._handled.request = (context, now_ns) if is_mine else None
