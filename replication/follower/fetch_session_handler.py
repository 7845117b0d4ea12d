"""A follower's side of an incremental fetch session (KIP-227, docs/kafka/fetch-sessions.md;
Kafka's ``FetchSessionHandler``)."""

from __future__ import annotations

from ...protocol.errors import ErrorCode
from ...protocol.fetch_session_epochs import FINAL_EPOCH, INITIAL_EPOCH, INVALID_SESSION_ID
from ...protocol.values import TopicPartition

_SESSION_ERRORS = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)


class FetchSessionHandler:
    """The follower's view of the leader's session, and the epoch of the next fetch."""

    def __init__(self, is_used: bool) -> None:
        self.is_used: bool = is_used
        """True if the release has fetch sessions."""
        self.session_id: int = INVALID_SESSION_ID
        self.epoch = INITIAL_EPOCH if is_used else FINAL_EPOCH
        self.partitions: dict[TopicPartition, object] = {}
        """Partitions in the leader's session once the request in flight has arrived."""
        self.forgotten: dict[TopicPartition, None] = {}
        """Partitions that the next request removes from the session."""

    def forget(self, name: TopicPartition) -> None:
        """Remove a partition from the session with the next request, if it is there."""
        if name in self.partitions:
            self.forgotten[name] = None

    def take_forgotten(self) -> tuple[TopicPartition, ...]:
        """Return the partitions for the next request to remove, and forget them."""
        forgotten = tuple(self.forgotten)
        self.forgotten.clear()
        for name in forgotten:
            del self.partitions[name]
        return forgotten

    def forget_all(self) -> None:
        """Clear the partitions for a full request, which opens a session with those it names."""
        self.forgotten.clear()
        self.partitions.clear()

    def begin(self, session_id: int) -> None:
        """Handle the response to a full fetch: a new session, or none if not admitted."""
        if session_id == INVALID_SESSION_ID:
            # Not admitted, or closed by the leader: full fetches until it admits one.
            self.reset()
            self.session_id = INVALID_SESSION_ID
        else:
            self.session_id = session_id
            self.epoch = 1

    def reset(self) -> None:
        """Make the next fetch a full one; it names the old session for the leader to close it."""
        self.forget_all()
        if self.is_used:
            self.epoch = INITIAL_EPOCH

    def on_error(self, error: ErrorCode) -> bool:
        """Start over after an error of the whole request; return True if it was a session error."""
        self.reset()
        if error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self.session_id = INVALID_SESSION_ID
        return error in _SESSION_ERRORS
