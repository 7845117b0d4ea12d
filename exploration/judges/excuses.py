"""Where Kafka itself loses or changes records: noted on the way and excused in the end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from sys import maxsize
from typing import Any
from unittest import mock

from ...protocol.control import LeaderAndIsrPartitionState
from ...protocol.data import EpochEndOffset
from ...protocol.records.batch import RecordBatch
from ...protocol.values import ReplicaAssignment, TopicPartition
from ...replication.log.log import Log
from ...replication.partition.partition import Partition
from ...statemachines.machines.known_topics import KnownTopics
from ...testing.simulation import Simulation


class Excuses:
    """Where releases before the KIPs cut wrongly, and what reassignments left without a leader."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self.cut_from: dict[TopicPartition, int] = {}
        """The lowest offset that a follower cut because it was above its high watermark, or where
        a follower differs from its leader because it was not told to cut."""
        self.dropped: dict[TopicPartition, set[int]] = {}
        """Replicas that were being added and that a later request dropped, in sync or not."""
        self.lost_from: dict[TopicPartition, int] = {}
        """Where the log of a leader ended that was elected from outside the ISR for their sake."""

    def is_excused(self, where: TopicPartition, offset: int) -> bool:
        """Whether Kafka itself may lose or change what is at an offset.

        In 0.10 a follower that has it, but not yet the high watermark that covers it, cuts it, and
        may lead next (KIP-101). In 1.1 a follower does not cut what it has of an epoch that its
        leader never heard of (KIP-279). And where the whole ISR was dropped by a reassignment,
        only a leader from outside helps.
        """
        return offset >= min(self.cut_from.get(where, maxsize), self.lost_from.get(where, maxsize))

    @contextlib.contextmanager
    def noting(self) -> Iterator[None]:
        """Note where that happens, as long as this is entered, by one history of the process."""
        flags = self._simulation.behaviour
        with contextlib.ExitStack() as noting:
            noting.enter_context(self._note_drops())
            if flags.truncation == "high_watermark":
                noting.enter_context(self._note_cuts_at_high_watermark())
            elif not flags.epoch_truncation_rounds:
                noting.enter_context(self._note_epochs_unheard_of())
            if flags.epoch_cache and not flags.fetch_epoch_fencing:
                noting.enter_context(self._note_fetches_of_another_epoch())
            yield

    def _note_cuts_at_high_watermark(self) -> contextlib.AbstractContextManager[Any]:
        truncate_to = Log.truncate_to

        def noting(log: Log, offset: int) -> bool:
            if offset == log.high_watermark and offset < log.log_end_offset:
                self._differs_from(log.topic_partition, offset)
            return truncate_to(log, offset)

        return mock.patch.object(Log, "truncate_to", noting)

    def _note_epochs_unheard_of(self) -> contextlib.AbstractContextManager[Any]:
        """``LeaderEpochFileCache.endOffsetFor`` up to 1.1 tells where the next epoch begins that
        the leader knows, though the follower has the one it asks for from an earlier offset on."""
        end_offset_for_epoch = Log.end_offset_for_epoch

        def noting(log: Log, epoch: int) -> EpochEndOffset:
            end = end_offset_for_epoch(log, epoch)
            if all(known != epoch for known, _ in log.epochs):
                for start in self._starts(log.topic_partition, epoch):
                    if start < end.end_offset:
                        self._differs_from(log.topic_partition, start)
            return end

        return mock.patch.object(Log, "end_offset_for_epoch", noting)

    @contextlib.contextmanager
    def _note_fetches_of_another_epoch(self) -> Iterator[None]:
        """Until 2.1 a follower that missed that its leader led no more goes on behind what that
        leader has cut meanwhile: it heard of no epoch since, or only of the one in which its
        leader leads again (KIP-320, ``Partition.makeFollower``)."""
        make_follower = Partition.make_follower
        append_as_follower = Partition.append_as_follower
        going_on: set[Partition] = set()

        def noting_role(partition: Partition, state: LeaderAndIsrPartitionState) -> bool:
            missed = state.leader_epoch > partition.leader_epoch + 1
            starts_anew = make_follower(partition, state)
            if starts_anew:
                going_on.discard(partition)
            elif missed:
                going_on.add(partition)
            return starts_anew

        def noting(partition: Partition, batches: Sequence[RecordBatch], *marks: Any) -> bool:
            log = partition.log
            if log is not None and batches:
                first = batches[0]
                if first.partition_leader_epoch > partition.leader_epoch or partition in going_on:
                    self._note_what_stays(log, first)
            return append_as_follower(partition, batches, *marks)

        with (
            mock.patch.object(Partition, "make_follower", noting_role),
            mock.patch.object(Partition, "append_as_follower", noting),
        ):
            yield

    def _note_what_stays(self, log: Log, first: RecordBatch) -> None:
        """A log is about to grow by what another one has behind the begin of a later epoch."""
        for other in self._logs(log.topic_partition):
            begun = [start for epoch, start in other.epochs if epoch > log.latest_epoch]
            if begun and begun[0] < log.log_end_offset == first.base_offset:
                self._differs_from(log.topic_partition, begun[0])

    def _starts(self, where: TopicPartition, epoch: int) -> Iterator[int]:
        """Where an epoch begins in each log that has it."""
        for log in self._logs(where):
            yield from (start for known, start in log.epochs if known == epoch)

    def _logs(self, where: TopicPartition) -> Iterator[Log]:
        for process in self._simulation.processes.values():
            broker = process.broker
            partition = None if broker is None else broker.replica_manager.hosted.partition(where)
            if partition is not None and partition.log is not None:
                yield partition.log

    def _differs_from(self, where: TopicPartition, offset: int) -> None:
        self.cut_from[where] = min(offset, self.cut_from.get(where, offset))

    def _note_drops(self) -> contextlib.AbstractContextManager[Any]:
        """Note which replicas ``KafkaController.updateCurrentReassignment`` drops again."""
        update = KnownTopics.update_partition_full_replica_assignment

        def noting(
            topics: KnownTopics, where: TopicPartition, assignment: ReplicaAssignment
        ) -> None:
            if topics.has_assignment(where):
                adding = topics.partition_full_replica_assignment(where).adding
                dropped = self.dropped.setdefault(where, set())
                dropped.update(adding)
                dropped.difference_update(assignment.replicas)
            update(topics, where, assignment)

        return mock.patch.object(KnownTopics, "update_partition_full_replica_assignment", noting)
