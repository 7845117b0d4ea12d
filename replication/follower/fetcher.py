"""The follower's fetcher as a pure state machine (docs/kafka/replica-fetchers.md).

Theory of operation. One fetcher copies some partitions from one leader broker. It has at most one
request under way; ``next_request`` says what to send and ``on_response`` or ``on_failure`` takes
the outcome. A partition is in one of these stages::

    TRUNCATING --- leader's epoch answer ---> FETCHING   ("leader_epoch", or no history yet)
    FETCHING   --- out of range ---> ASKING_LATEST --- leader is longer ---> ASKING_EARLIEST
    ASKING_*   --- answer ---> FETCHING

and, beside its stage, possibly delayed by a back-off. Truncation goes first, then out-of-range
look-ups, then fetching. An answer is used only for partitions that still are as they were when
it was asked: same leadership, same position, not delayed.
"""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.data import (
    LATEST_TIMESTAMP,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from ...protocol.errors import ErrorCode, FakeKafkaError, InvariantError, KafkaError, invariant
from ...protocol.fetch_session_epochs import EPOCH_MAX, INITIAL_EPOCH, next_epoch
from ...protocol.records.batch import whole_batches
from ...protocol.values import TopicPartition
from .fetch_session_handler import FetcherRequest, FetcherResponse, FetchTracking, log_of
from .fetch_state import FetcherCallbacks, FetchStage, PartitionFetchState

__all__ = [
    "FetchStage",
    "FetcherCallbacks",
    "FetcherRequest",
    "FetcherResponse",
    "PartitionFetchState",
    "ReplicaFetcher",
]

_NONE = ErrorCode.NONE
_FETCHING = FetchStage.FETCHING
_SESSION_ERRORS = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)


