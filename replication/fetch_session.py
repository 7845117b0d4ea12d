"""Incremental fetch sessions (KIP-227, data_plane 6.10).

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

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..protocol.data import FetchPartition, FetchPartitionResponse, FetchRequest
from ..protocol.errors import ErrorCode
from ..protocol.values import TopicPartition

if TYPE_CHECKING:
    import random

    from .delayed_operations import DelayedFetch
    from .partition_state import PartitionState
    from .replica import Replica

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
INVALID_SESSION_ID = 0
EPOCH_MAX = 2147483647
SESSION_EVICTION_MS = 120000


def next_epoch(epoch: int) -> int:
    """The epoch after ``epoch``: never 0 again, which would create a session."""
    return 1 if epoch == EPOCH_MAX else epoch + 1


class CachedPartition:
    """A partition of a session: what the client wants and what it was told.

    Has the fields of ``FetchPartition``, so readers take either.
    """

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "is_idle",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "order",
        "partition",
        "replica",
        "sent_high_watermark",
        "sent_log_start_offset",
        "session",
        "topic_partition",
    )

    def __init__(self, wanted: FetchPartition) -> None:
        self.topic_partition = wanted.topic_partition
        self.session: FetchSession | None = None
        """The session it belongs to."""
        self.order = 0
        """Rank in the session: grows with each response that has the partition."""
        self.partition: PartitionState | None = None
        """The leader's partition whose ``fetch_entries`` it is in; followers only."""
        self.replica: Replica | None = None
        """The follower's replica in ``partition``."""
        self.is_idle = False
        self.sent_high_watermark = -1
        """High watermark the client took from the last response that had the partition; -1 if
        that was an error or told it to cut its log."""
        self.sent_log_start_offset = -1
        self.take(wanted)

    def take(self, wanted: FetchPartition) -> None:
        self.fetch_offset = wanted.fetch_offset
        self.log_start_offset = wanted.log_start_offset
        self.max_bytes = wanted.max_bytes
        self.current_leader_epoch = wanted.current_leader_epoch
        self.last_fetched_epoch = wanted.last_fetched_epoch

    def link(self, partition: PartitionState, replica: Replica) -> None:
        """Be woken by what happens to ``partition`` from now on."""
        if self.partition is not None:
            self.unlink()
        self.partition = partition
        self.replica = replica
        if partition.fetch_entries is None:
            partition.fetch_entries = [self]
        else:
            partition.fetch_entries.append(self)

    def unlink(self) -> None:
        """Wake up and depend on no partition any more."""
        self.wake()
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
            replica.last_fetch_time_ms = fetch_time_ms
            if fetch_time_ms > replica.last_caught_up_time_ms:
                replica.last_caught_up_time_ms = fetch_time_ms

    def wake(self) -> None:
        """Be read by the session's next fetch, or by the one that waits."""
        if self.is_idle:
            self.settle()
            self.is_idle = False
            if self.session is not None:
                self.session.active[self.topic_partition] = self

    def fall_idle(self) -> None:
        """Nothing to read until something wakes it."""
        self.is_idle = True
        if self.session is not None:
            self.session.active.pop(self.topic_partition, None)

    def must_respond(self, response: FetchPartitionResponse) -> bool:
        """Whether an incremental response has to name the partition; remembers what it says."""
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
        "evictable_by_all",
        "evictable_by_privileged",
        "is_privileged",
        "last_used_ms",
        "next_order",
        "parked",
        "partitions",
        "session_id",
    )

    def __init__(self, session_id: int, is_privileged: bool, now_ms: int) -> None:
        self.session_id = session_id
        self.is_privileged = is_privileged
        """Followers are; they may push consumers out of a full cache."""
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.epoch = 1
        """The epoch the next request must carry."""
        self.partitions: dict[TopicPartition, CachedPartition] = {}
        self.active: dict[TopicPartition, CachedPartition] = {}
        """Partitions of a follower's session that are not idle; empty in a consumer's."""
        self.next_order = 0
        self.parked: DelayedFetch | None = None
        """The follower's fetch that waits for its active partitions to bring something."""
        self.cached_size = 0
        self.evictable_by_all = False
        self.evictable_by_privileged = not is_privileged

    def update(self, wanted: Iterable[FetchPartition], forgotten: Iterable[TopicPartition]) -> None:
        """Merge an incremental request; what is both wanted and forgotten is forgotten."""
        partitions = self.partitions
        for entry in wanted:
            cached = partitions.get(entry.topic_partition)
            if cached is None:
                self.add(CachedPartition(entry))
            else:
                cached.wake()
                cached.take(entry)
        for topic_partition in forgotten:
            cached = partitions.pop(topic_partition, None)
            if cached is not None:
                cached.unlink()
                self.active.pop(topic_partition, None)

    def add(self, cached: CachedPartition) -> None:
        cached.session = self
        cached.order = self.next_order
        self.next_order += 1
        self.partitions[cached.topic_partition] = cached
        if self.is_privileged:
            self.active[cached.topic_partition] = cached

    def to_read(self) -> tuple[CachedPartition, ...]:
        """The partitions that may have something to say, in the order they are served."""
        if not self.is_privileged:
            return tuple(self.partitions.values())
        active = tuple(self.active.values())
        return active if len(active) < 2 else tuple(sorted(active, key=_order))

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


