"""Leader election as in Kafka 0.10: one selector per strategy, one partition at a time.

Each partition is read, decided, written and, on a version conflict, read again before the next
one starts, so that the round trips add up; KAFKA-5642 changed this. Writes do not check the
version of the controller epoch. Source: ``PartitionStateMachine.electLeaderForPartition`` of 0.10.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...election.errors import LeaderElectionNotNeeded, NoReplicaOnline, StateChangeFailed
from ...election.selectors import (
    Selection,
    select_for_controlled_shutdown,
    select_for_offline,
    select_for_reassignment,
    select_preferred,
)
from ...election.strategies import (
    ControlledShutdown,
    OfflinePartition,
    PreferredReplica,
    Reassign,
    Strategy,
)
from ...protocol.config import BrokerConfig
from ...protocol.values import (
    NO_LEADER,
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    TopicPartition,
    assembled,
)
from ..zookeeper.client import KafkaZkClient
from ..zookeeper.errors import ControllerMoved, Log
from ..zookeeper.timed_work import LOGGED_PARTITIONS, Work, ignore_work
from .context import ControllerContext
from .request_batch import ControllerBrokerRequestBatch


@assembled
class LegacyElection:
    """Elects leaders with the selectors of 0.10."""

    config: BrokerConfig
    context: ControllerContext
    zk: KafkaZkClient
    batch: ControllerBrokerRequestBatch
    log: Log
    work: Work = ignore_work

    async def elect_leaders(
        self, partitions: Sequence[TopicPartition], strategy: Strategy | None
    ) -> dict[TopicPartition, LeaderAndIsr | Exception]:
        """Return the outcome per partition: its unchanged leadership if no election was needed."""
        outcomes: dict[TopicPartition, LeaderAndIsr | Exception] = {}
        for topic_partition in partitions:
            try:
                outcomes[topic_partition] = await self._elect_leader(topic_partition, strategy)
            except ControllerMoved:
                raise
            except Exception as error:
                outcomes[topic_partition] = error
        return outcomes

    async def _elect_leader(
        self, topic_partition: TopicPartition, strategy: Strategy | None
    ) -> LeaderAndIsr:
        context = self.context
        while True:
            stored = await self._read(topic_partition)
            current = stored.leader_and_isr
            try:
                decided, recipients = await self._select_leader(topic_partition, current, strategy)
            except LeaderElectionNotNeeded:
                return current
            except NoReplicaOnline as error:
                raise StateChangeFailed(
                    f"no leader could be elected for {topic_partition}: {error}"
                ) from error
            # The selector has already incremented the version; the write expects the one read.
            expecting = decided.with_zk_version(current.zk_version)
            update = await self.zk.topics.update_leader_and_isr(
                {topic_partition: expecting}, context.epoch
            )
            if update.to_retry:
                continue
            written = update.finished[topic_partition]
            if isinstance(written, Exception):
                raise written
            self._announce(topic_partition, current, written, recipients)
            return written

    async def _read(self, topic_partition: TopicPartition) -> LeaderIsrAndControllerEpoch:
        stored = await self.zk.topics.get_topic_partition_state(topic_partition)
        if stored is None:
            raise StateChangeFailed(f"there is no leadership of {topic_partition}")
        if stored.controller_epoch > self.context.epoch:
            raise StateChangeFailed(
                f"leadership of {topic_partition} was written by a controller of epoch "
                f"{stored.controller_epoch}, newer than {self.context.epoch}"
            )
        return stored

    async def _select_leader(
        self, topic_partition: TopicPartition, current: LeaderAndIsr, strategy: Strategy | None
    ) -> Selection:
        brokers, topics = self.context.brokers, self.context.topics
        assignment = topics.partition_replica_assignment(topic_partition)
        live_ids = brokers.live_broker_ids
        if isinstance(strategy, OfflinePartition):
            permitted = strategy.allow_unclean or await self._unclean_permitted(
                topic_partition, current
            )
            return select_for_offline(topic_partition, current, assignment, live_ids, permitted)
        if isinstance(strategy, Reassign):
            target = topics.partition_full_replica_assignment(topic_partition).target
            return select_for_reassignment(topic_partition, current, target, live_ids)
        if isinstance(strategy, PreferredReplica):
            cached = topics.partition_leadership_info(topic_partition)
            leader = None if cached is None else cached.leader_and_isr.leader
            return select_preferred(topic_partition, current, assignment, live_ids, leader)
        if isinstance(strategy, ControlledShutdown):
            return select_for_controlled_shutdown(
                topic_partition,
                current,
                assignment,
                brokers.live_or_shutting_down_broker_ids,
                brokers.shutting_down_broker_ids,
            )
        self.log("warn", f"an election without a strategy was requested for {topic_partition}")
        return current, assignment

    async def _unclean_permitted(
        self, topic_partition: TopicPartition, current: LeaderAndIsr
    ) -> bool:
        """Return whether the topic permits unclean election; False, without reading its
        configuration, while an ISR member is alive."""
        live = self.context.brokers.live_broker_ids
        if any(replica in live for replica in current.isr):
            return False
        topic = topic_partition.topic
        configs, failed = await self.zk.admin.get_log_configs((topic,), self.config)
        if failed:
            raise failed[topic]
        return bool(configs[topic]["unclean.leader.election.enable"])

    def _announce(
        self,
        topic_partition: TopicPartition,
        previous: LeaderAndIsr,
        written: LeaderAndIsr,
        recipients: tuple[int, ...],
    ) -> None:
        context = self.context
        is_unclean = written.leader != NO_LEADER and written.leader not in previous.isr
        context.unclean_leader_elections += is_unclean
        leadership = LeaderIsrAndControllerEpoch(written, context.epoch)
        context.topics.put_partition_leadership_info(topic_partition, leadership)
        self.batch.add_leader_and_isr_request_for_brokers(
            recipients,
            topic_partition,
            leadership,
            context.topics.partition_full_replica_assignment(topic_partition),
            is_new=False,
        )
        # Up to 1.0 the controller then logged the leadership of every partition, which takes time.
        self.work(LOGGED_PARTITIONS, len(context.topics.partitions_leadership_info))
