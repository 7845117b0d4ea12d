"""The replica fetcher actor, which fetches from one leader continuously on behalf of one broker.

The state machine is ``replication.follower.fetcher.ReplicaFetcher``. This actor only sends its
requests (docs/kafka/replica-fetchers.md#threads), with at most one in flight, as Kafka's fetcher
thread does.
"""

from __future__ import annotations

from typing import Any

from ...protocol.host import Timer
from ...protocol.names import broker_name
from ...replication.follower.fetch_state import FetcherRequest
from ...replication.follower.fetcher import ReplicaFetcher
from ..interfaces import AbstractRuntime, Process
from ..node import Node


class ReplicaFetcherActor(Node):
    """Sends the requests of one ``ReplicaFetcher`` to its leader."""

    def __init__(
        self,
        runtime: AbstractRuntime,
        name: str,
        process: Process,
        fetcher: ReplicaFetcher,
        socket_timeout_ms: int,
    ) -> None:
        super().__init__(runtime, name, process)
        self._fetcher = fetcher
        self._leader = broker_name(fetcher.leader_id)
        self._socket_timeout_ms = socket_timeout_ms
        self._take_answer = self._answered  # bound once, not for every request
        self._in_flight: FetcherRequest | None = None
        self._timer: Timer | None = None
        self._timer_at_ms = 0

    def on_start(self) -> None:
        self._fetcher.on_wake = self.wake
        self.wake()

    def wake(self) -> None:
        """Send the next request, after partitions were added or a back-off may have ended."""
        if self._in_flight is not None or self.stopped:
            return
        fetcher = self._fetcher
        request = fetcher.next_request()
        if request is None:
            delay_ms = fetcher.delay_ms()
            if delay_ms is not None:
                self._wake_in(delay_ms)
            return
        self._in_flight = request
        self.port.ask_then(self._leader, request, self._socket_timeout_ms, self._take_answer)

    def _answered(self, outcome: Any) -> None:
        request, self._in_flight = self._in_flight, None
        if self.stopped or request is None:
            return
        if isinstance(outcome, BaseException):
            self._fetcher.on_failure(request)
        else:
            self._fetcher.on_response(request, outcome)
        self.wake()

    def _wake_in(self, delay_ms: int) -> None:
        at_ms = self.now_ms() + max(delay_ms, 1)
        if self._timer is not None:
            if self._timer_at_ms <= at_ms:
                return
            self._timer.cancel()
        self._timer_at_ms = at_ms
        self._timer = self.call_later_ms(max(delay_ms, 1), self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer = None
        self.wake()
