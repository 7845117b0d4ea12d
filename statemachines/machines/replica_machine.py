"""The replica state machine of the controller (docs/kafka/replica-states.md).

Theory of operation. Each (partition, broker) has one of seven states; the table in ``transitions``
lists the legal transitions. Most of them send a request to the replica's own broker: its role
(LeaderAndIsr), or to stop the replica or delete its log (StopReplica). OfflineReplica also removes
the broker from the ISR in ZooKeeper, and sets leader -1 if the broker led. The last member of an
ISR stays in it, except before 1.1 with unclean election enabled.

Replicas are handled broker by broker. Each broker's partitions are read, decided and written
separately, so that the loss of several brokers at once raises the leader epoch several times. The
request batch is sent at the end of every ``handle_state_changes``.

Source: Kafka's ``ZkReplicaStateMachine``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...election.errors import StateChangeFailed
from ...protocol.config import BrokerConfig
from ...protocol.host import StateListener
from ...protocol.values import (
    NO_LEADER,
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    PartitionReplica,
    ReplicaAssignment,
    TopicPartition,
    assembled,
)
from ...protocol.versions import Behaviour
from ...zkfake.messages import ZkCode, ZooKeeperError
from ..zookeeper.client import KafkaZkClient
from ..zookeeper.errors import ControllerMoved, Log, ignore_log
from .context import ControllerContext
from .request_batch import ControllerBrokerRequestBatch
from .transitions import ReplicaState, describe_illegal

_Outcomes = dict[TopicPartition, LeaderIsrAndControllerEpoch | Exception]


@assembled
class ReplicaStateMachine:
    """State machine of replicas. Only the controller's handlers may call it, one at a time."""

    config: BrokerConfig
    behaviour: Behaviour
    context: ControllerContext
    zk: KafkaZkClient
    batch: ControllerBrokerRequestBatch
    log: Log = ignore_log

    async def startup(self) -> None:
        """Set every replica's state, send live replicas their roles, and take dead ones offline.

        Before 2.3 dead replicas stayed DeletionIneligible and were not removed from the ISR.
        """
        context = self.context
        online, offline = context.topics.online_and_offline_replicas()
        for by_broker, state in (
            (online, ReplicaState.ONLINE),
            (offline, ReplicaState.DELETION_INELIGIBLE),
        ):
            for broker_id, partitions in by_broker.items():
                states = context.states.replica_states_on_broker(broker_id)
                states.update(dict.fromkeys(partitions, state))
        await self.handle_state_changes_by_broker(online, ReplicaState.ONLINE)
        if self.behaviour.startup_moves_dead_replicas_offline:
            await self.handle_state_changes_by_broker(offline, ReplicaState.OFFLINE)

    def shutdown(self) -> None:
        """Drop requests that an interrupted event left in the batch."""
        self.batch.clear()

    async def handle_state_changes(
        self, replicas: Iterable[PartitionReplica], target: ReplicaState
    ) -> None:
        """Move replicas to a state and send the resulting requests.

        Illegal transitions and failures are logged, and the replicas keep their states. Raises
        ``ControllerMoved``.
        """
        by_broker: dict[int, list[TopicPartition]] = {}
        for topic, partition, broker_id in replicas:
            by_broker.setdefault(broker_id, []).append(TopicPartition(topic, partition))
        await self.handle_state_changes_by_broker(by_broker, target)

    async def handle_state_changes_by_broker(
        self, by_broker: Mapping[int, Sequence[TopicPartition]], target: ReplicaState
    ) -> None:
        """Do the same as ``handle_state_changes`` for replicas grouped by broker.

        Brokers are handled in the order of their ids. The order matters, as the last member of an
        ISR stays in it. Kafka uses the order of a hash table, which is the same for ids up to 3.
        """
        if not by_broker:
            return
        try:
            self.batch.new_batch()
            for broker_id in sorted(by_broker):
                partitions = by_broker[broker_id]
                tell = self.context.state_listener
                before = () if tell is None else self._states(broker_id, partitions)
                await self._do_handle_state_changes(broker_id, partitions, target)
                if tell is not None:
                    self._tell_changes(tell, broker_id, partitions, before)
            self.batch.send_requests_to_brokers(self.context.epoch)
        except Exception as error:
            self.batch.abandon(f"moving replicas to {target}", error)
            if isinstance(error, ControllerMoved):
                raise

    def _states(
        self, broker_id: int, partitions: Sequence[TopicPartition]
    ) -> Sequence[ReplicaState]:
        states = self.context.states.replica_states_on_broker(broker_id)
        return [states.get(partition, ReplicaState.NON_EXISTENT) for partition in partitions]

    def _tell_changes(
        self,
        tell: StateListener,
        broker_id: int,
        partitions: Sequence[TopicPartition],
        before: Sequence[ReplicaState],
    ) -> None:
        """Report the replicas whose state has changed."""
        after = self._states(broker_id, partitions)
        for partition, old, new in zip(partitions, before, after, strict=True):
            if new is not old:
                tell(f"{partition}/replica-{broker_id}/state", old.kafka_name, new.kafka_name)

    async def _do_handle_state_changes(
        self, broker_id: int, partitions: Sequence[TopicPartition], target: ReplicaState
    ) -> None:
        predecessors = self.context.states.replica_predecessors
        legal = predecessors[target]
        states = self.context.states.replica_states_on_broker(broker_id)
        valid = []
        for topic_partition in partitions:
            current = states.get(topic_partition, ReplicaState.NON_EXISTENT)
            if current in legal:
                valid.append(topic_partition)
            else:
                subject = f"replica {broker_id} of {topic_partition}"
                self.log("error", describe_illegal(subject, current, target, predecessors))
        if not valid:
            return
        if target is ReplicaState.NEW:
            await self._transition_to_new(broker_id, valid)
        elif target is ReplicaState.ONLINE:
            self._transition_to_online(broker_id, valid)
        elif target is ReplicaState.OFFLINE:
            await self._transition_to_offline(broker_id, valid)
        elif target is ReplicaState.NON_EXISTENT:
            self._transition_to_non_existent(broker_id, valid)
        else:
            states.update(dict.fromkeys(valid, target))
            if target is ReplicaState.DELETION_STARTED:
                for topic_partition in valid:
                    self.batch.add_stop_replica_request_for_brokers(
                        (broker_id,), topic_partition, delete_partition=True
                    )

    # --- transitions

    async def _transition_to_new(
        self, broker_id: int, partitions: Sequence[TopicPartition]
    ) -> None:
        context = self.context
        states = context.states.replica_states_on_broker(broker_id)
        known: dict[TopicPartition, LeaderIsrAndControllerEpoch]
        if self.behaviour.new_replica_reads_zookeeper:
            known = await self.zk.topics.get_topic_partition_states(partitions)
        else:
            cached = ((tp, context.topics.partition_leadership_info(tp)) for tp in partitions)
            known = {tp: leadership for tp, leadership in cached if leadership is not None}
        for topic_partition in partitions:
            leadership = known.get(topic_partition)
            if leadership is not None and leadership.leader_and_isr.leader == broker_id:
                error = StateChangeFailed("it is the leader, and a leader cannot be new")
                self._log_failed(broker_id, topic_partition, ReplicaState.NEW, error)
                continue
            if leadership is not None:
                self._add_leader_and_isr_request(
                    broker_id, topic_partition, leadership, is_new=True
                )
            states[topic_partition] = ReplicaState.NEW

    def _transition_to_online(self, broker_id: int, partitions: Sequence[TopicPartition]) -> None:
        context = self.context
        states = context.states.replica_states_on_broker(broker_id)
        for topic_partition in partitions:
            if states.get(topic_partition) is ReplicaState.NEW:
                assignment = context.topics.partition_full_replica_assignment(topic_partition)
                if broker_id not in assignment.replicas:
                    self.log(
                        "error",
                        f"replica {broker_id} of {topic_partition} comes online without being "
                        f"assigned to {list(assignment.replicas)}; adding it",
                    )
                    grown = ReplicaAssignment((*assignment.replicas, broker_id))
                    context.topics.update_partition_full_replica_assignment(topic_partition, grown)
            else:
                leadership = context.topics.partition_leadership_info(topic_partition)
                if leadership is not None:
                    self._add_leader_and_isr_request(
                        broker_id, topic_partition, leadership, is_new=False
                    )
            states[topic_partition] = ReplicaState.ONLINE

    async def _transition_to_offline(
        self, broker_id: int, partitions: Sequence[TopicPartition]
    ) -> None:
        context = self.context
        batch = self.batch
        states = context.states.replica_states_on_broker(broker_id)
        with_leadership: list[TopicPartition] = []
        without_leadership: list[TopicPartition] = []
        for topic_partition in partitions:
            # Added before the ISR changes, as the request carries the leader epoch from before.
            batch.add_stop_replica_request_for_brokers(
                (broker_id,), topic_partition, delete_partition=False
            )
            is_led = context.topics.partition_leadership_info(topic_partition) is not None
            (with_leadership if is_led else without_leadership).append(topic_partition)
        shrunk = await self._remove_replica_from_isr(broker_id, with_leadership)
        for topic_partition, outcome in shrunk.items():
            if isinstance(outcome, Exception):
                self._log_failed(broker_id, topic_partition, ReplicaState.OFFLINE, outcome)
                continue
            if not context.topics.is_topic_queued_up_for_deletion(topic_partition.topic):
                assignment = context.topics.partition_full_replica_assignment(topic_partition)
                batch.add_leader_and_isr_request_for_brokers(
                    [replica for replica in assignment.replicas if replica != broker_id],
                    topic_partition,
                    outcome,
                    assignment,
                    is_new=False,
                )
            states[topic_partition] = ReplicaState.OFFLINE
        for topic_partition in without_leadership:
            if self._is_refused_without_leadership(broker_id, topic_partition):
                continue
            batch.add_update_metadata_request_for_brokers(
                context.brokers.live_or_shutting_down_broker_ids, (topic_partition,)
            )
            states[topic_partition] = ReplicaState.OFFLINE

    def _is_refused_without_leadership(
        self, broker_id: int, topic_partition: TopicPartition
    ) -> bool:
        """Return whether the move offline is refused because the partition never had a leader, as
        in 0.10."""
        if not self.behaviour.legacy_selectors:
            return False
        if self.context.topics.is_topic_queued_up_for_deletion(topic_partition.topic):
            return False
        error = StateChangeFailed("its partition has no leadership")
        self._log_failed(broker_id, topic_partition, ReplicaState.OFFLINE, error)
        return True

    def _transition_to_non_existent(
        self, broker_id: int, partitions: Sequence[TopicPartition]
    ) -> None:
        context = self.context
        states = context.states.replica_states_on_broker(broker_id)
        for topic_partition in partitions:
            assignment = context.topics.partition_full_replica_assignment(topic_partition)
            context.topics.update_partition_full_replica_assignment(
                topic_partition, assignment.remove_replica(broker_id)
            )
            states.pop(topic_partition, None)

    def _add_leader_and_isr_request(
        self,
        broker_id: int,
        topic_partition: TopicPartition,
        leadership: LeaderIsrAndControllerEpoch,
        is_new: bool,
    ) -> None:
        self.batch.add_leader_and_isr_request_for_brokers(
            (broker_id,),
            topic_partition,
            leadership,
            self.context.topics.partition_full_replica_assignment(topic_partition),
            is_new,
        )

    # --- leaving the ISR

    async def _remove_replica_from_isr(
        self, broker_id: int, partitions: Sequence[TopicPartition]
    ) -> _Outcomes:
        """Remove a broker from ISRs and return each partition's new leadership, or the error.

        Repeats writes that had a version conflict. Partitions without stored state are absent if
        their topic is queued for deletion.
        """
        outcomes: _Outcomes = {}
        remaining = partitions
        while remaining:
            finished, remaining = await self._do_remove_replica_from_isr(broker_id, remaining)
            outcomes.update(finished)
        return outcomes

    async def _do_remove_replica_from_isr(
        self, broker_id: int, partitions: Sequence[TopicPartition]
    ) -> tuple[_Outcomes, list[TopicPartition]]:
        context = self.context
        outcomes: _Outcomes = {}
        stored = await self._read_states(partitions, outcomes)
        shrunk: dict[TopicPartition, LeaderAndIsr] = {}
        settled: list[tuple[TopicPartition, LeaderAndIsr]] = []
        for topic_partition, value in stored.items():
            if broker_id not in value.isr:
                settled.append((topic_partition, value))
                continue
            isr = value.isr
            if len(isr) > 1 or await self._may_empty_isr(topic_partition):
                isr = tuple([replica for replica in isr if replica != broker_id])
            leader = NO_LEADER if value.leader == broker_id else value.leader
            shrunk[topic_partition] = LeaderAndIsr(
                leader, value.leader_epoch + 1, isr, value.zk_version, value.is_recovering
            )
        update = await self.zk.topics.update_leader_and_isr(
            shrunk, context.epoch, context.epoch_zk_version
        )
        for topic_partition, written in update.finished.items():
            if isinstance(written, Exception):
                outcomes[topic_partition] = written
            else:
                settled.append((topic_partition, written))
        for topic_partition, value in settled:
            leadership = LeaderIsrAndControllerEpoch(value, context.epoch)
            context.topics.put_partition_leadership_info(topic_partition, leadership)
            outcomes[topic_partition] = leadership
        return outcomes, update.to_retry

    async def _read_states(
        self, partitions: Sequence[TopicPartition], outcomes: _Outcomes
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """Return the stored leadership that may be changed; failures go into ``outcomes``."""
        context = self.context
        try:
            answers = await self.zk.topics.get_topic_partition_states_raw(partitions)
        except Exception as error:
            outcomes.update(dict.fromkeys(partitions, error))
            return {}
        found: dict[TopicPartition, LeaderAndIsr] = {}
        for topic_partition, answer in zip(partitions, answers, strict=True):
            stored = self.zk.topics.shared.leadership(answer) if answer.code == ZkCode.OK else None
            if answer.code not in (ZkCode.OK, ZkCode.NONODE):
                outcomes[topic_partition] = ZooKeeperError(answer.code, answer.path)
            elif stored is None:
                if not context.topics.is_topic_queued_up_for_deletion(topic_partition.topic):
                    outcomes[topic_partition] = StateChangeFailed(
                        f"there is no leadership of {topic_partition} in ZooKeeper"
                    )
            elif stored.controller_epoch > context.epoch:
                outcomes[topic_partition] = StateChangeFailed(
                    f"leadership of {topic_partition} was written by a controller of epoch "
                    f"{stored.controller_epoch}, newer than {context.epoch}"
                )
            else:
                found[topic_partition] = stored.leader_and_isr
        return found

    async def _may_empty_isr(self, topic_partition: TopicPartition) -> bool:
        """Return whether the last member may leave the ISR: only before 1.1 and with unclean
        election enabled."""
        if self.behaviour.last_isr_member_always_kept:
            return False
        topic = topic_partition.topic
        configs, failed = await self.zk.admin.get_log_configs((topic,), self.config)
        return not failed and bool(configs[topic]["unclean.leader.election.enable"])

    def _log_failed(
        self,
        broker_id: int,
        topic_partition: TopicPartition,
        target: ReplicaState,
        error: Exception,
    ) -> None:
        current = self.context.states.replica_state_on(broker_id, topic_partition)
        self.log(
            "error",
            f"replica {broker_id} of {topic_partition} stays in {current} instead of becoming "
            f"{target}: {error}",
        )
