"""Base of the modelled clients, which learn the leaders of partitions as Kafka's clients do."""

from __future__ import annotations

import math
from collections.abc import Coroutine, Mapping
from typing import Any, NoReturn, TypeVar

from ...protocol.awaiting import Pending, Task
from ...protocol.data import MetadataRequest, MetadataResponse
from ...protocol.errors import ErrorCode, UsageError
from ...protocol.names import broker_name
from ...protocol.values import TopicPartition
from ..interfaces import AbstractRuntime, Process
from ..node import Node

T = TypeVar("T")

RETRY_BACKOFF_MS = 100
"""Kafka's ``retry.backoff.ms``; also the minimum interval between metadata requests."""
METADATA_MAX_AGE_MS = 300000


def check_numbers(settings: object, minimums: Mapping[str, int]) -> None:
    """Refuse settings that are not numbers or are below their minimum; times may be fractions."""
    for name, low in minimums.items():
        value = getattr(settings, name)
        kinds = (int, float) if name.endswith("_ms") else (int,)
        if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value < math.inf:
            what = "finite number" if name.endswith("_ms") else "whole number"
            refuse_setting(settings, name, f"a {what} >= {low}")


def refuse_setting(settings: object, name: str, right: str) -> NoReturn:
    """Raise ``UsageError`` with the setting, its value and what would be right."""
    value = getattr(settings, name)
    raise UsageError(f"{type(settings).__name__}: {name} must be {right}, not {value!r}")


class SimulatedClient(Node):
    """A client that keeps the metadata of its topics, asking one broker after another for them."""

    def __init__(
        self,
        runtime: AbstractRuntime,
        name: str,
        process: Process,
        bootstrap: tuple[int, ...],
        request_timeout_ms: int,
    ) -> None:
        super().__init__(runtime, name, process)
        self.request_timeout_ms = request_timeout_ms
        self.leaders: dict[TopicPartition, tuple[int, int]] = {}  # (broker id, leader epoch)
        self.partitions: dict[str, int] = {}  # topic -> partition count
        self._known_brokers = list(bootstrap)
        self._next_broker = 0
        self.metadata_requested_from: int | None = None
        """Broker that has been asked for metadata and has not answered yet."""
        self._refreshing = False
        self._must_refresh_again = False
        self._refreshed_at_ms = -METADATA_MAX_AGE_MS
        self._topics: dict[str, None] = {}
        self._cause_before_operation: int | None = None

    def start_task(self, coroutine: Coroutine[Any, Any, T]) -> Task[T]:
        """Run a coroutine, such as one that awaits methods of a transactional producer.

        The ``Task`` has its outcome.
        """
        self._cause_before_operation = None
        task = super().start_task(coroutine)
        self._end_operation()
        return task

    def _end_operation(self) -> None:
        """Restore the cause that was current before the operation began."""
        if self._cause_before_operation is not None:
            self.runtime.cause = self._cause_before_operation

    def note_operation(self, before: int | None) -> None:
        """Note that a coroutine has begun an operation, at the event ``before``."""
        if self._cause_before_operation is None:
            self._cause_before_operation = before

    def record(
        self, kind: str, what: str, text: str | None = None, operation: int | None = None
    ) -> int | None:
        """Record an event of an operation, and return its number; None without a recorder.

        ``kind`` is ``client_invoke``, ``client_retry``, ``client_ok`` or ``client_fail``.
        """
        runtime = self.runtime
        recorder = runtime.recorder
        if recorder is None:
            return None
        cause = runtime.cause
        if cause is None and kind != "client_invoke":
            cause = runtime.begin_step()
        event = recorder.event(
            self._now_us(), kind, self.name, None, what, None, cause, text, operation
        )
        if kind == "client_fail":
            self.report_state("last_error", text)
        return event

    def report_state(self, path: str, value: object) -> None:
        """Report a change of state to the recorder, if there is one."""
        if self.state_listener is not None:
            self.state_listener(path, None, value)

    def use_topic(self, topic: str) -> None:
        """Keep the metadata of a topic; a new topic's are requested at once."""
        if topic not in self._topics:
            self._topics[topic] = None
            self.refresh_metadata(at_once=True)

    def refresh_metadata(self, *, at_once: bool = False) -> None:
        """Request metadata now, or as soon as the back-off allows."""
        if self._refreshing:
            self._must_refresh_again = True
            return
        wait_ms = self._refreshed_at_ms + RETRY_BACKOFF_MS - self.now_ms()
        self._refreshing = True
        if wait_ms > 0 and not at_once:
            self.call_later_ms(wait_ms, self._ask_metadata)
        else:
            self._ask_metadata()

    def avoid_broker(self, broker_id: int) -> None:
        """Ask another broker for metadata after one did not answer in time: Kafka's client closes
        the connection, and ``NetworkClient.leastLoadedNode`` chooses a broker that is ready."""
        if self._known_brokers[self._next_broker % len(self._known_brokers)] == broker_id:
            self._next_broker += 1

    def _ask_metadata(self) -> None:
        self._refreshed_at_ms = self.now_ms()
        broker_id = self._known_brokers[self._next_broker % len(self._known_brokers)]
        self.metadata_requested_from = broker_id
        request = MetadataRequest(tuple(self._topics))
        pending = self.ask(broker_name(broker_id), request, self.request_timeout_ms)
        pending.add_done_callback(self._metadata_answered)

    def _metadata_answered(self, pending: Pending[Any]) -> None:
        if self.stopped:
            return
        self._refreshing = False
        self.metadata_requested_from = None
        if pending.exception is not None:
            self._next_broker += 1
            self.refresh_metadata()
            return
        again = self._update_metadata(pending.result()) or self._must_refresh_again
        self._must_refresh_again = False
        if again:
            self.refresh_metadata()
        self.on_metadata()

    def _update_metadata(self, response: MetadataResponse) -> bool:
        """Take over the metadata in a response; returns True if some are still missing."""
        if response.brokers:
            self._known_brokers = [broker.id for broker in response.brokers]
        incomplete = False
        for topic in response.topics:
            if topic.error != ErrorCode.NONE or topic.name is None:
                incomplete = True
                continue
            self.partitions[topic.name] = len(topic.partitions)
            for partition in topic.partitions:
                key = TopicPartition(topic.name, partition.partition)
                if partition.leader < 0:
                    self.leaders.pop(key, None)
                    incomplete = True
                    continue
                known = self.leaders.get(key)
                # An older epoch means that the broker's own metadata are stale (KIP-320).
                if known is None or partition.leader_epoch >= known[1]:
                    self.leaders[key] = (partition.leader, partition.leader_epoch)
        return incomplete

    def on_metadata(self) -> None:
        """Handle new metadata; called whenever some have arrived."""
