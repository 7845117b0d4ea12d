"""Fetches that wait for something to read (docs/kafka/purgatory.md#purgatory)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from ...protocol.data import (
    DEBUGGING_REPLICA_ID,
    FetchPartition,
    FetchRequest,
    FetchResponse,
)
from ...protocol.values import TopicPartition
from ...protocol.versions import Behaviour
from ..waiting.purgatory import DelayedOperation

if TYPE_CHECKING:
    from ..waiting.timing_wheel import Bucket
    from .sessions import CachedPartition, FetchSession


class FetchAnswers(Protocol):
    """Who answers a fetch that waited."""

    behaviour: Behaviour

    def is_fetch_satisfied(self, operation: DelayedFetch) -> bool: ...
    def finish_fetch(self, operation: DelayedFetch) -> None: ...


class DelayedFetch(DelayedOperation):
    """A fetch: first read when it arrives, read again when it completes
    (docs/kafka/fetch.md#waiting)."""

    __slots__ = (
        "api_version",
        "handler",
        "request",
        "respond",
        "session",
        "specs",
        "unread",
    )
    __deletable__: tuple[str, ...] = ("request", "respond", "session", "specs", "unread")
    """Asked for by the compiler: what ``let_go`` takes away."""

    def __init__(
        self,
        handler: FetchAnswers,
        request: FetchRequest,
        specs: Sequence[FetchPartition | CachedPartition],
        session: FetchSession | None,
        api_version: int,
        respond: Callable[[FetchResponse], object],
    ) -> None:
        # The fields of the bases, without two calls: made for every fetch.
        self.expiration_ms = 0
        self.bucket: Bucket | None = None
        self.delay_ms: int = request.max_wait_ms
        self.is_completed = False
        self._purgatory = None
        self._keys = ()
        self.handler: FetchAnswers = handler
        self.request: FetchRequest = request
        self.specs: Sequence[FetchPartition | CachedPartition] = specs
        self.session: FetchSession | None = session
        self.api_version: int = api_version
        self.respond: Callable[[FetchResponse], object] = respond
        self.unread: dict[TopicPartition, None] | None = None
        """Partitions whose log was not looked at, so that no growth of it counts: a follower is
        not assigned to them, or a consumer is sent to another replica."""

    @property
    def has_client_metadata(self) -> bool:
        """Whether it came from a client of Fetch v11, who may read from followers."""
        return self.api_version >= 11 or self.api_version < 0

    @property
    def require_leader(self) -> bool:
        if not self.handler.behaviour.fetch_from_follower:
            return self.request.replica_id != DEBUGGING_REPLICA_ID
        return self.request.replica_id >= 0 or not self.has_client_metadata

    def try_complete(self) -> bool:
        return self.handler.is_fetch_satisfied(self) and self.force_complete()

    def on_complete(self) -> None:
        self.handler.finish_fetch(self)
        self.let_go()

    def let_go(self) -> None:
        """Keep nothing of a fetch that is answered: the operation may stay listed for long."""
        del self.request, self.specs, self.session, self.respond, self.unread
