"""LeaderAndIsr, StopReplica and UpdateMetadata at the broker (docs/kafka/control-requests.md).

All three are fenced by the broker's own epoch and by the highest controller epoch seen in any of
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ..protocol.control import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from ..protocol.errors import ErrorCode, KafkaError
from ..protocol.values import EPOCH_DURING_DELETE, EPOCH_UNKNOWN, TopicPartition
from .follower.manager import FetcherManager, InitialFetchState
from .leader.delayed_requests import DelayedRequests
from .log_dirs import LogDirs
from .partition.hosted_partitions import HostedPartitions
from .storage_failures import StorageFailures

if TYPE_CHECKING:
    from ..protocol.releases.behaviour import Behaviour
    from .partition.metadata_cache import MetadataCache
    from .partition.partition import Partition

_NONE = ErrorCode.NONE
_LENGTH_ADDED_FOR_DELETION = len(".") + 32 + len("-delete")
"""A dot, a UUID and the suffix of ``Log.logDeleteDirName``."""
_FILE_NAME_LENGTH_MAX = 255


class RoleChanges:
    """Requests of the controller: LeaderAndIsr, StopReplica, UpdateMetadata."""

    def __init__(
        self,
        hosted: HostedPartitions,
        delayed: DelayedRequests,
        fetcher_manager: FetcherManager,
        failures: StorageFailures,
        log_dirs: LogDirs,
        broker_epoch: Callable[[], int],
        start_checkpoints: Callable[[], object],
    ) -> None:
        """``start_checkpoints`` is called after each LeaderAndIsr; the first call starts the
        checkpoints of high watermarks."""
        self._hosted = hosted
        self._delayed = delayed
        self._fetcher_manager = fetcher_manager
        self._failures = failures
        self._log_dirs = log_dirs
        self._broker_epoch = broker_epoch
        self._start_checkpoints = start_checkpoints
        self.broker_id: int = hosted.broker_id
        self.behaviour: Behaviour = hosted.behaviour
        self.metadata_cache: MetadataCache = hosted.metadata_cache
        self.controller_epoch: int = 0
        """Highest controller epoch seen in any control request; never goes down."""
        self.is_shutting_down: bool = False
        """True once fetchers must not be started any more."""
        self.on_leadership_change: Callable[[list[Partition], list[Partition]], object] | None = (
            None
        )
        """Called after a LeaderAndIsr with the partitions led here that were not led before, and
        those followed."""

    def _fencing_error(self, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        """Return the error of a request with a stale epoch; remember a newer controller epoch."""
        if broker_epoch != -1 and broker_epoch < self._broker_epoch():
            return ErrorCode.STALE_BROKER_EPOCH
        if controller_epoch < self.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        self.controller_epoch = controller_epoch
        return _NONE

    # -- LeaderAndIsr -----------------------------------------------------------------------

    def become_leader_or_follower(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Take the roles set by the controller (docs/kafka/control-requests.md#taking-roles)."""
        error = self._fencing_error(request.controller_epoch, request.broker_epoch)
        if error is not _NONE:
            partitions: tuple[tuple[TopicPartition, ErrorCode], ...] = ()
            if error is ErrorCode.STALE_CONTROLLER_EPOCH:
                partitions = tuple(
                    (state.topic_partition, error) for state in request.partition_states
                )
            return LeaderAndIsrResponse(error, partitions)
        topic_ids = dict(request.topic_ids)
        errors: dict[TopicPartition, ErrorCode] = {}
        to_lead: list[tuple[Partition, LeaderAndIsrPartitionState]] = []
        to_follow: list[tuple[Partition, LeaderAndIsrPartitionState]] = []
        for state in request.partition_states:
            topic_partition = state.topic_partition
            error, partition = self._classify(topic_partition, state, topic_ids)
            errors[topic_partition] = error
            if error is _NONE and partition is not None:
                leads = state.leader == self.broker_id
                (to_lead if leads else to_follow).append((partition, state))
        leaders = self._make_leaders(to_lead, errors)
        followers = self._make_followers(to_follow, errors)
        if self.behaviour.topic_id_of_stored_log:
            self._persist_topic_ids(topic_ids, to_lead)
            self._persist_topic_ids(topic_ids, to_follow)
        if self.behaviour.replica_without_log_is_offline:
            for topic_partition in errors:
                hosted = self._hosted.by_name.get(topic_partition)
                if hosted is not None and hosted.log is None:
                    self._failures.mark_partition_offline(topic_partition)
        self._start_checkpoints()
        self._log_dirs.resume(partition for partition, _ in (*to_lead, *to_follow))
        self._fetcher_manager.shutdown_idle()
        if self.on_leadership_change is not None and (leaders or followers):
            self.on_leadership_change(leaders, followers)
        return LeaderAndIsrResponse(_NONE, tuple(errors.items()))

    def _classify(
        self,
        topic_partition: TopicPartition,
        state: LeaderAndIsrPartitionState,
        topic_ids: dict[str, str],
    ) -> tuple[ErrorCode, Partition | None]:
        """Return an error or the partition that takes a role; neither if it only gets a topic id.

        These are the first rows of docs/kafka/control-requests.md#leaderandisr. A partition seen
        for the first time is registered.
        """
        if topic_partition in self._hosted.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR, None
        partition = self._hosted.by_name.get(topic_partition)
        if partition is None:
            partition = self._hosted.register(topic_partition)
        topic_id = topic_ids.get(topic_partition.topic, "")
        if topic_id and not self._check_or_set_topic_id(partition, topic_id):
            return ErrorCode.INCONSISTENT_TOPIC_ID, None
        if state.leader_epoch <= partition.leader_epoch:
            if state.leader_epoch == partition.leader_epoch and self._adopt_topic_id(
                partition, topic_id
            ):
                return _NONE, None
            return ErrorCode.STALE_CONTROLLER_EPOCH, None
        if self.broker_id not in state.replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
        return _NONE, partition

    def _check_or_set_topic_id(self, partition: Partition, topic_id: str) -> bool:
        """Return False if the log belongs to a topic with another id
        (docs/kafka/partitions.md#topic-ids).

        2.8 checks only an opened log, and assigns the id if the log has none, which happens with
        the second request for a partition (``Partition.checkOrSetTopicId``). Later releases also
        check the stored log (``Partition.topicId``).
        """
        log = partition.log
        if log is None:
            if not self.behaviour.topic_id_of_stored_log:
                return True
            known = self._hosted.disk.stored_topic_id(partition.topic_partition)
        else:
            known = log.topic_id
            if not known and not self.behaviour.topic_id_of_stored_log:
                log.assign_topic_id(topic_id)
                return True
        return not known or known == topic_id

    def _adopt_topic_id(self, partition: Partition, topic_id: str) -> bool:
        """Assign the topic id of a request without other changes to a log without id, since 3.0.

        Return whether the id was assigned.
        """
        log = partition.log
        if not topic_id or log is None or log.topic_id:
            return False
        if self.behaviour.topic_id_of_stored_log:
            log.assign_topic_id(topic_id)
        return self.behaviour.topic_id_of_stored_log

    def _make_leaders(
        self,
        states: list[tuple[Partition, LeaderAndIsrPartitionState]],
        errors: dict[TopicPartition, ErrorCode],
    ) -> list[Partition]:
        """Become leader of partitions; return those that this broker did not lead before.

        The coordinator of a partition that was led before does not load it again
        (``ReplicaManager.makeLeaders``): the log may have a record that is not replicated yet and
        is lost if the broker dies.
        """
        if not states:
            return []
        self._fetcher_manager.remove_fetchers([p.topic_partition for p, _ in states])
        leaders, new_leaders = [], []
        for partition, state in states:
            try:
                is_new_leader = partition.make_leader(state)
            except (KafkaError, OSError):
                errors[partition.topic_partition] = ErrorCode.KAFKA_STORAGE_ERROR
                self._failures.mark_partition_offline(partition.topic_partition)
                continue
            leaders.append(partition)
            if is_new_leader:
                new_leaders.append(partition)
        for partition in leaders:
            self._delayed.complete(partition)  # fetches that wait with an older epoch
        return new_leaders

    def _make_followers(
        self,
        states: list[tuple[Partition, LeaderAndIsrPartitionState]],
        errors: dict[TopicPartition, ErrorCode],
    ) -> list[Partition]:
        followers = []
        restarting = []
        for partition, state in states:
            try:
                if not self.metadata_cache.is_alive(state.leader):
                    # The leader is unknown: only create the log, so that its high watermark is
                    # still checkpointed. Role and epoch stay.
                    if partition.log is None:
                        name = partition.topic_partition
                        partition.log = self._hosted.open_log(name, state.is_new)
                        partition.report_state()
                    continue
                if partition.make_follower(state):
                    restarting.append(partition)
            except (KafkaError, OSError):
                errors[partition.topic_partition] = ErrorCode.KAFKA_STORAGE_ERROR
                self._failures.mark_partition_offline(partition.topic_partition)
                continue
            followers.append(partition)
        if restarting:
            self._restart_fetchers(restarting, errors)
        return followers

    def _restart_fetchers(
        self, partitions: list[Partition], errors: dict[TopicPartition, ErrorCode]
    ) -> None:
        names = [partition.topic_partition for partition in partitions]
        self._fetcher_manager.remove_fetchers(names)
        if self.behaviour.truncation == "high_watermark":
            self._truncate_to_high_watermarks(partitions, errors)
        for name in names:
            self._delayed.complete_produces_first(name)
        if self.is_shutting_down:
            return
        initial: dict[TopicPartition, InitialFetchState] = {}
        for partition in partitions:
            log = partition.log
            if log is not None and partition.leader_id is not None:
                initial[partition.topic_partition] = InitialFetchState(
                    partition.leader_id, partition.leader_epoch, self._initial_offset(partition)
                )
        self._fetcher_manager.add_fetchers(initial)

    def _initial_offset(self, partition: Partition) -> int:
        log = partition.log
        assert log is not None
        truncation = self.behaviour.truncation
        if truncation == "high_watermark" or (truncation == "fetch" and log.latest_epoch >= 0):
            return log.log_end_offset
        return log.high_watermark

    def _truncate_to_high_watermarks(
        self, partitions: Iterable[Partition], errors: dict[TopicPartition, ErrorCode]
    ) -> None:
        """Truncate followers' logs to their own high watermarks at once, as 0.10 does
        (docs/kafka/replica-fetchers.md#truncation-to-the-high-watermark)."""
        for partition in partitions:
            log = partition.log
            if log is None:
                continue
            try:
                log.truncate_to(log.high_watermark)
                partition.report_state()
            except (KafkaError, OSError):
                errors[partition.topic_partition] = ErrorCode.KAFKA_STORAGE_ERROR
                self._failures.mark_partition_offline(partition.topic_partition)

    def _persist_topic_ids(
        self,
        topic_ids: dict[str, str],
        states: list[tuple[Partition, LeaderAndIsrPartitionState]],
    ) -> None:
        """Write ``partition.metadata`` for logs without one
        (docs/kafka/partitions.md#topic-ids)."""
        for partition, _ in states:
            log = partition.log
            topic_id = topic_ids.get(partition.topic_partition.topic)
            if topic_id and log is not None and not log.topic_id:
                log.assign_topic_id(topic_id)

    # -- StopReplica ------------------------------------------------------------------------

    def stop_replicas(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Stop fetching partitions, and delete them where requested
        (docs/kafka/control-requests.md#what-a-broker-accepts)."""
        error = self._fencing_error(request.controller_epoch, request.broker_epoch)
        if error is not _NONE:
            return StopReplicaResponse(error)
        errors: dict[TopicPartition, ErrorCode] = {}
        to_stop: list[StopReplicaPartitionState] = []
        for state in request.partition_states:
            error = self._stop_refusal(state)
            errors[state.topic_partition] = error
            if error is _NONE:
                to_stop.append(state)
        self._fetcher_manager.remove_fetchers([state.topic_partition for state in to_stop])
        for state in to_stop:
            self._log_dirs.abandon(state.topic_partition, deletes=False)
            if state.delete_partition:
                errors[state.topic_partition] = self._delete_partition(state.topic_partition)
            self._delayed.complete_produces_first(state.topic_partition)
        if any(state.delete_partition for state in to_stop):
            self._delayed.purge()
        self._fetcher_manager.shutdown_idle()
        return StopReplicaResponse(_NONE, tuple(errors.items()))

    def _stop_refusal(self, state: StopReplicaPartitionState) -> ErrorCode:
        topic_partition = state.topic_partition
        if topic_partition in self._hosted.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        partition = self._hosted.by_name.get(topic_partition)
        if partition is None:
            return _NONE
        epoch = state.leader_epoch
        if epoch in (EPOCH_UNKNOWN, EPOCH_DURING_DELETE) or epoch > partition.leader_epoch:
            return _NONE
        if epoch == partition.leader_epoch and self.behaviour.stop_replica_accepts_equal_epoch:
            return _NONE
        return ErrorCode.FENCED_LEADER_EPOCH

    def _delete_partition(self, topic_partition: TopicPartition) -> ErrorCode:
        directory = self._hosted.disk.directory_of(topic_partition)
        if directory is not None and self._cannot_be_renamed(topic_partition):
            self._failures.handle_log_dir_failure(directory)
            return ErrorCode.KAFKA_STORAGE_ERROR
        self._hosted.unregister(topic_partition)
        self._hosted.high_watermarks.pop(topic_partition, None)
        try:
            self._hosted.disk.delete_log(topic_partition)
            self._hosted.disk.delete_future(topic_partition)
        except (KafkaError, OSError):
            self._hosted.offline[topic_partition] = None
            return ErrorCode.KAFKA_STORAGE_ERROR
        return _NONE

    def _cannot_be_renamed(self, topic_partition: TopicPartition) -> bool:
        """Return whether the name of a log is too long to be renamed for its deletion.

        ``LogManager.asyncDelete`` renames the log first; if ``Log.renameDir`` fails, so does the
        log directory.
        """
        if not self.behaviour.long_names_fail_deletion:
            return False
        return len(str(topic_partition)) + _LENGTH_ADDED_FOR_DELETION > _FILE_NAME_LENGTH_MAX

    # -- UpdateMetadata ---------------------------------------------------------------------

    def update_metadata(
        self, request: UpdateMetadataRequest
    ) -> tuple[UpdateMetadataResponse, list[TopicPartition]]:
        """Merge into the metadata cache; also return the partitions announced as deleted."""
        error = self._fencing_error(request.controller_epoch, request.broker_epoch)
        if error is not _NONE:
            return UpdateMetadataResponse(error), []
        return UpdateMetadataResponse(_NONE), self.metadata_cache.update(request)
