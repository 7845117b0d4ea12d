"""The follower's fetcher as a pure state machine (data_plane 7).

Theory of operation. One fetcher copies some partitions from one leader broker. It has at most one
request under way; ``next_request`` says what to send and ``on_response`` or ``on_failure`` takes
the outcome. A partition is in one of these states::

    TRUNCATING  -- leader's epoch answer --> FETCHING      (protocol "leader_epoch", or no epochs yet)
    FETCHING    -- out of range --> ASKING_LATEST -- leader is longer --> ASKING_EARLIEST
    ASKING_*    -- answer --> FETCHING

and, beside its state, possibly delayed by a back-off. Truncation goes first, then out-of-range
look-ups, then fetching. What is tracked changes only between requests or through ``add`` and
``remove``; an answer is used only for partitions that still are as they were when it was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import TYPE_CHECKING

from ..protocol.config import BrokerConfig
from ..protocol.data import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochPartition,
    OffsetForLeaderEpochPartitionResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from ..protocol.errors import ErrorCode, InvariantError, KafkaError, invariant
from ..protocol.host import Host
from ..protocol.values import TopicPartition
from ..protocol.versions import Behaviour
from .fetch_session import FINAL_EPOCH, INITIAL_EPOCH, next_epoch

if TYPE_CHECKING:
    from .log import Log
    from .partition import Partition

FetcherRequest = FetchRequest | OffsetForLeaderEpochRequest | ListOffsetsRequest
FetcherResponse = FetchResponse | OffsetForLeaderEpochResponse | ListOffsetsResponse

_NONE = ErrorCode.NONE


class FetchStage(IntEnum):
    FETCHING = 0
    TRUNCATING = 1
    ASKING_LATEST = 2
    ASKING_EARLIEST = 3


class PartitionFetchState:
    """How far one partition has been copied."""

    __slots__ = (
        "delayed_until_ms",
        "fetch_offset",
        "in_session",
        "is_dirty",
        "lag",
        "last_fetched_epoch",
        "leader_epoch",
        "partition",
        "sent_log_start_offset",
        "sent_offset",
        "stage",
    )

    def __init__(
        self, partition: Partition, fetch_offset: int, leader_epoch: int, stage: FetchStage
    ) -> None:
        self.partition = partition
        self.fetch_offset = fetch_offset
        """Equals the log's end while fetching; the truncation point to fall back to before."""
        self.leader_epoch = leader_epoch
        """Epoch of the LeaderAndIsr that started this; answers to another one are ignored."""
        self.stage = stage
        self.last_fetched_epoch = -1
        self.delayed_until_ms = 0
        self.lag = 0
        self.sent_offset = -1
        """``fetch_offset`` of the fetch under way; -1 if this state took part in none."""
        self.sent_log_start_offset = -1
        self.is_dirty = True
        """The leader's session does not know the current offset, epoch or log start."""
        self.in_session = False


class FetcherCallbacks:
    """What a fetcher tells its surroundings; replaced by ``FetcherManager``."""

    __slots__ = (
        "is_unclean_election_allowed",
        "on_appended",
        "on_failed",
        "on_halt",
        "on_storage_failure",
    )

    def __init__(self) -> None:
        self.on_failed: Callable[[TopicPartition, str], object] = lambda name, why: None
        """A partition was given up until the next LeaderAndIsr."""
        self.on_halt: Callable[[TopicPartition, str], object] = lambda name, why: None
        """0.10: the broker process exits rather than lose what it holds."""
        self.on_storage_failure: Callable[[TopicPartition, Exception], object] = (
            lambda name, error: None
        )
        self.on_appended: Callable[[TopicPartition], object] | None = None
        """The high watermark of a followed partition went up."""
        self.is_unclean_election_allowed: Callable[[str], bool] = lambda topic: False


