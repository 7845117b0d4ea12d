"""Incremental fetch sessions (KIP-227, docs/kafka/fetch-sessions.md).

A session remembers which partitions its client fetches and what the client was last sent, so that
requests and responses contain only partitions with changes. The *epoch* counts the requests of a
session; a request with another epoch is answered with an error and leaves the session unchanged.

Sessions of followers also save the leader from reading partitions in which nothing happens. A
partition is *idle* in a session while its follower is at the log end and knows the high watermark
and the log start: a fetch then only changes the time at which the follower was last caught up,
which is the time the session was last used. Anything that ends this state (an append, a change of
high watermark or log start, another role) wakes the partition through ``Partition.fetch_entries``;
only active partitions are read. So an idle follower costs the same whether it copies one partition
or ten thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from ...protocol.data import FetchPartition, FetchPartitionResponse, FetchRequest, FetchResponse
from ...protocol.errors import ErrorCode
from ...protocol.values import TopicPartition
from ..waiting.timing_wheel import TimerEntry

if TYPE_CHECKING:
    from ...protocol.host import Host
    from ..partition.partition import Partition
    from ..partition.replica import Replica
    from ..waiting.timing_wheel import WheelTimer

SESSION_EVICTION_MS = 120000


class CachedPartition:
    """A partition of a session: what the client requested and what it was last sent.

    It has the fields of ``FetchPartition``, so readers accept both.
    """

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "is_idle",
        "is_in_step",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "number",
        "order",
        "partition",
        "replica",
        "sent_high_watermark",
        "sent_log_start_offset",
        "session",
        "topic_partition",
    )

    def __init__(self, wanted: FetchPartition) -> None:
        self.topic_partition: TopicPartition = wanted.topic_partition
        self.session: FetchSession | None = None
        """Session to which this entry belongs."""
        self.number: int = 0
        """Key in the session's ``active``; faster to hash than the name."""
        self.order: int = 0
        """Rank in the session; raised by each response that contains the partition."""
        self.partition: Partition | None = None
        """Partition whose ``fetch_entries`` contain this entry; followers only."""
        self.replica: Replica | None = None
        """Replica of the follower in ``partition``."""
        self.is_idle: bool = False
        self.is_in_step: bool = False
        """True if the follower's log, as of the last fetch, was found to be a prefix of the linked
        log, so that each response with the partition has news."""
        self.sent_high_watermark: int = -1
        """High watermark in the last response with the partition; -1 if that was an error or
        made the client truncate its log."""
        self.sent_log_start_offset: int = -1
        self.take(wanted)

    def take(self, wanted: FetchPartition) -> None:
        self.is_in_step = False
        self.fetch_offset: int = wanted.fetch_offset
        self.log_start_offset: int = wanted.log_start_offset
        self.max_bytes: int = wanted.max_bytes
        self.current_leader_epoch: int = wanted.current_leader_epoch
        self.last_fetched_epoch: int = wanted.last_fetched_epoch

    def link(self, partition: Partition, replica: Replica) -> None:
        """Let changes of ``partition`` wake this entry, which is not linked to a partition yet."""
        self.partition = partition
        self.replica = replica
        if partition.fetch_entries is None:
            partition.fetch_entries = [self]
        else:
            partition.fetch_entries.append(self)

    def unlink(self) -> None:
        """Wake the entry and detach it from its partition."""
        self.wake()
        self.is_in_step = False
        partition = self.partition
        if partition is not None:
            self.partition = self.replica = None
            entries = partition.fetch_entries
            if entries is not None and self in entries:
                entries.remove(self)

    def settle(self) -> None:
        """Update the time at which an idle follower was last caught up: that of its last fetch."""
        replica, session = self.replica, self.session
        if self.is_idle and replica is not None and session is not None:
            fetch_time_ms = session.last_used_ms
            # The follower may have opened another session and have fetched in it since.
            if fetch_time_ms > replica.last_fetch_time_ms:
                replica.last_fetch_time_ms = fetch_time_ms
            if fetch_time_ms > replica.last_caught_up_time_ms:
                replica.last_caught_up_time_ms = fetch_time_ms

    def wake(self) -> None:
        """Make the session's next fetch, or the waiting one, read the partition."""
        if self.is_idle:
            self.settle()
            self.is_idle = False
            session = self.session
            if session is not None:
                session.active[self.number] = self

    def mark_idle(self) -> None:
        """Exclude the partition from reads until something wakes this entry."""
        self.is_idle = True
        if self.session is not None:
            self.session.active.pop(self.number, None)

    def maybe_mark_idle(self) -> None:
        """Mark the entry idle if the follower is at the end of a linked log and knows its high
        watermark and log start.

        For a follower outside the ISR the entry stays active, as any fetch may let it join.
        """
        partition, replica = self.partition, self.replica
        log = None if partition is None else partition.log
        if (
            log is not None
            and replica is not None
            and partition is not None
            and self.fetch_offset == log.log_end_offset
            and log.high_watermark == self.sent_high_watermark
            and log.log_start_offset == self.sent_log_start_offset
            and replica.broker_id in partition.isr
        ):
            self.mark_idle()

    def must_respond(self, response: FetchPartitionResponse) -> bool:
        """Return whether an incremental response has to contain the partition; remember its
        values."""
        respond = (
            bool(response.records)
            or response.high_watermark != self.sent_high_watermark
            or response.log_start_offset != self.sent_log_start_offset
            or response.preferred_read_replica >= 0
            or response.diverging_epoch is not None
        )
        self.remember(response)
        return respond or response.error is not ErrorCode.NONE

    def remember(self, response: FetchPartitionResponse) -> None:
        self.sent_log_start_offset = response.log_start_offset
        # A follower that must truncate its log ignores the high watermark of that response, which
        # has to be sent again, as after an error.
        is_taken = response.error is ErrorCode.NONE and response.diverging_epoch is None
        self.sent_high_watermark = response.high_watermark if is_taken else -1


