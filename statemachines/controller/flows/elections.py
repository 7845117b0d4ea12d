"""Leader elections on request (docs/kafka/election.md)."""

from __future__ import annotations

from collections.abc import Sequence

from ....election.errors import LeaderElectionNotNeeded, StateChangeFailed
from ....election.strategies import OfflinePartition, PreferredReplica, Strategy
from ....protocol.control import PREFERRED
from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.values import NO_LEADER, LeaderAndIsr, TopicPartition
from ...machines.transitions import PartitionState
from ...zookeeper.errors import ControllerMoved
from ..events import (
    ElectionOutcomes,
    ElectionTrigger,
    ReplicaLeaderElection,
    TopicUncleanLeaderElectionEnable,
    UncleanLeaderElectionEnable,
    not_controller_outcomes,
)
from ..parts import ControllerParts

_Results = dict[TopicPartition, "LeaderAndIsr | Exception"]


class Elections:
    """Runs elections requested by API or znode, and those after unclean election is enabled."""

    def __init__(self, parts: ControllerParts) -> None:
        self._parts = parts

    async def resume_pending(self) -> None:
        """Run the elections pending in ``/admin/preferred_replica_election``, at failover.

        The znode is deleted and an event queued even if none is pending, which arms the watch.
        """
        parts = self._parts
        context = parts.context
        requested = await parts.zk.admin.get_preferred_replica_election()
        pending = [
            tp
            for tp in requested
            if (replicas := context.topics.partition_replica_assignment(tp))
            and self._leader_of(tp) != replicas[0]
            and not parts.topic_deletion.is_topic_queued_up_for_deletion(tp.topic)
        ]
        await self.on_replica_election(pending, PREFERRED, ElectionTrigger.ZK_TRIGGERED)

    async def on_replica_election(
        self,
        partitions: Sequence[TopicPartition],
        election_type: int,
        trigger: ElectionTrigger,
        unknown: Sequence[TopicPartition] = (),
    ) -> _Results:
        """Elect leaders and return, per partition, the new leadership or the error
        (docs/kafka/election.md#elections-on-request)."""
        parts = self._parts
        strategy: Strategy = PreferredReplica()
        if election_type != PREFERRED:
            is_admin = trigger is ElectionTrigger.ADMIN_CLIENT_TRIGGERED
            strategy = OfflinePartition(allow_unclean=is_admin)
        topics = dict.fromkeys(tp.topic for tp in partitions)
        blocks_deletion = parts.behaviour.preferred_election_blocks_deletion
        if blocks_deletion:
            parts.topic_deletion.mark_topic_ineligible_for_deletion(
                topics, "preferred replica election in progress"
            )
        try:
            results = await parts.partition_state_machine.handle_state_changes(
                partitions, PartitionState.ONLINE, strategy
            )
            if trigger is not ElectionTrigger.ADMIN_CLIENT_TRIGGERED:
                self._log_failures(results)
        finally:
            if trigger is not ElectionTrigger.ADMIN_CLIENT_TRIGGERED:
                await self._after_preferred_election((*unknown, *partitions), trigger)
        if blocks_deletion:
            await parts.topic_deletion.resume_deletion_for_topics(topics)
        return results

    def _log_failures(self, results: _Results) -> None:
        for topic_partition, outcome in results.items():
            if isinstance(outcome, ControllerMoved):
                raise outcome
            if isinstance(outcome, LeaderElectionNotNeeded):
                continue
            if isinstance(outcome, Exception):
                self._parts.log("error", f"no election for {topic_partition}: {outcome}")

    async def _after_preferred_election(
        self, partitions: Sequence[TopicPartition], trigger: ElectionTrigger
    ) -> None:
        parts = self._parts
        for topic_partition in partitions:
            leader = self._leader_of(topic_partition)
            preferred = parts.context.topics.partition_replica_assignment(topic_partition)[0]
            if leader != preferred:
                parts.log(
                    "warn", f"{topic_partition} is not led by its preferred replica {preferred}"
                )
        if trigger is ElectionTrigger.ZK_TRIGGERED:
            await parts.zk.admin.delete_preferred_replica_election(parts.context.epoch_zk_version)
            parts.event_manager.put(ReplicaLeaderElection(None))

    def _leader_of(self, topic_partition: TopicPartition) -> int:
        """Return the cached leader; raises ``LookupError`` without leadership, as in Kafka."""
        leadership = self._parts.context.topics.partition_leadership_info(topic_partition)
        if leadership is None:
            raise LookupError(f"{topic_partition} has no leadership")
        return leadership.leader_and_isr.leader

    async def process_replica_leader_election(self, event: ReplicaLeaderElection) -> None:
        """Elect leaders and answer, per partition, with the new leader or the error
        (docs/kafka/election.md#elections-on-request).

        As in Kafka, a known partition without leadership makes this raise, without any answer.
        """
        parts = self._parts
        if not parts.is_active:
            if event.callback is not None:
                event.callback(not_controller_outcomes(event.partitions))
            return
        if (
            event.trigger is not ElectionTrigger.ADMIN_CLIENT_TRIGGERED
            and not await parts.watches.watch_preferred_election()
        ):
            return
        requested: Sequence[TopicPartition]
        if event.partitions is None:
            requested = await parts.zk.admin.get_preferred_replica_election()
        else:
            requested = event.partitions
        outcomes: ElectionOutcomes = {}
        electable: list[TopicPartition] = []
        skips_validation = not parts.behaviour.elections_by_znode_checked
        for topic_partition in requested:
            ineligibility = self._ineligibility(topic_partition, event.election_type)
            if ineligibility is None or (
                skips_validation and ineligibility[0] == ErrorCode.ELECTION_NOT_NEEDED
            ):
                electable.append(topic_partition)
            elif (
                ineligibility[0] == ErrorCode.ELECTION_NOT_NEEDED
                and not parts.behaviour.election_not_needed_error
            ):
                outcomes[topic_partition] = ErrorCode.NONE, None
            else:
                outcomes[topic_partition] = ineligibility
        unknown: list[TopicPartition] = []
        if skips_validation:
            has_assignment = parts.context.topics.has_assignment
            unknown = [tp for tp in requested if not has_assignment(tp)]
        results = await self.on_replica_election(
            electable, event.election_type, event.trigger, unknown
        )
        for topic_partition, outcome in results.items():
            outcomes[topic_partition] = _api_outcome(outcome, event.election_type)
        if event.callback is not None:
            event.callback(outcomes)

    def _ineligibility(
        self, topic_partition: TopicPartition, election_type: int
    ) -> tuple[ErrorCode, str | None] | None:
        parts = self._parts
        context = parts.context
        if not context.topics.has_assignment(topic_partition):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist."
        if parts.topic_deletion.is_topic_queued_up_for_deletion(topic_partition.topic):
            return ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted"
        leader = self._leader_of(topic_partition)
        if election_type == PREFERRED:
            is_needed = leader != context.topics.partition_replica_assignment(topic_partition)[0]
        else:
            is_needed = leader == NO_LEADER or leader not in context.brokers.live_broker_ids
        if is_needed:
            return None
        return ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."

    # --- unclean election was enabled

    async def process_unclean_enable(self, _event: UncleanLeaderElectionEnable) -> None:
        """Try again to elect leaders for all New and Offline partitions."""
        await self._parts.partition_state_machine.trigger_online_partition_state_change()

    async def process_topic_unclean_enable(self, event: TopicUncleanLeaderElectionEnable) -> None:
        """Try again to elect leaders for the topic's New and Offline partitions."""
        machine = self._parts.partition_state_machine
        await machine.trigger_online_partition_state_change(event.topic)


def _api_outcome(
    outcome: LeaderAndIsr | Exception, election_type: int
) -> tuple[ErrorCode, str | int | None]:
    if isinstance(outcome, LeaderAndIsr):
        return ErrorCode.NONE, outcome.leader
    if isinstance(outcome, StateChangeFailed):
        if election_type == PREFERRED:
            return ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, str(outcome)
        return ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, str(outcome)
    if isinstance(outcome, ControllerMoved):
        return ErrorCode.STALE_CONTROLLER_EPOCH, str(outcome)
    code = outcome.code if isinstance(outcome, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
    return code, str(outcome)