class ReplicaFetcher:
    """Copies partitions from one leader; driven by its actor."""

    def __init__(
        self,
        *,
        name: str,
        broker_id: int,
        leader_id: int,
        fetcher_id: int,
        host: Host,
        config: BrokerConfig,
        behaviour: Behaviour,
        broker_epoch: Callable[[], int],
        callbacks: FetcherCallbacks,
    ) -> None:
        self.name = name
        self.broker_id = broker_id
        self.leader_id = leader_id
        self.fetcher_id = fetcher_id
        self.on_wake: Callable[[], object] | None = None
        """Called when there may be something to do; set by the actor that runs the loop."""
        self.is_running = True
        """False once stopped, or (0.10) dead of an exception: nothing is asked any more."""
        self._host = host
        self._behaviour = behaviour
        self._broker_epoch = broker_epoch
        self._callbacks = callbacks
        self._states: dict[TopicPartition, PartitionFetchState] = {}
        self._busy: dict[TopicPartition, None] = {}
        """Partitions that are not plainly fetching: in another stage, or delayed."""
        self._dirty: dict[TopicPartition, None] = {}
        """Partitions the next fetch has to name; the others the session remembers."""
        self._forgotten: dict[TopicPartition, None] = {}
        """Partitions the leader's session still has but must not answer any more."""
        self._delayed_until_ms = 0
        self._backoff_ms: int = config["replica.fetch.backoff.ms"]
        self._max_wait_ms: int = config["replica.fetch.wait.max.ms"]
        self._min_bytes: int = config["replica.fetch.min.bytes"]
        self._max_bytes: int = config["replica.fetch.response.max.bytes"]
        self._partition_max_bytes: int = config["replica.fetch.max.bytes"]
        self._uses_sessions = behaviour.fetch_sessions
        self._session_id = 0
        self._session_epoch = INITIAL_EPOCH if behaviour.fetch_sessions else FINAL_EPOCH
        self._sends_epochs = behaviour.fetch_epoch_fencing
        self._truncates_on_fetch = behaviour.truncation == "fetch"

    # -- what is tracked --------------------------------------------------------------------

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(self._states)

    def __len__(self) -> int:
        return len(self._states)

    def state(self, topic_partition: TopicPartition) -> PartitionFetchState | None:
        return self._states.get(topic_partition)

    def add(self, partition: Partition, leader_epoch: int, initial_offset: int) -> None:
        """Track a partition (data_plane 7.2); one tracked with the same epoch stays as it is."""
        name = partition.topic_partition
        known = self._states.get(name)
        if known is not None and known.leader_epoch == leader_epoch:
            return
        log = _log_of(partition)
        stage = FetchStage.TRUNCATING
        offset = initial_offset
        last_fetched_epoch = -1
        if initial_offset < 0:
            stage = FetchStage.ASKING_LATEST
            offset = log.log_end_offset
        elif self._behaviour.truncation == "high_watermark":
            stage = FetchStage.FETCHING
        elif self._truncates_on_fetch and log.latest_epoch >= 0:
            stage = FetchStage.FETCHING
            offset = log.log_end_offset
            last_fetched_epoch = log.latest_epoch
        state = PartitionFetchState(partition, offset, leader_epoch, stage)
        state.last_fetched_epoch = last_fetched_epoch
        state.in_session = known is not None and known.in_session
        self._states[name] = state
        self._forgotten.pop(name, None)
        self._touch(name, state)
        self._wake()

    def remove(self, names: Iterable[TopicPartition]) -> None:
        """Stop tracking; an answer under way will not be applied to them."""
        for name in names:
            state = self._states.pop(name, None)
            if state is None:
                continue
            self._busy.pop(name, None)
            self._dirty.pop(name, None)
            if state.in_session:
                self._forgotten[name] = None

    def stop(self) -> None:
        """Ask nothing more; a late answer is ignored."""
        self.is_running = False
        self._wake()

    def log_start_changed(self, topic_partition: TopicPartition) -> None:
        """The follower's own retention raised its log start: the leader is to be told."""
        state = self._states.get(topic_partition)
        if state is not None and state.stage is FetchStage.FETCHING:
            self._mark_dirty(topic_partition, state)

    def _wake(self) -> None:
        if self.on_wake is not None:
            self.on_wake()

    def _touch(self, name: TopicPartition, state: PartitionFetchState) -> None:
        """Keep the two indexes in step with a state that changed."""
        if state.stage is FetchStage.FETCHING and not state.delayed_until_ms:
            self._busy.pop(name, None)
            self._mark_dirty(name, state)
        else:
            self._busy[name] = None
            self._dirty.pop(name, None)
            if state.in_session:
                state.in_session = False
                self._forgotten[name] = None

    def _mark_dirty(self, name: TopicPartition, state: PartitionFetchState) -> None:
        state.is_dirty = True
        self._dirty[name] = None

    def _delay(self, name: TopicPartition, state: PartitionFetchState) -> None:
        """Leave a partition alone for the back-off time."""
        state.delayed_until_ms = self._host.now_ms() + self._backoff_ms
        self._touch(name, state)

    def _wake_delayed(self, now_ms: int) -> None:
        for name in tuple(self._busy):
            state = self._states[name]
            if 0 < state.delayed_until_ms <= now_ms:
                state.delayed_until_ms = 0
                self._touch(name, state)

    # -- requests ---------------------------------------------------------------------------

    def next_request(self) -> FetcherRequest | None:
        """What to ask the leader now; None: wait for ``on_wake`` or ``delay_ms``."""
        if not self.is_running or not self._states:
            return None
        if self._busy or self._delayed_until_ms:
            now_ms = self._host.now_ms()
            if now_ms < self._delayed_until_ms:
                return None
            self._delayed_until_ms = 0
            self._wake_delayed(now_ms)
            request = self._truncation_request() or self._offsets_request()
            if request is not None:
                return request
            if len(self._busy) == len(self._states):
                return None
        return self._fetch_request()

    def delay_ms(self) -> int | None:
        """Milliseconds until ``next_request`` may answer differently by itself; None: never."""
        if not self.is_running or not self._states:
            return None
        now_ms = self._host.now_ms()
        if self._delayed_until_ms > now_ms:
            return self._delayed_until_ms - now_ms
        until = [
            self._states[name].delayed_until_ms
            for name in self._busy
            if self._states[name].delayed_until_ms
        ]
        if len(until) < len(self._states):
            return 0
        return max(0, min(until) - now_ms) if until else None

    def _ready(self, stage: FetchStage) -> list[tuple[TopicPartition, PartitionFetchState]]:
        return [
            (name, self._states[name])
            for name in self._busy
            if self._states[name].stage is stage and not self._states[name].delayed_until_ms
        ]

    def _truncation_request(self) -> OffsetForLeaderEpochRequest | None:
        asked = []
        for name, state in self._ready(FetchStage.TRUNCATING):
            latest_epoch = _log_of(state.partition).latest_epoch
            if self._behaviour.epoch_cache and latest_epoch >= 0:
                asked.append(
                    OffsetForLeaderEpochPartition(
                        name, latest_epoch, state.leader_epoch if self._sends_epochs else -1
                    )
                )
                state.sent_offset = state.fetch_offset
            else:
                # No history to compare: cut to what is known to be committed.
                self._guarded(name, state, self._truncate, state.fetch_offset, True)
        return OffsetForLeaderEpochRequest(self.broker_id, tuple(asked)) if asked else None

    def _offsets_request(self) -> ListOffsetsRequest | None:
        for stage, timestamp in (
            (FetchStage.ASKING_LATEST, LATEST_TIMESTAMP),
            (FetchStage.ASKING_EARLIEST, EARLIEST_TIMESTAMP),
        ):
            ready = self._ready(stage)
            if ready:
                return ListOffsetsRequest(
                    self.broker_id,
                    tuple(
                        ListOffsetsPartition(
                            name, timestamp, state.leader_epoch if self._sends_epochs else -1
                        )
                        for name, state in ready
                    ),
                )
        return None

    def _fetch_request(self) -> FetchRequest:
        session_epoch = self._session_epoch
        forgotten: tuple[TopicPartition, ...] = ()
        names: Iterable[TopicPartition]
        if session_epoch > INITIAL_EPOCH:
            names = self._dirty
            if self._forgotten:
                forgotten = tuple(self._forgotten)
        else:
            busy = self._busy
            names = (name for name in self._states if name not in busy) if busy else self._states
        wanted = []
        for name in names:
            state = self._states[name]
            log_start_offset = _log_of(state.partition).log_start_offset
            state.sent_offset = state.fetch_offset
            state.sent_log_start_offset = log_start_offset
            state.is_dirty = False
            wanted.append(
                FetchPartition(
                    name,
                    state.fetch_offset,
                    log_start_offset,
                    self._partition_max_bytes,
                    state.leader_epoch if self._sends_epochs else -1,
                    state.last_fetched_epoch if self._truncates_on_fetch else -1,
                )
            )
        self._dirty.clear()
        return FetchRequest(
            self.broker_id,
            self._max_wait_ms,
            self._min_bytes,
            self._max_bytes,
            tuple(wanted),
            0,
            self._session_id,
            session_epoch,
            forgotten,
            "",
            self._broker_epoch(),
        )

    # -- outcomes ---------------------------------------------------------------------------

    def on_response(self, request: FetcherRequest, response: FetcherResponse) -> None:
        """Apply the leader's answer to ``request``."""
        if not self.is_running:
            return
        if isinstance(request, FetchRequest):
            assert isinstance(response, FetchResponse)
            self._on_fetch_response(request, response)
        elif isinstance(request, OffsetForLeaderEpochRequest):
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
        self._delayed_until_ms = self._host.now_ms() + self._backoff_ms

    def _reset_session(self) -> None:
        """The next fetch is a full one. Closing the old session saves the leader its slot."""
        if not self._uses_sessions:
            return
        self._session_epoch = INITIAL_EPOCH
        self._dirty.clear()
        self._forgotten.clear()
        for state in self._states.values():
            state.in_session = False

    def _on_fetch_response(self, request: FetchRequest, response: FetchResponse) -> None:
        if response.error is not _NONE:
            if response.error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._session_id = 0
            self._reset_session()
            self._delayed_until_ms = self._host.now_ms() + self._backoff_ms
            return
        if self._uses_sessions:
            self._continue_session(request, response)
        for answer in response.partitions:
            name = answer.topic_partition
            state = self._states.get(name)
            if (
                state is None
                or state.sent_offset != state.fetch_offset
                or state.stage is not FetchStage.FETCHING
                or state.delayed_until_ms
            ):
                continue  # removed or restarted meanwhile
            if answer.error is _NONE and answer.diverging_epoch is None:
                self._on_fetched(name, state, answer)
            else:
                self._on_refused(name, state, answer)
            if not self.is_running:
                return

    def _continue_session(self, request: FetchRequest, response: FetchResponse) -> None:
        if response.session_id == 0:
            # Not admitted, or closed by the leader: full fetches until it admits one.
            self._session_id = 0
            self._session_epoch = INITIAL_EPOCH
            self._forgotten.clear()
            for state in self._states.values():
                state.in_session = False
            return
        if request.session_epoch <= INITIAL_EPOCH:
            self._session_id = response.session_id
            self._session_epoch = 1
        else:
            self._session_epoch = next_epoch(self._session_epoch)
        for entry in request.partitions:
            state_or_none = self._states.get(entry.topic_partition)
            if state_or_none is None or state_or_none.sent_offset != entry.fetch_offset:
                if state_or_none is None:
                    self._forgotten[entry.topic_partition] = None
                continue
            state_or_none.in_session = True
        for name in request.forgotten:
            if name not in self._states or not self._states[name].in_session:
                self._forgotten.pop(name, None)

    def _on_fetched(
        self, name: TopicPartition, state: PartitionFetchState, answer: FetchPartitionResponse
    ) -> None:
        partition = state.partition
        log = partition.log
        batches = answer.records
        try:
            if log is None or state.fetch_offset != log.log_end_offset:
                end = None if log is None else log.log_end_offset
                raise InvariantError(f"fetched at {state.fetch_offset}, the log ends at {end}")
            advanced = partition.append_as_follower(
                batches, answer.high_watermark, answer.log_start_offset
            )
        except (KafkaError, InvariantError, OSError) as error:
            self._on_append_error(name, state, error)
            return
        if batches:
            last = batches[-1]
            state.fetch_offset = log.log_end_offset
            if last.partition_leader_epoch >= 0:
                state.last_fetched_epoch = last.partition_leader_epoch
            self._mark_dirty(name, state)
        elif log.log_start_offset != state.sent_log_start_offset:
            state.fetch_offset = log.log_end_offset
            self._mark_dirty(name, state)
        lag = answer.high_watermark - state.fetch_offset
        state.lag = lag if lag > 0 else 0
        if advanced and self._callbacks.on_appended is not None:
            self._callbacks.on_appended(name)

    def _on_append_error(
        self, name: TopicPartition, state: PartitionFetchState, error: Exception
    ) -> None:
        code = error.code if isinstance(error, KafkaError) else None
        if isinstance(error, OSError) or code is ErrorCode.KAFKA_STORAGE_ERROR:
            self._fail(name, str(error))
            self._callbacks.on_storage_failure(name, error)
        elif code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD):
            self._delay(name, state)  # damaged on the way: the same offset again
        else:
            self._fail(name, str(error))

    def _on_refused(
        self, name: TopicPartition, state: PartitionFetchState, answer: FetchPartitionResponse
    ) -> None:
        error = answer.error
        if answer.diverging_epoch is not None and error is _NONE:
            end = answer.diverging_epoch
            self._guarded(name, state, self._truncate_by_epoch, end.leader_epoch, end.end_offset)
        elif error is ErrorCode.OFFSET_OUT_OF_RANGE:
            state.stage = FetchStage.ASKING_LATEST
            self._touch(name, state)
        elif error is ErrorCode.FENCED_LEADER_EPOCH:
            self._fail(name, "fenced by a newer leader epoch")
        else:
            self._delay(name, state)

    def _fail(self, name: TopicPartition, reason: str) -> None:
        """Give a partition up until the next LeaderAndIsr; 0.10 loses the whole fetcher."""
        if self._behaviour.follower_failure_stops_fetcher:
            self.is_running = False
        self.remove((name,))
        self._callbacks.on_failed(name, reason)

    def _guarded(
        self,
        name: TopicPartition,
        state: PartitionFetchState,
        action: Callable[[TopicPartition, PartitionFetchState, int, int], None],
        first: int,
        second: int,
    ) -> None:
        """Truncate; a failure concerns this partition only."""
        try:
            action(name, state, first, second)
        except (KafkaError, OSError) as error:
            self._fail(name, str(error))
            if isinstance(error, OSError) or error.code is ErrorCode.KAFKA_STORAGE_ERROR:
                self._callbacks.on_storage_failure(name, error)

    # -- truncation -------------------------------------------------------------------------

    def _truncate(
        self, name: TopicPartition, state: PartitionFetchState, offset: int, is_finished: int
    ) -> None:
        log = _log_of(state.partition)
        log.truncate_to(offset)
        state.fetch_offset = min(offset, log.log_end_offset) if is_finished else offset
        if is_finished:
            state.fetch_offset = log.log_end_offset
            state.stage = FetchStage.FETCHING
        state.last_fetched_epoch = log.latest_epoch
        self._touch(name, state)

    def _truncate_by_epoch(
        self, name: TopicPartition, state: PartitionFetchState, epoch: int, end_offset: int
    ) -> None:
        """Cut what the leader does not share (data_plane 7.3, getOffsetTruncationState)."""
        log = _log_of(state.partition)
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
        asked = {entry.topic_partition: entry for entry in request.partitions}
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
                self._on_lookup_error(name, state, answer)
            if not self.is_running:
                return

    def _on_lookup_error(
        self,
        name: TopicPartition,
        state: PartitionFetchState,
        answer: OffsetForLeaderEpochPartitionResponse,
    ) -> None:
        if answer.error is ErrorCode.FENCED_LEADER_EPOCH:
            self._fail(name, "fenced by a newer leader epoch")
        else:
            self._delay(name, state)

    # -- out of range -----------------------------------------------------------------------

    def _on_offsets_response(
        self, request: ListOffsetsRequest, response: ListOffsetsResponse
    ) -> None:
        stages = {
            entry.topic_partition: FetchStage.ASKING_LATEST
            if entry.timestamp == LATEST_TIMESTAMP
            else FetchStage.ASKING_EARLIEST
            for entry in request.partitions
        }
        epochs = {entry.topic_partition: entry.current_leader_epoch for entry in request.partitions}
        for answer in response.partitions:
            name = answer.topic_partition
            state = self._states.get(name)
            if (
                state is None
                or state.stage is not stages.get(name)
                or (epochs[name] != -1 and epochs[name] != state.leader_epoch)
            ):
                continue
            if answer.error is ErrorCode.FENCED_LEADER_EPOCH:
                self._fail(name, "fenced by a newer leader epoch")
            elif answer.error is not _NONE:
                self._delay(name, state)
            elif state.stage is FetchStage.ASKING_LATEST:
                self._guarded(name, state, self._on_leader_end, answer.offset, 0)
            else:
                self._guarded(name, state, self._on_leader_start, answer.offset, 0)
            if not self.is_running:
                return

    def _on_leader_end(
        self, name: TopicPartition, state: PartitionFetchState, leader_end: int, _unused: int
    ) -> None:
        """The leader is shorter: cut to its end, or exit; else ask where it begins (7.7)."""
        log = _log_of(state.partition)
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
        self._truncate(name, state, leader_end, True)

    def _on_leader_start(
        self, name: TopicPartition, state: PartitionFetchState, leader_start: int, _unused: int
    ) -> None:
        log = _log_of(state.partition)
        if leader_start > log.log_end_offset:
            log.truncate_fully_and_start_at(leader_start)
        state.fetch_offset = log.log_end_offset
        state.last_fetched_epoch = log.latest_epoch
        state.stage = FetchStage.FETCHING
        self._touch(name, state)


def _log_of(partition: Partition) -> Log:
    log = partition.log
    if log is None:
        raise InvariantError(f"{partition.topic_partition} is fetched but has no log")
    return log