class FetchSessionCache:
    """The sessions of one broker, at most ``slots`` of them; 0 switches sessions off."""

    def __init__(self, slots: int, rng: random.Random) -> None:
        self._slots = slots
        self._rng = rng
        self._sessions: dict[int, FetchSession] = {}
        """In order of last use."""
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def parked_count(self) -> int:
        """Sessions of followers whose fetch waits."""
        return sum(1 for session in self._sessions.values() if session.parked is not None)

    @property
    def partition_count(self) -> int:
        """Partitions over all sessions, as of each session's last use."""
        return sum(session.cached_size for session in self._sessions.values())

    def get(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def remove(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.dissolve()

    def resolve(self, request: FetchRequest, now_ms: int) -> FetchSession | ErrorCode | None:
        """The session an incremental request continues, updated by it.

        None for a full fetch (any session it names is closed) and for a session that became
        empty; FETCH_SESSION_ID_NOT_FOUND or INVALID_FETCH_SESSION_EPOCH otherwise.
        """
        session_id = request.session_id
        if request.session_epoch <= INITIAL_EPOCH:
            if session_id != INVALID_SESSION_ID:
                self.remove(session_id)
            return None
        session = self._sessions.get(session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if request.partitions or request.forgotten:
            session.update(request.partitions, request.forgotten)
            if not session.partitions:
                self.remove(session_id)
                return None
        self._touch(session, now_ms)
        session.epoch = next_epoch(session.epoch)
        return session

    def create(
        self,
        is_privileged: bool,
        wanted: Iterable[FetchPartition],
        responses: Iterable[FetchPartitionResponse],
        now_ms: int,
    ) -> int:
        """Open a session for a full fetch that was answered; its id, or 0 if not admitted."""
        wanted = tuple(wanted)
        if not self._admits(is_privileged, len(wanted), now_ms):
            return INVALID_SESSION_ID
        session_id = self._new_id()
        session = FetchSession(session_id, is_privileged, now_ms)
        for entry in wanted:
            session.add(CachedPartition(entry))
        for response in responses:
            cached = session.partitions.get(response.topic_partition)
            if cached is not None:
                cached.remember(response)
        self._sessions[session_id] = session
        self._touch(session, now_ms)
        return session_id

    def _new_id(self) -> int:
        while True:
            session_id = self._rng.randint(1, EPOCH_MAX)
            if session_id not in self._sessions:
                return session_id

    def _touch(self, session: FetchSession, now_ms: int) -> None:
        if len(self._sessions) > 1:
            del self._sessions[session.session_id]
            self._sessions[session.session_id] = session
        session.last_used_ms = now_ms
        session.cached_size = len(session.partitions)
        if now_ms - session.created_ms > SESSION_EVICTION_MS:
            session.evictable_by_all = session.evictable_by_privileged = True

    def _admits(self, is_privileged: bool, size: int, now_ms: int) -> bool:
        if len(self._sessions) < self._slots:
            return True
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.last_used_ms > SESSION_EVICTION_MS:
            victim = oldest
        else:
            candidates = [
                session
                for session in self._sessions.values()
                if (session.evictable_by_privileged if is_privileged else session.evictable_by_all)
            ]
            if not candidates:
                return False
            victim = min(candidates, key=lambda s: (s.is_privileged, s.cached_size, s.session_id))
            if (is_privileged, size) <= (victim.is_privileged, victim.cached_size):
                return False
        self.remove(victim.session_id)
        self.evictions += 1
        return True