def _order(cached: CachedPartition) -> int:
    return cached.order


class FetchSession:
    """One client's session; ``partitions`` are in the order they are served."""

    __slots__ = (
        "active",
        "cached_size",
        "created_ms",
        "epoch",
        "fetch",
        "is_privileged",
        "last_used_ms",
        "next_order",
        "parked",
        "partitions",
        "session_id",
    )

    def __init__(self, session_id: int, is_privileged: bool, now_ms: int) -> None:
        self.session_id: int = session_id
        self.is_privileged: bool = is_privileged
        """True for followers, which may evict the sessions of consumers from a full cache."""
        self.created_ms: int = now_ms
        self.last_used_ms: int = now_ms
        self.epoch: int = 1
        """Epoch that the next request must have."""
        self.partitions: dict[TopicPartition, CachedPartition] = {}
        self.active: dict[int, CachedPartition] = {}
        """Partitions of a follower's session that are not idle, by ``number``; empty for
        consumers."""
        self.next_order: int = 0
        self.fetch: FollowerFetch | None = None
        """Object for all fetches of a follower; None before the first fetch."""
        self.parked: FollowerFetch | None = None
        """``fetch`` while it waits for data or changes in an active partition; else None."""
        self.cached_size: int = 0
        """Number of ``partitions``."""

    def is_evictable_by(self, is_privileged: bool) -> bool:
        """Return whether the session may be evicted: after more than ``SESSION_EVICTION_MS`` of
        use, or by a follower if it is a consumer's."""
        if is_privileged and not self.is_privileged:
            return True
        return self.last_used_ms - self.created_ms > SESSION_EVICTION_MS

    def update(self, wanted: Iterable[FetchPartition], forgotten: Iterable[TopicPartition]) -> None:
        """Merge an incremental request; a partition both wanted and forgotten is forgotten."""
        partitions = self.partitions
        for entry in wanted:
            cached = partitions.get(entry.topic_partition)
            if cached is None:
                self.add(CachedPartition(entry))
                continue
            if cached.is_idle:
                cached.wake()
            # ``take``, inlined.
            cached.is_in_step = False
            cached.fetch_offset = entry.fetch_offset
            cached.log_start_offset = entry.log_start_offset
            cached.max_bytes = entry.max_bytes
            cached.current_leader_epoch = entry.current_leader_epoch
            cached.last_fetched_epoch = entry.last_fetched_epoch
        for topic_partition in forgotten:
            cached = partitions.pop(topic_partition, None)
            if cached is not None:
                cached.unlink()
                self.active.pop(cached.number, None)
                self.cached_size -= 1

    def add(self, cached: CachedPartition) -> None:
        cached.session = self
        cached.number = cached.order = self.next_order
        self.next_order += 1
        self.partitions[cached.topic_partition] = cached
        self.cached_size = len(self.partitions)
        if self.is_privileged:
            self.active[cached.number] = cached

    def to_read(self) -> tuple[CachedPartition, ...]:
        """Return the partitions that may have news, in the order they are served."""
        if not self.is_privileged:
            return tuple(self.partitions.values())
        return self.active_in_order()

    def active_in_order(self) -> tuple[CachedPartition, ...]:
        """Return the active partitions of a follower's session, in the order they are served."""
        active = self.active
        if len(active) < 2:
            return tuple(active.values())
        return tuple(sorted(active.values(), key=_order))

    def dissolve(self) -> None:
        """Detach all partitions, as the session has ended."""
        for cached in self.partitions.values():
            cached.unlink()

    def filter_response(
        self, responses: Iterable[FetchPartitionResponse]
    ) -> list[FetchPartitionResponse]:
        """Return the responses with news and move their partitions to the end of the order."""
        partitions = self.partitions
        included = []
        for response in responses:
            cached = partitions.get(response.topic_partition)
            if cached is None:
                included.append(response)
            elif cached.must_respond(response):
                included.append(response)
                cached.order = self.next_order
                self.next_order += 1
                if not self.is_privileged and len(partitions) > 1:
                    del partitions[response.topic_partition]
                    partitions[response.topic_partition] = cached
        return included

    def new_responses(
        self, named: Sequence[CachedPartition], responses: Iterable[FetchPartitionResponse]
    ) -> list[FetchPartitionResponse]:
        """Do the same as ``filter_response`` for a follower, given the entries of the responses."""
        included = []
        order = self.next_order
        for cached, response in zip(named, responses, strict=True):
            if cached.is_in_step:
                cached.sent_high_watermark = response.high_watermark
                cached.sent_log_start_offset = response.log_start_offset
            elif not cached.must_respond(response):
                continue
            included.append(response)
            cached.order = order
            order += 1
        self.next_order = order
        return included