class ReplicaFetcher(FetchTracking):
    """Copies partitions from one leader; driven by its actor."""

    __slots__ = ()

    def on_response(self, request: FetcherRequest, response: FetcherResponse) -> None:
        """Apply the leader's answer to ``request``.

        Raises ``InvariantError`` if it answers an epoch for a partition that was not asked.
        """
        if not self.is_running:
            return
        if not isinstance(request, FetchRequest):
            self._on_look_up_response(request, response)
            return
        answers: FetchResponse = response  # type: ignore[assignment]
        if answers.error is not _NONE:
            self._reset_session()
            if answers.error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._session_id = 0
            if answers.error not in _SESSION_ERRORS:
                self._delayed_until_ms = self._now_ms() + self._backoff_ms
            return
        if self._uses_sessions:
            if request.session_epoch > INITIAL_EPOCH and answers.session_id:
                epoch = self._session_epoch
                self._session_epoch = epoch + 1 if epoch < EPOCH_MAX else next_epoch(epoch)
            else:
                self._begin_session(request, answers)
        states = self._states
        for answer in answers.partitions:
            name = answer.topic_partition
            state = states.get(name)
            if (
                state is None
                or state.sent_offset != state.fetch_offset
                or state.stage is not _FETCHING
                or state.delayed_until_ms
            ):
                continue  # removed or restarted meanwhile
            if answer.error is _NONE and answer.diverging_epoch is None:
                self._on_fetched(name, state, answer)
            else:
                self._on_refused(name, state, answer)
            if not self.is_running:
                return

    def _on_look_up_response(
        self,
        request: OffsetForLeaderEpochRequest | ListOffsetsRequest,
        response: FetcherResponse,
    ) -> None:
        if isinstance(request, OffsetForLeaderEpochRequest):
            assert isinstance(response, OffsetForLeaderEpochResponse)
            self._on_epoch_response(request, response)
        else:
            assert isinstance(response, ListOffsetsResponse)
            self._on_offsets_response(request, response)

    def on_failure(self, request: FetcherRequest) -> None:
        """The request was lost or the leader is unreachable: everything waits for a back-off.

        The session starts anew: whether the leader saw the request is unknown.
        """
        if not self.is_running:
            return
        if isinstance(request, FetchRequest):
            self._reset_session()
        self._delayed_until_ms = self._now_ms() + self._backoff_ms

    # -- fetching ---------------------------------------------------------------------------

    def _begin_session(self, request: FetchRequest, response: FetchResponse) -> None:
        if response.session_id == 0:
            # Not admitted, or closed by the leader: full fetches until it admits one.
            self._reset_session()
            self._session_id = 0
        else:
            self._session_id = response.session_id
            self._session_epoch = 1

    def _on_fetched(
        self, name: TopicPartition, state: PartitionFetchState, answer: FetchPartitionResponse
    ) -> None:
        partition = state.partition
        log = partition.log
        batches = answer.records
        high_watermark = answer.high_watermark
        callbacks = self._callbacks
        now_ms = self._now_ms
        try:
            if log is None or state.fetch_offset != log.log_end_offset:
                end = None if log is None else log.log_end_offset
                raise InvariantError(f"fetched at {state.fetch_offset}, the log ends at {end}")
            if (
                len(batches) == 1
                and not callbacks.verify_checksums
                and answer.log_start_offset <= log.log_start_offset
                and log.append_next(batches[0], now_ms())
            ):  # all that ``append_as_follower`` has to do, in most cases
                previous = log.high_watermark
                advanced = (
                    high_watermark != previous
                    and log.update_high_watermark(high_watermark) > previous
                )
            else:
                batches = whole_batches(batches)
                advanced = partition.append_as_follower(
                    batches, high_watermark, answer.log_start_offset, callbacks.verify_checksums
                )
        except (FakeKafkaError, OSError) as error:
            self._on_append_error(name, state, error)
            return
        if batches:
            state.fetch_offset = log.log_end_offset
            if self._truncates_on_fetch:  # else the leader is not told
                summary = batches[-1].summary
                epoch = batches[-1].partition_leader_epoch if summary is None else summary[0]
                if epoch >= 0:
                    state.last_fetched_epoch = epoch
            self._dirty[name] = state
        elif log.log_start_offset != state.sent_log_start_offset:
            state.fetch_offset = log.log_end_offset
            self._dirty[name] = state
        state.leader_high_watermark = high_watermark
        if advanced:
            on_appended = callbacks.on_appended
            on_appended(name)

    def _on_append_error(
        self, name: TopicPartition, state: PartitionFetchState, error: Exception
    ) -> None:
        if isinstance(error, KafkaError) and error.code in (
            ErrorCode.CORRUPT_MESSAGE,
            ErrorCode.INVALID_RECORD,
        ):
            self._delay(name, state)  # damaged on the way: the same offset again
            return
        is_disk = _is_storage_failure(error)  # takes the partition offline, not the thread
        if self._behaviour.follower_failure_stops_fetcher and not is_disk:
            self.is_running = False  # one bad partition kills the whole thread
            self._callbacks.on_failed(name, str(error))
        else:
            self._fail(name, str(error))
        if is_disk:
            self._callbacks.on_storage_failure(name, error)

    def _on_refused(
        self, name: TopicPartition, state: PartitionFetchState, answer: FetchPartitionResponse
    ) -> None:
        error = answer.error
        end = answer.diverging_epoch
        if error is _NONE and end is not None:
            self._guarded(name, state, self._truncate_by_epoch, end.leader_epoch, end.end_offset)
        elif error is ErrorCode.OFFSET_OUT_OF_RANGE:
            state.stage = FetchStage.ASKING_LATEST
            self._touch(name, state)
        else:
            self._on_partition_error(name, state, error)

    def _on_partition_error(
        self, name: TopicPartition, state: PartitionFetchState, error: ErrorCode
    ) -> None:
        if error is ErrorCode.FENCED_LEADER_EPOCH:
            self._fail(name, "fenced by a newer leader epoch")
        else:
            self._delay(name, state)

    def _fail(self, name: TopicPartition, reason: str) -> None:
        """Give a partition up until the next LeaderAndIsr."""
        self.remove((name,))
        self._callbacks.on_failed(name, reason)

    # -- truncation -------------------------------------------------------------------------

    def _guarded(
        self,
        name: TopicPartition,
        state: PartitionFetchState,
        action: Callable[[TopicPartition, PartitionFetchState, int, int], None],
        epoch: int,
        offset: int,
    ) -> None:
        """Run what may cut the log; a failure concerns this partition only (DP-64)."""
        try:
            action(name, state, epoch, offset)
        except (FakeKafkaError, OSError) as error:
            self._fail(name, str(error))
            if _is_storage_failure(error):
                self._callbacks.on_storage_failure(name, error)

    def _truncate_without_history(self, name: TopicPartition, state: PartitionFetchState) -> None:
        """No epoch to ask about: cut to what is known to be committed."""
        self._guarded(name, state, self._truncate_to, -1, state.fetch_offset)

    def _truncate_to(
        self, name: TopicPartition, state: PartitionFetchState, _epoch: int, offset: int
    ) -> None:
        """Cut the log and fetch on from there."""
        self._truncate(name, state, offset, is_finished=True)

    def _truncate(
        self, name: TopicPartition, state: PartitionFetchState, offset: int, is_finished: bool
    ) -> None:
        log = log_of(state.partition)
        log.truncate_to(offset)
        state.fetch_offset = log.log_end_offset
        state.last_fetched_epoch = log.latest_epoch
        if is_finished:
            state.stage = FetchStage.FETCHING
        self._touch(name, state)

    def _truncate_by_epoch(
        self, name: TopicPartition, state: PartitionFetchState, epoch: int, end_offset: int
    ) -> None:
        """Cut what the leader does not share (``AbstractFetcherThread.getOffsetTruncationState``).

        The leader's answer: ``epoch`` is its largest one not above the one asked, ``end_offset``
        where that ends. While fetching, further rounds happen by themselves.
        """
        log = log_of(state.partition)
        is_finished = True
        if end_offset < 0:
            offset = state.fetch_offset
        elif epoch < 0:
            offset = min(end_offset, log.log_end_offset)
        else:
            own = log.end_offset_for_epoch(epoch)
            if own.end_offset < 0:
                offset = min(end_offset, log.log_end_offset)
            elif own.leader_epoch != epoch:
                offset = min(own.end_offset, log.log_end_offset)
                is_finished = state.stage is FetchStage.FETCHING
            else:
                offset = min(own.end_offset, end_offset, log.log_end_offset)
        self._truncate(name, state, offset, is_finished)

    def _on_epoch_response(
        self, request: OffsetForLeaderEpochRequest, response: OffsetForLeaderEpochResponse
    ) -> None:
        asked = {entry.topic_partition for entry in request.partitions}
        for answer in response.partitions:
            invariant(
                answer.topic_partition in asked,
                f"the leader answered for {answer.topic_partition}, which was not asked",
            )
        for answer in response.partitions:
            name = answer.topic_partition
            state = self._states.get(name)
            if (
                state is None
                or state.stage is not FetchStage.TRUNCATING
                or state.sent_offset != state.fetch_offset
            ):
                continue  # removed, or restarted with another epoch: it will ask again
            if answer.error is _NONE:
                self._guarded(
                    name, state, self._truncate_by_epoch, answer.leader_epoch, answer.end_offset
                )
            else:
                self._on_partition_error(name, state, answer.error)

    # -- out of range -----------------------------------------------------------------------

    def _on_offsets_response(
        self, request: ListOffsetsRequest, response: ListOffsetsResponse
    ) -> None:
        asked_latest = request.partitions[0].timestamp == LATEST_TIMESTAMP
        stage = FetchStage.ASKING_LATEST if asked_latest else FetchStage.ASKING_EARLIEST
        action = self._on_leader_end if asked_latest else self._on_leader_start
        for answer in response.partitions:
            name = answer.topic_partition
            state = self._states.get(name)
            if state is None or state.stage is not stage or state.sent_offset != state.fetch_offset:
                continue
            if answer.error is _NONE:
                self._guarded(name, state, action, answer.leader_epoch, answer.offset)
            else:
                self._on_partition_error(name, state, answer.error)
            if not self.is_running:
                return

    def _on_leader_end(
        self, name: TopicPartition, state: PartitionFetchState, _epoch: int, leader_end: int
    ) -> None:
        """The leader is shorter: cut to its end, or exit; else ask where it begins
        (docs/kafka/replica-fetchers.md#out-of-range)."""
        log = log_of(state.partition)
        if leader_end >= log.log_end_offset:
            state.stage = FetchStage.ASKING_EARLIEST
            return
        if (
            self._behaviour.out_of_range_halts_broker
            and not self._callbacks.is_unclean_election_allowed(name.topic)
        ):
            self.is_running = False
            self._callbacks.on_halt(
                name,
                f"the leader of {name} ends at {leader_end}, this replica at "
                f"{log.log_end_offset}, and unclean election is disabled",
            )
            return
        self._truncate(name, state, leader_end, is_finished=True)

    def _on_leader_start(
        self, name: TopicPartition, state: PartitionFetchState, _epoch: int, leader_start: int
    ) -> None:
        """The leader is longer: go on here, or begin anew where it begins."""
        log = log_of(state.partition)
        if leader_start > log.log_end_offset:
            log.truncate_fully_and_start_at(leader_start)
        state.fetch_offset = log.log_end_offset
        state.last_fetched_epoch = log.latest_epoch
        state.stage = FetchStage.FETCHING
        self._touch(name, state)


def _is_storage_failure(error: Exception) -> bool:
    return isinstance(error, OSError) or (
        isinstance(error, KafkaError) and error.code is ErrorCode.KAFKA_STORAGE_ERROR
    )
