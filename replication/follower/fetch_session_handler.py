"""What a follower's fetcher tracks, and the request it owes its leader next
(docs/kafka/replica-fetchers.md#threads).

``ReplicaFetcher`` adds what answers do. Two indexes keep the cost of a request proportional to
what changed: ``_busy`` holds the partitions that are not plainly fetching, ``_dirty`` those of
which the leader's fetch session does not know the current position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ...protocol.config import BrokerConfig
from ...protocol.data import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochPartition,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from ...protocol.errors import InvariantError
from ...protocol.fetch_session_epochs import FINAL_EPOCH, INITIAL_EPOCH
from ...protocol.host import Host
from ...protocol.values import TopicPartition
from ...protocol.versions import Behaviour
from .fetch_state import FetcherCallbacks, FetchStage, PartitionFetchState

if TYPE_CHECKING:
    from ..log.log import Log
    from ..partition.partition import Partition

FetcherRequest = FetchRequest | OffsetForLeaderEpochRequest | ListOffsetsRequest
FetcherResponse = FetchResponse | OffsetForLeaderEpochResponse | ListOffsetsResponse


class FetchTracking:
    """The partitions of one fetcher and the next request about them."""

    __slots__ = (
        "_backoff_ms",
        "_behaviour",
        "_broker_epoch",
        "_busy",
        "_callbacks",
        "_delayed_until_ms",
        "_dirty",
        "_forgotten",
        "_max_bytes",
        "_min_bytes",
        "_now_ms",
        "_partition_max_bytes",
        "_sends_epochs",
        "_session",
        "_session_epoch",
        "_session_id",
        "_states",
        "_truncates_on_fetch",
        "_uses_sessions",
        "_wait_ms_max",
        "broker_id",
        "fetcher_id",
        "is_running",
        "leader_id",
        "name",
        "on_wake",
    )

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
        self._now_ms = host.now_ms
        self._behaviour = behaviour
        self._broker_epoch = broker_epoch
        self._callbacks = callbacks
        self._states: dict[TopicPartition, PartitionFetchState] = {}
        self._busy: dict[TopicPartition, None] = {}
        """Partitions in another stage than FETCHING, or delayed; a subset of ``_states``."""
        self._dirty: dict[TopicPartition, PartitionFetchState] = {}
        """Partitions the next fetch has to name; disjoint from ``_busy``."""
        self._session: dict[TopicPartition, object] = {}
        """Partitions in the leader's session once the request under way arrived."""
        self._forgotten: dict[TopicPartition, None] = {}
        """Partitions of the session that it must not answer any more."""
        self._delayed_until_ms = 0
        self._backoff_ms: int = config["replica.fetch.backoff.ms"]
        self._wait_ms_max: int = config["replica.fetch.wait.max.ms"]
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
        """Track a partition; one tracked with the same epoch stays as it is (DP-56)."""
        name = partition.topic_partition
        known = self._states.get(name)
        if known is not None and known.leader_epoch == leader_epoch:
            return
        log = log_of(partition)
        stage = FetchStage.TRUNCATING
        offset = initial_offset
        last_fetched_epoch = -1
        if initial_offset < 0:
            stage = FetchStage.ASKING_LATEST
            offset = log.log_end_offset
        elif self._behaviour.truncation == "high_watermark":
            stage = FetchStage.FETCHING  # was cut to its high watermark already
        elif self._truncates_on_fetch and log.latest_epoch >= 0:
            stage = FetchStage.FETCHING
            offset = log.log_end_offset
            last_fetched_epoch = log.latest_epoch
        state = PartitionFetchState(partition, offset, leader_epoch, stage)
        state.last_fetched_epoch = last_fetched_epoch
        self._states[name] = state
        self._touch(name, state)
        self._wake()

    def remove(self, names: Iterable[TopicPartition]) -> None:
        """Stop tracking; an answer under way will not be applied to them."""
        for name in names:
            if self._states.pop(name, None) is None:
                continue
            self._busy.pop(name, None)
            self._dirty.pop(name, None)
            if name in self._session:
                self._forgotten[name] = None

    def stop(self) -> None:
        """Ask nothing more; a late answer is ignored."""
        self.is_running = False
        self._wake()

    def log_start_changed(self, topic_partition: TopicPartition) -> None:
        """The follower's own retention raised its log start: the leader is to be told."""
        state = self._states.get(topic_partition)
        if state is not None and topic_partition not in self._busy:
            self._dirty[topic_partition] = state

    def _wake(self) -> None:
        if self.on_wake is not None:
            self.on_wake()

    def _touch(self, name: TopicPartition, state: PartitionFetchState) -> None:
        """Keep the indexes in step with a state that changed."""
        if state.stage is FetchStage.FETCHING and not state.delayed_until_ms:
            self._busy.pop(name, None)
            self._forgotten.pop(name, None)
            self._dirty[name] = state
        else:
            self._busy[name] = None
            self._dirty.pop(name, None)
            if name in self._session:
                self._forgotten[name] = None

    def _delay(self, name: TopicPartition, state: PartitionFetchState) -> None:
        """Leave a partition alone for the back-off time."""
        state.delayed_until_ms = self._now_ms() + self._backoff_ms
        self._touch(name, state)

    # -- requests ---------------------------------------------------------------------------

    def next_request(self) -> FetcherRequest | None:
        """What to ask the leader now; None: wait for ``on_wake`` or ``delay_ms``."""
        if not self.is_running or not self._states:
            return None
        if self._busy or self._delayed_until_ms:
            now_ms = self._now_ms()
            if now_ms < self._delayed_until_ms:
                return None
            self._delayed_until_ms = 0
            for name in tuple(self._busy):
                state = self._states[name]
                if 0 < state.delayed_until_ms <= now_ms:
                    state.delayed_until_ms = 0
                    self._touch(name, state)
            request = self._truncation_request() or self._offsets_request()
            if request is not None:
                return request
            if len(self._busy) == len(self._states) or not self.is_running:
                return None
        return self._fetch_request()

    def delay_ms(self) -> int | None:
        """Milliseconds until ``next_request`` may answer differently by itself; None: never."""
        if not self.is_running or not self._states:
            return None
        now_ms = self._now_ms()
        if self._delayed_until_ms > now_ms:
            return self._delayed_until_ms - now_ms
        earliest_ms: int | None = None
        for name in self._busy:
            until_ms = self._states[name].delayed_until_ms
            if not until_ms:
                return 0
            if earliest_ms is None or until_ms < earliest_ms:
                earliest_ms = until_ms
        if earliest_ms is None or len(self._busy) < len(self._states):
            return 0
        return max(0, earliest_ms - now_ms)

    def _ready(self, stage: FetchStage) -> list[tuple[TopicPartition, PartitionFetchState]]:
        ready = [(name, self._states[name]) for name in self._busy]
        return [
            (name, state)
            for name, state in ready
            if state.stage is stage and not state.delayed_until_ms
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
                self._truncate_without_history(name, state)
        return OffsetForLeaderEpochRequest(self.broker_id, tuple(asked)) if asked else None

    def _truncate_without_history(self, name: TopicPartition, state: PartitionFetchState) -> None:
        raise NotImplementedError

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
        session_epoch = self._session_epoch
        forgotten: tuple[TopicPartition, ...] = ()
        named = self._dirty
        if session_epoch > INITIAL_EPOCH:
            if self._forgotten:
                forgotten = tuple(self._forgotten)
                self._forgotten.clear()
                for name in forgotten:
                    del self._session[name]
        else:
            self._forgotten.clear()
            busy = self._busy
            named = {name: state for name, state in self._states.items() if name not in busy}
            self._session.clear()
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
            if self._uses_sessions:
                self._session.update(named)
            self._dirty.clear()
        broker_epoch = self._broker_epoch
        return FetchRequest(
            self.broker_id,
            self._wait_ms_max,
            self._min_bytes,
            self._max_bytes,
            wanted,
            0,
            self._session_id,
            session_epoch,
            forgotten,
            "",
            broker_epoch(),
        )

    def _reset_session(self) -> None:
        """The next fetch is a full one; it names the old session, so that the leader closes it."""
        self._session.clear()
        self._forgotten.clear()
        if self._uses_sessions:
            self._session_epoch = INITIAL_EPOCH


def log_of(partition: Partition) -> Log:
    """The log of a partition that is being copied."""
    log = partition.log
    if log is None:
        raise InvariantError(f"{partition.topic_partition} is fetched but has no log")
    return log