class FollowerFetchServing(Protocol):
    """Serves the fetches of followers."""

    host: Host
    timer: WheelTimer

    def is_fetch_satisfied(self, operation: FollowerFetch) -> bool: ...
    def finish_parked(self, fetch: FollowerFetch) -> None: ...
    def watch_again(self, fetch: FollowerFetch) -> None: ...


def is_answered(_response: FetchResponse) -> None:
    """Do nothing; replaces the ``respond`` of an answered fetch, which is then not kept alive."""


class FollowerFetch(TimerEntry):
    """A follower's fetch in a session; one object for all its fetches, as at most one waits.

    ``PartitionReader`` takes it in place of a ``DelayedFetch``. Its timer is left running from one
    fetch to the next, and is set again if it fires too early for the current one.
    """

    __slots__ = (
        "api_version", "cause", "request", "respond", "serving", "session", "unread", "until_ms",
    )  # fmt: skip

    has_client_metadata = False
    require_leader = True
    specs: tuple[()] = ()

    def __init__(
        self,
        serving: FollowerFetchServing,
        session: FetchSession,
        api_version: int,
        request: FetchRequest,
        respond: Callable[[FetchResponse], object],
    ) -> None:
        super().__init__()
        self.serving: FollowerFetchServing = serving
        self.session: FetchSession = session
        session.fetch = self
        self.api_version: int = api_version
        self.request: FetchRequest = request
        self.respond: Callable[[FetchResponse], object] = respond
        self.unread: dict[TopicPartition, None] | None = None
        """Partitions to which the follower is not assigned, so that their growth does not count."""
        self.cause: int | None = None
        """Sequence number of the event in which the waiting fetch arrived, in a recorded run."""
        self.until_ms: int = 0
        """Time at which a waiting fetch is answered in any case."""

    def try_complete(self) -> bool:
        """Answer the fetch if it is satisfied, and return whether it was."""
        if not self.serving.is_fetch_satisfied(self):
            return False
        self.serving.finish_parked(self)
        return True

    def watch_again(self) -> None:
        """Keep waiting although a partition has changed its role."""
        self.serving.watch_again(self)

    def run(self) -> None:
        """Handle the timer, which may have been set for an earlier fetch."""
        if self.session.parked is not self:
            return
        serving = self.serving
        now_ms = serving.host.now_ms()
        if now_ms < self.until_ms:
            serving.timer.add_at(self, self.until_ms - now_ms, now_ms)
            return
        if serving.timer.causes is not None:
            serving.timer.causes.record_due_entry(type(self).__name__, self.cause)
        serving.finish_parked(self)
