"""Fetches that wait for enough data (docs/kafka/purgatory.md#purgatory)."""

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
    """Answers fetches that waited."""

    behaviour: Behaviour

    def is_fetch_satisfied(self, operation: DelayedFetch) -> bool: ...
    def finish_fetch(self, operation: DelayedFetch) -> None: ...


class DelayedFetch(DelayedOperation):
    """A fetch; its partitions are read when it arrives, and again when it completes after a wait
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
    """Attributes that ``drop_references`` deletes; the compiler requires them to be declared."""

    def __init__(
        self,
        handler: FetchAnswers,
        request: FetchRequest,
        specs: Sequence[FetchPartition | CachedPartition],
        session: FetchSession | None,
        api_version: int,
        respond: Callable[[FetchResponse], object],
    ) -> None:
        # The fields of the base classes, set without two calls: every fetch has an operation.
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
        """Partitions whose log was not read, so that its growth does not count: the follower is
        not assigned to them, or the consumer is sent to another replica."""

    @property
    def has_client_metadata(self) -> bool:
        """True if the client uses Fetch v11 or later, and may therefore read from followers."""
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
        self.drop_references()

    def drop_references(self) -> None:
        """Drop all that an answered fetch refers to, as the operation may stay listed for long."""
        del self.request, self.specs, self.session, self.respond, self.unread
