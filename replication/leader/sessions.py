"""Incremental fetch sessions (KIP-227, docs/kafka/fetch-sessions.md).

A session remembers which partitions its client fetches and what it was told last, so requests
name only what changed and responses only what is new. The *epoch* counts the requests of a
session; a request with another epoch is answered with an error and leaves the session alone.

Sessions of followers also save the leader from looking at partitions in which nothing happens. A
partition is *idle* in a session while its follower stands at the log's end and knows high
watermark and log start: a fetch changes nothing about it but the time it was last caught up,
which is the time the session was last used. Whatever ends that state (an append, a mark that
moves, another role) wakes the partition through ``Partition.fetch_entries``; only active ones are
read. So an idle follower costs the same whether it copies one partition or ten thousand.
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
    """A partition of a session: what the client wants and what it was told.

    Has the fields of ``FetchPartition``, so readers take either.
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
        """The session it belongs to."""
        self.number: int = 0
        """Its key in the session's ``active``: unlike its name, quick to hash."""
        self.order: int = 0
        """Rank in the session: grows with each response that has the partition."""
        self.partition: Partition | None = None
        """The leader's partition whose ``fetch_entries`` it is in; followers only."""
        self.replica: Replica | None = None
        """The follower's replica in ``partition``."""
        self.is_idle: bool = False
        self.is_in_step: bool = False
        """Its follower's history, as the last fetch told it, is a prefix of the linked log, so
        that whatever is read has news; not known until it was looked at."""
        self.sent_high_watermark: int = -1
        """High watermark the client took from the last response that had the partition; -1 if
        that was an error or told it to cut its log."""
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
        """Be woken by what happens to ``partition`` from now on; it is linked to none so far."""
        self.partition = partition
        self.replica = replica
        if partition.fetch_entries is None:
            partition.fetch_entries = [self]
        else:
            partition.fetch_entries.append(self)

    def unlink(self) -> None:
        """Wake up and depend on no partition any more."""
        self.wake()
        self.is_in_step = False
        partition = self.partition
        if partition is not None:
            self.partition = self.replica = None
            entries = partition.fetch_entries
            if entries is not None and self in entries:
                entries.remove(self)

    def settle(self) -> None:
        """Write down when an idle follower was caught up last: at its last fetch."""
        replica, session = self.replica, self.session
        if self.is_idle and replica is not None and session is not None:
            fetch_time_ms = session.last_used_ms
            # The follower may have left the session for another one, and have fetched there since.
            if fetch_time_ms > replica.last_fetch_time_ms:
                replica.last_fetch_time_ms = fetch_time_ms
            if fetch_time_ms > replica.last_caught_up_time_ms:
                replica.last_caught_up_time_ms = fetch_time_ms

    def wake(self) -> None:
        """Be read by the session's next fetch, or by the one that waits."""
        if self.is_idle:
            self.settle()
            self.is_idle = False
            session = self.session
            if session is not None:
                session.active[self.number] = self

    def fall_idle(self) -> None:
        """Nothing to read until something wakes it."""
        self.is_idle = True
        if self.session is not None:
            self.session.active.pop(self.number, None)

    def fall_idle_if_known(self) -> None:
        """Fall idle when the follower stands at the end and knows the marks of a linked log.

        One outside the ISR is read again each time: it may join with any of its fetches.
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
            self.fall_idle()

    def must_respond(self, response: FetchPartitionResponse) -> bool:
        """Return whether an incremental response has to name the partition; remembers what it
        says."""
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
        # A follower that is told to cut its log takes no high watermark from that answer, so it
        # is to be told again, as after an error.
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
        """Followers are; they may push consumers out of a full cache."""
        self.created_ms: int = now_ms
        self.last_used_ms: int = now_ms
        self.epoch: int = 1
        """The epoch the next request must carry."""
        self.partitions: dict[TopicPartition, CachedPartition] = {}
        self.active: dict[int, CachedPartition] = {}
        """Partitions of a follower's session that are not idle, by ``number``; a consumer's
        session has none."""
        self.next_order: int = 0
        self.fetch: FollowerFetch | None = None
        """What serves a follower's fetches, once there was one."""
        self.parked: FollowerFetch | None = None
        """The same while it waits for an active partition to bring something."""
        self.cached_size: int = 0
        """Number of ``partitions``."""

    def is_evictable_by(self, is_privileged: bool) -> bool:
        """Return whether it may be pushed out: old at its last use, or a consumer's by a
        follower."""
        if is_privileged and not self.is_privileged:
            return True
        return self.last_used_ms - self.created_ms > SESSION_EVICTION_MS

    def update(self, wanted: Iterable[FetchPartition], forgotten: Iterable[TopicPartition]) -> None:
        """Merge an incremental request; what is both wanted and forgotten is forgotten."""
        partitions = self.partitions
        for entry in wanted:
            cached = partitions.get(entry.topic_partition)
            if cached is None:
                self.add(CachedPartition(entry))
                continue
            if cached.is_idle:
                cached.wake()
            # As ``take`` does, without the call.
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
        """The partitions that may have something to say, in the order they are served."""
        if not self.is_privileged:
            return tuple(self.partitions.values())
        return self.active_in_order()

    def active_in_order(self) -> tuple[CachedPartition, ...]:
        """``to_read`` of a follower's session."""
        active = self.active
        if len(active) < 2:
            return tuple(active.values())
        return tuple(sorted(active.values(), key=_order))

    def dissolve(self) -> None:
        """The session is over: let go of the partitions."""
        for cached in self.partitions.values():
            cached.unlink()

    def filter_response(
        self, responses: Iterable[FetchPartitionResponse]
    ) -> list[FetchPartitionResponse]:
        """The responses that say something new; their partitions go to the end of the order."""
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
        """``filter_response`` of a follower's session, for a caller who has its entries at hand."""
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
    """Who serves the fetches of followers."""

    host: Host
    timer: WheelTimer

    def is_fetch_satisfied(self, operation: FollowerFetch) -> bool: ...
    def finish_parked(self, fetch: FollowerFetch) -> None: ...
    def watch_again(self, fetch: FollowerFetch) -> None: ...


def is_answered(_response: FetchResponse) -> None:
    """The ``respond`` of a fetch that has its answer: what that led to is not kept."""


class FollowerFetch(TimerEntry):
    """A follower's fetch within a session; one object for all of them, as one at most waits.

    To ``PartitionReader`` it is what ``DelayedFetch`` is for the others. Its timer is left running
    from one fetch to the next and set anew when it fires too early for the current one.
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
        """Partitions the follower is not assigned to: their growth does not count."""
        self.cause: int | None = None
        """While a run is recorded: seq of the event at which the fetch came that waits."""
        self.until_ms: int = 0
        """When a waiting fetch is answered whatever there is."""

    def try_complete(self) -> bool:
        """Answer if enough is there now."""
        if not self.serving.is_fetch_satisfied(self):
            return False
        self.serving.finish_parked(self)
        return True

    def watch_again(self) -> None:
        """Go on waiting though a partition has changed its role."""
        self.serving.watch_again(self)

    def run(self) -> None:
        """The timer fired: for this fetch, or for one answered before."""
        if self.session.parked is not self:
            return
        serving = self.serving
        now_ms = serving.host.now_ms()
        if now_ms < self.until_ms:
            serving.timer.add_at(self, self.until_ms - now_ms, now_ms)
            return
        if serving.timer.causes is not None:
            serving.timer.causes.serve(type(self).__name__, self.cause)
        serving.finish_parked(self)
