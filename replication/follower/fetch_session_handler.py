"""A follower's side of an incremental fetch session (KIP-227, docs/kafka/fetch-sessions.md;
Kafka's ``FetchSessionHandler``)."""

from __future__ import annotations

from ...protocol.errors import ErrorCode
from ...protocol.fetch_session_epochs import FINAL_EPOCH, INITIAL_EPOCH, INVALID_SESSION_ID
from ...protocol.values import TopicPartition

_SESSION_ERRORS = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)


class FetchSessionHandler:
    """The leader's session as the follower knows it, and the epoch of the next fetch."""

    def __init__(self, is_used: bool) -> None:
        self.is_used: bool = is_used
        """Whether the release has sessions."""
        self.session_id: int = INVALID_SESSION_ID
        self.epoch = INITIAL_EPOCH if is_used else FINAL_EPOCH
        self.partitions: dict[TopicPartition, object] = {}
        """Partitions in the leader's session once the request under way arrived."""
        self.forgotten: dict[TopicPartition, None] = {}
        """Partitions of the session that it must not answer any more."""

    def forget(self, name: TopicPartition) -> None:
        """Have the leader drop a partition from the session, if it is there."""
        if name in self.partitions:
            self.forgotten[name] = None

    def take_forgotten(self) -> tuple[TopicPartition, ...]:
        """Return the partitions that the next request tells the leader to drop."""
        forgotten = tuple(self.forgotten)
        self.forgotten.clear()
        for name in forgotten:
            del self.partitions[name]
        return forgotten

    def forget_all(self) -> None:
        """The next request is a full one: the session it opens holds what that names."""
        self.forgotten.clear()
        self.partitions.clear()

    def begin(self, session_id: int) -> None:
        """A full fetch was answered: the leader opened a session, or did not admit one."""
        if session_id == INVALID_SESSION_ID:
            # Not admitted, or closed by the leader: full fetches until it admits one.
            self.reset()
            self.session_id = INVALID_SESSION_ID
        else:
            self.session_id = session_id
            self.epoch = 1

    def reset(self) -> None:
        """The next fetch is a full one; it names the old session, so that the leader closes it."""
        self.forget_all()
        if self.is_used:
            self.epoch = INITIAL_EPOCH

    def on_error(self, error: ErrorCode) -> bool:
        """The leader refused the whole request: start anew; whether only the session was wrong."""
        self.reset()
        if error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self.session_id = INVALID_SESSION_ID
        return error in _SESSION_ERRORS
