"""The incremental fetch sessions of one broker: admission and eviction (KIP-227)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...protocol.data import FetchPartition, FetchPartitionResponse, FetchRequest
from ...protocol.errors import ErrorCode
from ...protocol.fetch_session_epochs import (
    EPOCH_MAX,
    INITIAL_EPOCH,
    INVALID_SESSION_ID,
    next_epoch,
)
from .sessions import SESSION_EVICTION_MS, CachedPartition, FetchSession

if TYPE_CHECKING:
    import random


class FetchSessionCache:
    """The sessions of one broker, at most ``slots`` of them; 0 switches sessions off."""

    def __init__(self, slots: int, rng: random.Random) -> None:
        self._slots = slots
        self._rng = rng
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def parked_count(self) -> int:
        """Number of followers' sessions whose fetch waits."""
        return sum(1 for session in self._sessions.values() if session.parked is not None)

    @property
    def partition_count(self) -> int:
        """Number of partitions in all sessions, as of each session's last use."""
        return sum(session.cached_size for session in self._sessions.values())

    def get(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def remove(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.dissolve()

    def clear(self) -> None:
        """End every session; requests that continue one get FETCH_SESSION_ID_NOT_FOUND."""
        for session_id in tuple(self._sessions):
            self.remove(session_id)

    def resolve(self, request: FetchRequest, now_ms: int) -> FetchSession | ErrorCode | None:
        """Return the session that an incremental request continues, updated by the request.

        Return None for a full fetch, after closing any session it names, and for a session that
        is left empty, which is closed as well. Otherwise return FETCH_SESSION_ID_NOT_FOUND or
        INVALID_FETCH_SESSION_EPOCH.
        """
        session_id = request.session_id
        if request.session_epoch <= INITIAL_EPOCH:
            if session_id != INVALID_SESSION_ID:
                self.remove(session_id)
            return None
        session = self._sessions.get(session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        epoch = session.epoch
        if epoch != request.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        forgotten = request.forgotten
        if request.partitions or forgotten:
            session.update(request.partitions, forgotten)
        if not session.partitions:
            self.remove(session_id)
            return None
        session.last_used_ms = now_ms
        session.epoch = epoch + 1 if epoch < EPOCH_MAX else next_epoch(epoch)
        return session

    def create(
        self,
        is_privileged: bool,
        wanted: Iterable[FetchPartition],
        responses: Iterable[FetchPartitionResponse],
        now_ms: int,
    ) -> int:
        """Open a session for an answered full fetch; return its id, or 0 if it is not admitted."""
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
        return session_id

    def _new_id(self) -> int:
        while True:
            session_id = self._rng.randint(1, EPOCH_MAX)
            if session_id not in self._sessions:
                return session_id

    def _admits(self, is_privileged: bool, size: int, now_ms: int) -> bool:
        if len(self._sessions) < self._slots:
            return True
        if not self._sessions:
            return False
        oldest = min(self._sessions.values(), key=_last_use)
        if now_ms - oldest.last_used_ms > SESSION_EVICTION_MS:
            victim = oldest
        else:
            candidates = [
                session
                for session in self._sessions.values()
                if session.is_evictable_by(is_privileged)
            ]
            if not candidates:
                return False
            victim = min(candidates, key=lambda s: (s.is_privileged, s.cached_size, s.session_id))
            if (is_privileged, size) <= (victim.is_privileged, victim.cached_size):
                return False
        self.remove(victim.session_id)
        return True


def _last_use(session: FetchSession) -> tuple[int, int]:
    return session.last_used_ms, session.session_id
