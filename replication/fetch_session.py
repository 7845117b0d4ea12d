"""Incremental fetch sessions (KIP-227, data_plane 6.10).

A session remembers which partitions its client fetches and what it was told last, so requests
name only what changed and responses only what is new. The *epoch* counts the requests of a
session; a request with another epoch is answered with an error and leaves the session alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from ..protocol.data import FetchPartition, FetchPartitionResponse, FetchRequest
from ..protocol.errors import ErrorCode
from ..protocol.values import TopicPartition

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
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "sent_high_watermark",
        "sent_log_start_offset",
        "topic_partition",
    )

    def __init__(self, wanted: FetchPartition) -> None:
        self.topic_partition = wanted.topic_partition
        self.sent_high_watermark = -1
        """High watermark of the last response that had the partition; -1 after an error."""
        self.sent_log_start_offset = -1
        self.take(wanted)

    def take(self, wanted: FetchPartition) -> None:
        self.fetch_offset = wanted.fetch_offset
        self.log_start_offset = wanted.log_start_offset
        self.max_bytes = wanted.max_bytes
        self.current_leader_epoch = wanted.current_leader_epoch
        self.last_fetched_epoch = wanted.last_fetched_epoch

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
        self.sent_high_watermark = (
            response.high_watermark if response.error is ErrorCode.NONE else -1
        )


class FetchSession:
    """One client's session; ``partitions`` are in the order they are served."""

    __slots__ = (
        "cached_size",
        "created_ms",
        "epoch",
        "evictable_by_all",
        "evictable_by_privileged",
        "is_privileged",
        "last_used_ms",
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
        self.cached_size = 0
        self.evictable_by_all = False
        self.evictable_by_privileged = not is_privileged

    def update(self, wanted: Iterable[FetchPartition], forgotten: Iterable[TopicPartition]) -> None:
        """Merge an incremental request; what is both wanted and forgotten is forgotten."""
        partitions = self.partitions
        for entry in wanted:
            cached = partitions.get(entry.topic_partition)
            if cached is None:
                partitions[entry.topic_partition] = CachedPartition(entry)
            else:
                cached.take(entry)
        for topic_partition in forgotten:
            partitions.pop(topic_partition, None)

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
                if len(partitions) > 1:
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
    def partition_count(self) -> int:
        """Partitions over all sessions, as of each session's last use."""
        return sum(session.cached_size for session in self._sessions.values())

    def get(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def remove(self, session_id: int) -> None:
        self._sessions.pop(session_id, None)

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
        partitions = {entry.topic_partition: CachedPartition(entry) for entry in wanted}
        if not self._admits(is_privileged, len(partitions), now_ms):
            return INVALID_SESSION_ID
        for response in responses:
            cached = partitions.get(response.topic_partition)
            if cached is not None:
                cached.remember(response)
        session_id = self._new_id()
        session = FetchSession(session_id, is_privileged, now_ms)
        session.partitions = partitions
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
