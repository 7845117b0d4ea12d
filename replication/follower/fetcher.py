"""The follower's fetcher as a pure state machine (docs/kafka/replica-fetchers.md).

Theory of operation. A fetcher copies some partitions from one leader broker. It has at most one
request in flight: ``next_request`` returns the request to send, and ``on_response`` or
``on_failure`` handles the outcome. A partition is in one of these stages::

    TRUNCATING --- leader's epoch answer ---> FETCHING   ("leader_epoch", or no history yet)
    FETCHING   --- out of range ---> ASKING_LATEST --- leader is longer ---> ASKING_EARLIEST
    ASKING_*   --- answer ---> FETCHING

and may also be delayed by a back-off. Truncation comes first, then out-of-range look-ups, then
fetching. A response is applied only to partitions that are in the stage and at the offset of the
request, and not delayed. The response to a fetch also counts for a partition that was added again
meanwhile, with another leader epoch, if it continues from the same offset.

Two indexes keep the cost of a request proportional to the changes: ``_not_ready`` has the
partitions in another stage than fetching, or delayed; ``_dirty`` has those whose current offset the
leader's fetch session does not know. While partitions are throttled (KIP-73), each request examines
all partitions, as in Kafka, and ``_withheld`` has those that it leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ...protocol.config import BrokerConfig
from ...protocol.data import (
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
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from ...protocol.errors import ErrorCode, FakeKafkaError, InvariantError, KafkaError
from ...protocol.fetch_session_epochs import EPOCH_MAX, INITIAL_EPOCH, next_epoch
from ...protocol.host import Host
from ...protocol.records.batch import whole_batches
from ...protocol.values import TopicPartition
from ...protocol.versions import Behaviour
from ..log.follower_append import append_next
from ..replication_quotas import ReplicationQuota
from .fetch_session_handler import FetchSessionHandler
from .fetch_state import (
    FetcherCallbacks,
    FetcherRequest,
    FetcherResponse,
    FetchStage,
    PartitionFetchState,
    initial_state,
    is_storage_failure,
    log_of,
)
from .truncation import check_only_asked, truncation_offset

if TYPE_CHECKING:
    from ..partition.partition import Partition

_NONE = ErrorCode.NONE
_FETCHING = FetchStage.FETCHING


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
        quota: ReplicationQuota,
    ) -> None:
        self.name: str = name
        self.broker_id: int = broker_id
        self.leader_id: int = leader_id
        self.fetcher_id: int = fetcher_id
        self.on_wake: Callable[[], object] | None = None
        """Called when there may be something to do; set by the actor that runs the loop."""
        self.is_running: bool = True
        """False once stopped or, in 0.10, after a fatal exception; no requests are sent then."""
        self._host = host
        self._behaviour = behaviour
        self._broker_epoch = broker_epoch
        self._callbacks = callbacks
        self._states: dict[TopicPartition, PartitionFetchState] = {}
        self._not_ready: dict[TopicPartition, None] = {}
        """Partitions in another stage than FETCHING, or delayed; a subset of ``_states``."""
        self._dirty: dict[TopicPartition, PartitionFetchState] = {}
        """Partitions that the next fetch has to name; disjoint from ``_not_ready``."""
        self._removed_sent_offsets: dict[TopicPartition, int] = {}
        """Offset last requested from the leader, by partition that stopped fetching since the last
        fetch request."""
        self._restarted: dict[TopicPartition, None] = {}
        """Partitions that fetch with another leader epoch than in the last fetch request."""
        self._quota = quota
        self._throttled_topics = quota.topics
        self._withheld: dict[TopicPartition, None] = {}
        """Throttled partitions not fetched now; disjoint from ``_not_ready`` and ``_dirty``."""
        self._session = FetchSessionHandler(behaviour.fetch_sessions)
        self._delayed_until_ms = 0
        self._backoff_ms: int = config["replica.fetch.backoff.ms"]
        self._wait_ms_max: int = config["replica.fetch.wait.max.ms"]
        self._min_bytes: int = config["replica.fetch.min.bytes"]
        self._max_bytes: int = config["replica.fetch.response.max.bytes"]
        self._partition_max_bytes: int = config["replica.fetch.max.bytes"]
        self._sends_epochs = behaviour.fetch_epoch_fencing
        self._truncates_on_fetch = behaviour.truncation == "fetch"

    # -- tracked partitions -----------------------------------------------------------------

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(self._states)

    def __len__(self) -> int:
        return len(self._states)

    def state(self, topic_partition: TopicPartition) -> PartitionFetchState | None:
        return self._states.get(topic_partition)

    def add(self, partition: Partition, leader_epoch: int, initial_offset: int) -> None:
        """Track a partition; if tracked with the same epoch, its state stays as it is (DP-56)."""
        name = partition.topic_partition
        known = self._states.get(name)
        if known is not None and known.leader_epoch == leader_epoch:
            return
        if known is not None:
            self._remember_sent_offset(name, known)
        state = initial_state(partition, leader_epoch, initial_offset, self._behaviour.truncation)
        if state.stage is _FETCHING and name in self._removed_sent_offsets:
            state.sent_offset = self._removed_sent_offsets.pop(name)
            self._restarted[name] = None
        self._states[name] = state
        self._update_indexes(name, state)
        self._wake()

    def remove(self, names: Iterable[TopicPartition]) -> None:
        """Stop tracking partitions. A pending response is not applied to them, unless they are
        added again before it arrives and continue from the same offset (DP-62)."""
        for name in names:
            state = self._states.pop(name, None)
            if state is None:
                continue
            self._remember_sent_offset(name, state)
            state.report(None)
            self._not_ready.pop(name, None)
            self._dirty.pop(name, None)
            self._withheld.pop(name, None)
            self._session.forget(name)

    def _remember_sent_offset(self, name: TopicPartition, state: PartitionFetchState) -> None:
        """Remember the offset at which a pending response begins."""
        if state.stage is _FETCHING and not state.delayed_until_ms:
            self._removed_sent_offsets[name] = state.sent_offset

    def stop(self) -> None:
        """Send no more requests and ignore late responses."""
        self.is_running = False
        self._wake()

    def log_start_changed(self, topic_partition: TopicPartition) -> None:
        """Let the next fetch inform the leader of a log start that the follower's own retention
        raised."""
        state = self._states.get(topic_partition)
        if (
            state is not None
            and topic_partition not in self._not_ready
            and topic_partition not in self._withheld
        ):
            self._dirty[topic_partition] = state

    def _wake(self) -> None:
        if self.on_wake is not None:
            self.on_wake()

    def _update_indexes(self, name: TopicPartition, state: PartitionFetchState) -> None:
        """Update the indexes for a state that changed."""
        self._withheld.pop(name, None)
        if state.stage is FetchStage.FETCHING and not state.delayed_until_ms:
            self._not_ready.pop(name, None)
            self._session.forgotten.pop(name, None)
            self._dirty[name] = state
        else:
            self._not_ready[name] = None
            self._dirty.pop(name, None)
            self._session.forget(name)
        state.report(self.leader_id)

    def _delay(self, name: TopicPartition, state: PartitionFetchState) -> None:
        """Suspend a partition for the back-off time."""
        state.delayed_until_ms = self._host.now_ms() + self._backoff_ms
        self._update_indexes(name, state)

    # -- requests ---------------------------------------------------------------------------

    def next_request(self) -> FetcherRequest | None:
        """Return the request to send now, or None to wait for ``on_wake`` or ``delay_ms``."""
        if not self.is_running or not self._states:
            return None
        if self._not_ready or self._delayed_until_ms:
            now_ms = self._host.now_ms()
            if now_ms < self._delayed_until_ms:
                return None
            self._delayed_until_ms = 0
            for name in tuple(self._not_ready):
                state = self._states[name]
                if 0 < state.delayed_until_ms <= now_ms:
                    state.delayed_until_ms = 0
                    self._update_indexes(name, state)
            request = self._truncation_request() or self._offsets_request()
            if request is not None:
                return request
            if len(self._not_ready) == len(self._states) or not self.is_running:
                return None
        if (self._throttled_topics or self._withheld) and not self._withhold_throttled():
            return None
        return self._fetch_request()

    def _withhold_throttled(self) -> bool:
        """Withhold throttled partitions that are not in sync while the quota is exceeded; return
        whether there is anything else to fetch (``RemoteLeaderEndPoint.buildFetch``)."""
        quota, withheld = self._quota, self._withheld
        is_exceeded = quota.is_exceeded
        for name, state in self._states.items():
            if name in self._not_ready:
                continue
            if is_exceeded and not state.is_in_sync and quota.is_throttled(name):
                if name not in withheld:
                    withheld[name] = None
                    self._dirty.pop(name, None)
                    self._session.forget(name)
            elif name in withheld:
                del withheld[name]
                self._session.forgotten.pop(name, None)
                self._dirty[name] = state
        rest = len(self._states) - len(self._not_ready) - len(withheld)
        return rest > 0 or bool(self._session.forgotten)

    def delay_ms(self) -> int | None:
        """Return the time in ms until ``next_request`` may have a request without ``on_wake``, or
        None for never."""
        if not self.is_running or not self._states:
            return None
        now_ms = self._host.now_ms()
        if self._delayed_until_ms > now_ms:
            return self._delayed_until_ms - now_ms
        earliest_ms: int | None = None
        for name in self._not_ready:
            until_ms = self._states[name].delayed_until_ms
            if not until_ms:
                return 0
            if earliest_ms is None or until_ms < earliest_ms:
                earliest_ms = until_ms
        if self._withheld:  # examined again after a back-off
            again_ms = now_ms + self._backoff_ms
            earliest_ms = again_ms if earliest_ms is None else min(earliest_ms, again_ms)
        if earliest_ms is None or len(self._not_ready) + len(self._withheld) < len(self._states):
            return 0
        return max(0, earliest_ms - now_ms)

    def _ready(self, stage: FetchStage) -> list[tuple[TopicPartition, PartitionFetchState]]:
        states = self._states
        return [
            (name, state)
            for name in self._not_ready
            if (state := states[name]).stage is stage and not state.delayed_until_ms
        ]

    def _truncation_request(self) -> OffsetForLeaderEpochRequest | None:
        asked = []
        for name, state in self._ready(FetchStage.TRUNCATING):
            latest_epoch = log_of(state.partition).latest_epoch
            if self._behaviour.epoch_cache and latest_epoch >= 0:
                asked.append(
                    OffsetForLeaderEpochPartition(
                        name, latest_epoch, state.leader_epoch if self._sends_epochs else -1
                    )
                )
                state.sent_offset = state.fetch_offset
            else:
                # Without epochs, truncate to what is known to be committed.
                self._guarded(name, state, self._truncate_to, -1, state.fetch_offset)
        return OffsetForLeaderEpochRequest(self.broker_id, tuple(asked)) if asked else None

    def _offsets_request(self) -> ListOffsetsRequest | None:
        for stage, timestamp in (
            (FetchStage.ASKING_LATEST, LATEST_TIMESTAMP),
            (FetchStage.ASKING_EARLIEST, EARLIEST_TIMESTAMP),
        ):
            asked = []
            for name, state in self._ready(stage):
                epoch = state.leader_epoch if self._sends_epochs else -1
                asked.append(ListOffsetsPartition(name, timestamp, epoch))
                state.sent_offset = state.fetch_offset
            if asked:
                return ListOffsetsRequest(self.broker_id, tuple(asked))
        return None

    def _fetch_request(self) -> FetchRequest:
        session = self._session
        session_epoch = session.epoch
        forgotten: tuple[TopicPartition, ...] = ()
        named = self._dirty
        if session_epoch > INITIAL_EPOCH:
            if session.forgotten:
                forgotten = session.take_forgotten()
        else:
            excluded = {**self._not_ready, **self._withheld} if self._withheld else self._not_ready
            named = {name: state for name, state in self._states.items() if name not in excluded}
            session.forget_all()
        wanted: tuple[FetchPartition, ...] = ()
        if named:
            entries = []
            for name, state in named.items():
                log = state.partition.log
                if log is None:
                    log = log_of(state.partition)  # raises
                fetch_offset = state.sent_offset = state.fetch_offset
                log_start_offset = state.sent_log_start_offset = log.log_start_offset
                entries.append(
                    FetchPartition(
                        name,
                        fetch_offset,
                        log_start_offset,
                        self._partition_max_bytes,
                        state.leader_epoch if self._sends_epochs else -1,
                        state.last_fetched_epoch if self._truncates_on_fetch else -1,
                    )
                )
            wanted = tuple(entries)
            if session.is_used:
                session.partitions.update(named)
            self._dirty.clear()
        if self._removed_sent_offsets:
            self._removed_sent_offsets.clear()
        if self._restarted:
            self._restarted.clear()
        broker_epoch = self._broker_epoch
        return FetchRequest(
            self.broker_id,
            self._wait_ms_max,
            self._min_bytes,
            self._max_bytes,
            wanted,
            0,
            session.session_id,
            session_epoch,
            forgotten,
            "",
            broker_epoch(),
        )

    # -- responses --------------------------------------------------------------------------

    def on_response(self, request: FetcherRequest, response: FetcherResponse) -> None:
        """Apply the leader's response to ``request``.

        Raises ``InvariantError`` if it has the end of an epoch for a partition not requested.
        """
        if not self.is_running:
            return
        if not isinstance(request, FetchRequest):
            if isinstance(response, OffsetForLeaderEpochResponse):
                self._on_epoch_response(request, response)  # type: ignore[arg-type]
            else:
                self._on_offsets_response(request, response)  # type: ignore[arg-type]
            return
        self._on_fetch_response(request, response)  # type: ignore[arg-type]

    def _on_fetch_response(self, request: FetchRequest, answers: FetchResponse) -> None:
        if answers.error is not _NONE:
            if not self._session.on_error(answers.error):
                self._delayed_until_ms = self._host.now_ms() + self._backoff_ms
            return
        session = self._session
        if session.is_used:
            if request.session_epoch > INITIAL_EPOCH and answers.session_id:
                epoch = session.epoch
                session.epoch = epoch + 1 if epoch < EPOCH_MAX else next_epoch(epoch)
            else:
                session.begin(answers.session_id)
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
                continue  # removed or restarted elsewhere meanwhile
            if answer.error is _NONE and answer.diverging_epoch is None:
                self._on_fetched(name, state, answer)
            else:
                self._on_refused(name, state, answer)
            if not self.is_running:
                return

    def on_failure(self, request: FetcherRequest) -> None:
        """Back off after a request that was lost or whose leader is unreachable.

        The fetch session starts over, as the leader may or may not have received the request.
        """
        if not self.is_running:
            return
        if isinstance(request, FetchRequest):
            self._session.reset()
        self._delayed_until_ms = self._host.now_ms() + self._backoff_ms

    # -- fetching ---------------------------------------------------------------------------

    def _on_fetched(
        self, name: TopicPartition, state: PartitionFetchState, answer: FetchPartitionResponse
    ) -> None:
        partition = state.partition
        log = partition.log
        batches = answer.records
        high_watermark = answer.high_watermark
        callbacks = self._callbacks
        try:
            if log is None or state.fetch_offset != log.log_end_offset:
                end = None if log is None else log.log_end_offset
                raise InvariantError(
                    f"fetched at offset {state.fetch_offset}, but the log ends at {end}"
                )
            if (
                len(batches) == 1
                and not callbacks.verify_checksums
                and answer.log_start_offset <= log.log_start_offset
                and append_next(log, batches[0], self._host.wall_ms())
            ):  # the usual case of ``append_as_follower``, inlined
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
        if partition.report is not None:
            partition.report.log_moved(log)
        if batches:
            if self._throttled_topics and self._quota.is_throttled(name):
                self._quota.record(sum(len(batch.data) for batch in batches))
            state.fetch_offset = log.log_end_offset
            if self._truncates_on_fetch:  # else not sent to the leader
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
            callbacks.on_appended(name)

    def _on_append_error(
        self, name: TopicPartition, state: PartitionFetchState, error: Exception
    ) -> None:
        if isinstance(error, KafkaError) and error.code in (
            ErrorCode.CORRUPT_MESSAGE,
            ErrorCode.INVALID_RECORD,
        ):
            self._delay(name, state)  # damaged in transit: fetch it again
            return
        is_disk = is_storage_failure(error)  # takes the partition offline, not the thread
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
            self._update_indexes(name, state)
        else:
            self._on_partition_error(name, state, error)

    def _on_partition_error(
        self, name: TopicPartition, state: PartitionFetchState, error: ErrorCode
    ) -> None:
        if error is ErrorCode.FENCED_LEADER_EPOCH and name not in self._restarted:
            self._fail(name, "fenced by a newer leader epoch")
        else:
            self._delay(name, state)

    def _fail(self, name: TopicPartition, reason: str) -> None:
        """Give up a partition until the next LeaderAndIsr."""
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
        """Run an action that may truncate the log; only this partition fails with it (DP-64)."""
        try:
            action(name, state, epoch, offset)
        except (FakeKafkaError, OSError) as error:
            self._fail(name, str(error))
            if is_storage_failure(error):
                self._callbacks.on_storage_failure(name, error)

    def _truncate_to(
        self, name: TopicPartition, state: PartitionFetchState, _epoch: int, offset: int
    ) -> None:
        """Truncate the log and continue fetching from there."""
        self._truncate(name, state, offset, is_finished=True)

    def _truncate(
        self, name: TopicPartition, state: PartitionFetchState, offset: int, is_finished: bool
    ) -> None:
        log = log_of(state.partition)
        log.truncate_to(offset)
        state.partition.report_state()
        state.fetch_offset = log.log_end_offset
        state.last_fetched_epoch = log.latest_epoch
        if is_finished:
            state.stage = FetchStage.FETCHING
        self._update_indexes(name, state)

    def _truncate_by_epoch(
        self, name: TopicPartition, state: PartitionFetchState, epoch: int, end_offset: int
    ) -> None:
        """Truncate the part of the log that the leader does not have."""
        is_fetching = state.stage is FetchStage.FETCHING
        offset, is_finished = truncation_offset(
            log_of(state.partition), state.fetch_offset, is_fetching, epoch, end_offset
        )
        self._truncate(name, state, offset, is_finished)

    def _on_epoch_response(
        self, request: OffsetForLeaderEpochRequest, response: OffsetForLeaderEpochResponse
    ) -> None:
        check_only_asked(request, response)
        for answer in response.partitions:
            name = answer.topic_partition
            state = self._states.get(name)
            if (
                state is None
                or state.stage is not FetchStage.TRUNCATING
                or state.sent_offset != state.fetch_offset
            ):
                continue  # removed, or restarted with another epoch and a new request
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
        """Truncate to the leader's end, or exit, if its log is shorter; else request its log start
        (docs/kafka/replica-fetchers.md#out-of-range)."""
        log = log_of(state.partition)
        if leader_end >= log.log_end_offset:
            state.stage = FetchStage.ASKING_EARLIEST
            state.report(self.leader_id)
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
        """Continue from the log end, or restart the log at the leader's start if that is later."""
        log = log_of(state.partition)
        if leader_start > log.log_end_offset:
            log.truncate_fully_and_start_at(leader_start)
            state.partition.report_state()
        state.fetch_offset = log.log_end_offset
        state.last_fetched_epoch = log.latest_epoch
        state.stage = FetchStage.FETCHING
        self._update_indexes(name, state)
