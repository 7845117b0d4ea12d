"""A modelled client of coordinators, which finds them and retries its requests to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...protocol.awaiting import Disconnected, RequestTimeout
from ...protocol.data import FindCoordinatorRequest
from ...protocol.errors import ErrorCode
from ...protocol.host import sleep
from ...protocol.names import broker_name
from .client import RETRY_BACKOFF_MS, SimulatedClient

GROUP = 0
TRANSACTION = 1
_COORDINATOR_MOVED = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
_RETRIABLE = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
)


class CoordinatedClient(SimulatedClient):
    """A client that remembers the coordinators of its groups and transactional ids."""

    _coordinators: dict[tuple[int, str], int] | None = None

    async def ask_coordinator(
        self, key_type: int, key: str, request: Any, error_of: Callable[[Any], ErrorCode]
    ) -> Any:
        """Send a request until there is an answer that another attempt would not change."""
        if self._coordinators is None:
            self._coordinators = {}
        while True:
            broker_id = self._coordinators.get((key_type, key))
            if broker_id is None:
                broker_id = await self._find_coordinator(key_type, key)
                self._coordinators[key_type, key] = broker_id
            try:
                answer = await self.ask(broker_name(broker_id), request, self.request_timeout_ms)
            except (Disconnected, RequestTimeout):
                error = ErrorCode.COORDINATOR_NOT_AVAILABLE
            else:
                error = error_of(answer)
                if error not in _COORDINATOR_MOVED and error not in _RETRIABLE:
                    return answer
            if error in _COORDINATOR_MOVED:
                self._coordinators.pop((key_type, key), None)
            await sleep(self, RETRY_BACKOFF_MS)

    async def _find_coordinator(self, key_type: int, key: str) -> int:
        request = FindCoordinatorRequest((key,), key_type)
        while True:
            broker_id = self._known_brokers[self._next_broker % len(self._known_brokers)]
            try:
                answer = await self.ask(broker_name(broker_id), request, self.request_timeout_ms)
            except (Disconnected, RequestTimeout):
                self._next_broker += 1
            else:
                coordinator = answer.coordinators[0]
                if coordinator.error is ErrorCode.NONE:
                    return int(coordinator.node_id)
            await sleep(self, RETRY_BACKOFF_MS)
