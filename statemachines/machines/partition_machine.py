"""The partition state machine of the controller (docs/kafka/partition-states.md,
docs/kafka/election.md#strategies).

Theory of operation. A partition has one of four states; the table in ``transitions`` lists the
legal transitions. Only transitions to OnlinePartition do more than set the state:

* from New the partition is *initialised*: its state znode is created with the first online
  replica as leader; no strategy plays a role;
* from Online or Offline a leader is *elected*: the stored state is read, a strategy decides, and
  the decision is written if the version is still the one read. After a version conflict the state
  is read and decided again, without limit.

The new leadership goes into the request batch, which is sent at the end of every
``handle_state_changes``. The controller's cache is updated only after a successful write.

Source: Kafka's ``ZkPartitionStateMachine``; before 1.1 selectors decide partition by partition
(``legacy_election``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...election.errors import StateChangeFailed
from ...election.strategies import (
    ControlledShutdown,
    ElectionResult,
    OfflinePartition,
    Reassign,
    Strategy,
    leader_for_controlled_shutdown,
    leader_for_offline,
    leader_for_preferred_replica,
    leader_for_reassign,
)
from ...protocol.config import BrokerConfig
from ...protocol.values import (
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    ReplicaAssignment,
    TopicPartition,
    assembled,
)
from ...protocol.versions import Behaviour
from ...zkfake.messages import ZkCode, ZkResponse, ZooKeeperError
from ..zookeeper.client import KafkaZkClient
from ..zookeeper.errors import ControllerMoved, Log, ignore_log
from ..zookeeper.timed_work import Work, ignore_work
from .context import ControllerContext
from .machine_states import ElectionOutcomes
from .request_batch import ControllerBrokerRequestBatch
from .transitions import PARTITION_PREDECESSORS, PartitionState, describe_illegal

_OFFLINE_OR_NEW = (PartitionState.OFFLINE, PartitionState.NEW)


@assembled
class PartitionStateMachine:
    """State machine that moves partitions between states and elects their leaders.

    ``config`` supplies the broker's default of ``unclean.leader.election.enable``. Only the
    controller's event handlers may call the machine, one at a time.
    """

    config: BrokerConfig
    behaviour: Behaviour
    context: ControllerContext
    zk: KafkaZkClient
    batch: ControllerBrokerRequestBatch
    log: Log = ignore_log
    work: Work = ignore_work

    async def startup(self) -> None:
        """Derive every partition's state from the context, then elect leaders where needed."""
        context = self.context
        for topic_partition in context.topics.all_partitions():
            leadership = context.topics.partition_leadership_info(topic_partition)
            if leadership is None:
                state = PartitionState.NEW
            elif context.brokers.is_replica_online(
                leadership.leader_and_isr.leader, topic_partition
            ):
                state = PartitionState.ONLINE
            else:
                state = PartitionState.OFFLINE
            context.states.put_partition_state(topic_partition, state)
        await self.trigger_online_partition_state_change()

    def shutdown(self) -> None:
        """Drop requests that an interrupted event left in the batch."""
        self.batch.clear()

    async def trigger_online_partition_state_change(
        self, topic: str | None = None
    ) -> ElectionOutcomes:
        """Try to bring every Offline or New partition (of one topic, or all) online.

        Partitions of topics queued for deletion are skipped.
        """
        context = self.context
        partitions = [
            tp
            for tp in context.states.partitions_in_states(_OFFLINE_OR_NEW, topic)
            if not context.topics.is_topic_queued_up_for_deletion(tp.topic)
        ]
        return await self.handle_state_changes(
            partitions, PartitionState.ONLINE, OfflinePartition(allow_unclean=False)
        )

    async def handle_state_changes(
        self,
        partitions: Iterable[TopicPartition],
        target: PartitionState,
        strategy: Strategy | None = None,
    ) -> ElectionOutcomes:
        """Move partitions to a state and send the resulting requests.

        Returns, for target Online only, each *elected* partition's new leadership or the error;
        initialised partitions and illegal transitions are absent. Raises ``ControllerMoved``; any
        other exception is returned as every partition's outcome.
        """
        moving = list(partitions)
        if not moving:
            return {}
        try:
            self.batch.new_batch()
            outcomes = await self._do_handle_state_changes(moving, target, strategy)
            self.batch.send_requests_to_brokers(self.context.epoch)
        except Exception as error:
            self.batch.abandon(f"moving partitions to {target}", error)
            if isinstance(error, ControllerMoved):
                raise
            outcomes = dict.fromkeys(moving, error)
        if target is PartitionState.ONLINE:
            for listener in self.context.states.listeners:
                listener.on_election(strategy, moving, outcomes)
        return outcomes

    async def _do_handle_state_changes(
        self,
        partitions: Sequence[TopicPartition],
        target: PartitionState,
        strategy: Strategy | None,
    ) -> ElectionOutcomes:
        context = self.context
        valid, invalid = context.states.check_valid_partition_state_change(partitions, target)
        for topic_partition in invalid:
            self._log_illegal(topic_partition, target)
        if target is not PartitionState.ONLINE:
            for topic_partition in valid:
                context.states.put_partition_state(topic_partition, target)
            return {}
        uninitialized: list[TopicPartition] = []
        to_elect: list[TopicPartition] = []
        for topic_partition in valid:
            is_new = context.states.partition_state(topic_partition) is PartitionState.NEW
            (uninitialized if is_new else to_elect).append(topic_partition)
        if uninitialized:
            for topic_partition in await self._initialize_leaders(uninitialized):
                context.states.put_partition_state(topic_partition, PartitionState.ONLINE)
        if not to_elect:
            return {}
        outcomes = await self._elect_leaders(to_elect, strategy)
        for topic_partition, outcome in outcomes.items():
            if isinstance(outcome, LeaderAndIsr):
                context.states.put_partition_state(topic_partition, PartitionState.ONLINE)
        return outcomes

    # --- initialisation

    async def _initialize_leaders(
        self, partitions: Sequence[TopicPartition]
    ) -> list[TopicPartition]:
        """Create the first leadership of New partitions and return those that succeeded
        (docs/kafka/partition-states.md#initialisation)."""
        context = self.context
        decisions: dict[TopicPartition, LeaderIsrAndControllerEpoch] = {}
        for topic_partition in partitions:
            replicas = context.topics.partition_replica_assignment(topic_partition)
            online = tuple(
                [r for r in replicas if context.brokers.is_replica_online(r, topic_partition)]
            )
            if not online:
                self._log_failed(
                    topic_partition,
                    StateChangeFailed(
                        f"No assigned replica is alive for partition {topic_partition}: "
                        f"assigned {list(replicas)}, live {list(context.brokers.live_broker_ids)}"
                    ),
                )
                continue
            isr = replicas if online == replicas else online  # share the tuple to save memory
            decisions[topic_partition] = self.zk.topics.shared.first_leadership(isr, context.epoch)
        if not decisions:
            return []
        try:
            answers = await self.zk.topics.create_topic_partition_states_raw(
                decisions, context.epoch_zk_version
            )
        except ControllerMoved:
            raise
        except Exception as error:
            for topic_partition in decisions:
                self._log_failed(topic_partition, error)
            return []
        initialized = []
        for (topic_partition, decision), answer in zip(decisions.items(), answers, strict=True):
            if answer.code != ZkCode.OK:
                self._log_failed(topic_partition, ZooKeeperError(answer.code, answer.path))
                continue
            context.topics.put_partition_leadership_info(topic_partition, decision)
            self.batch.add_leader_and_isr_request_for_brokers(
                decision.leader_and_isr.isr,
                topic_partition,
                decision,
                context.topics.partition_full_replica_assignment(topic_partition),
                is_new=True,
            )
            initialized.append(topic_partition)
        return initialized

    # --- election

    async def _elect_leaders(
        self, partitions: Sequence[TopicPartition], strategy: Strategy | None
    ) -> ElectionOutcomes:
        """Elect leaders, and repeat elections whose write had a version conflict, without limit."""
        if self.behaviour.legacy_selectors:
            from .legacy_election import LegacyElection

            election = LegacyElection(
                self.config, self.context, self.zk, self.batch, self.log, self.work
            )
            outcomes = await election.elect_leaders(partitions, strategy)
        else:
            if strategy is None:
                raise ValueError("an election needs a strategy")
            outcomes = {}
            remaining = partitions
            while remaining:
                finished, remaining = await self._do_elect_leaders(remaining, strategy)
                outcomes.update(finished)
        for topic_partition, outcome in outcomes.items():
            if isinstance(outcome, Exception):
                self._log_failed(topic_partition, outcome)
        return outcomes

    async def _do_elect_leaders(
        self, partitions: Sequence[TopicPartition], strategy: Strategy
    ) -> tuple[ElectionOutcomes, list[TopicPartition]]:
        """Run one round: return (outcomes, partitions whose stored state changed meanwhile)."""
        try:
            answers = await self.zk.topics.get_topic_partition_states_raw(partitions)
        except Exception as error:
            return dict.fromkeys(partitions, error), []
        outcomes: ElectionOutcomes = {}
        stored: list[tuple[TopicPartition, LeaderAndIsr]] = []
        for topic_partition, answer in zip(partitions, answers, strict=True):
            value = self._classify(topic_partition, answer)
            if isinstance(value, LeaderAndIsr):
                stored.append((topic_partition, value))
            else:
                outcomes[topic_partition] = value
        if not stored:
            return outcomes, []
        results = await self._run_strategy(stored, strategy, outcomes)
        decided: dict[TopicPartition, LeaderAndIsr] = {}
        recipients: dict[TopicPartition, tuple[int, ...]] = {}
        for result in results:
            topic_partition = result.topic_partition
            if result.leader_and_isr is None:
                outcomes[topic_partition] = StateChangeFailed(
                    f"Failed to elect leader for partition {topic_partition} under strategy "
                    f"{strategy}"
                )
                continue
            decided[topic_partition] = result.leader_and_isr
            recipients[topic_partition] = result.live_replicas
            self.context.unclean_leader_elections += result.unclean
        update = await self.zk.topics.update_leader_and_isr(
            decided, self.context.epoch, self.context.epoch_zk_version
        )
        for topic_partition, written in update.finished.items():
            if isinstance(written, LeaderAndIsr):
                self._announce(topic_partition, written, recipients[topic_partition])
        outcomes.update(update.finished)
        return outcomes, update.to_retry

    def _classify(
        self, topic_partition: TopicPartition, answer: ZkResponse
    ) -> LeaderAndIsr | Exception:
        """Return the stored leadership to start from, or the error that prevents the election."""
        if answer.code == ZkCode.NONODE:
            return self._missing_state(topic_partition)
        if answer.code != ZkCode.OK:
            return ZooKeeperError(answer.code, answer.path)
        stored = self.zk.topics.shared.leadership(answer)
        if stored is None:
            return self._missing_state(topic_partition)
        if stored.controller_epoch > self.context.epoch:
            return StateChangeFailed(
                f"leadership of {topic_partition} was written by a controller of epoch "
                f"{stored.controller_epoch}: this one, of epoch {self.context.epoch}, must "
                "not change it"
            )
        return stored.leader_and_isr

    def _missing_state(self, topic_partition: TopicPartition) -> StateChangeFailed:
        state = self.context.states.partition_state(topic_partition)
        return StateChangeFailed(f"there is no leadership of {topic_partition} (state {state})")

    async def _run_strategy(
        self,
        stored: Sequence[tuple[TopicPartition, LeaderAndIsr]],
        strategy: Strategy,
        outcomes: ElectionOutcomes,
    ) -> list[ElectionResult]:
        topics, brokers = self.context.topics, self.context.brokers
        assignment_of, is_online = topics.partition_replica_assignment, brokers.is_replica_online
        if isinstance(strategy, OfflinePartition):
            triples = await self._unclean_permissions(stored, strategy.allow_unclean, outcomes)
            recovers = self.behaviour.unclean_leaders_recover
            return leader_for_offline(triples, assignment_of, is_online, recovers)
        if isinstance(strategy, Reassign):
            full_assignment_of = topics.partition_full_replica_assignment
            return leader_for_reassign(
                stored, lambda partition: full_assignment_of(partition).target, is_online
            )
        if isinstance(strategy, ControlledShutdown):
            tells_leaving = self.behaviour.controlled_shutdown_tells_leaving_broker
            return leader_for_controlled_shutdown(
                stored,
                assignment_of,
                lambda replica, partition: is_online(replica, partition, tells_leaving),
                brokers.shutting_down_broker_ids,
            )
        return leader_for_preferred_replica(stored, assignment_of, is_online)

    async def _unclean_permissions(
        self,
        stored: Sequence[tuple[TopicPartition, LeaderAndIsr]],
        allow_unclean: bool,
        outcomes: ElectionOutcomes,
    ) -> list[tuple[TopicPartition, LeaderAndIsr, bool]]:
        """Add to each partition whether it may get a leader from outside its ISR
        (docs/kafka/election.md#unclean-election).

        Topic configurations are read only for partitions whose whole ISR is offline. If reading
        one fails, the topic's partitions are left out, and ``outcomes`` gets the error for each.
        """
        context = self.context
        triples = []
        dead_isr = []
        for topic_partition, value in stored:
            if any(context.brokers.is_replica_online(r, topic_partition) for r in value.isr):
                triples.append((topic_partition, value, False))
            elif allow_unclean:
                triples.append((topic_partition, value, True))
            else:
                dead_isr.append((topic_partition, value))
        if dead_isr:
            topics = dict.fromkeys(topic_partition.topic for topic_partition, _ in dead_isr)
            configs, failed = await self.zk.admin.get_log_configs(topics, self.config)
            for topic_partition, value in dead_isr:
                if topic_partition.topic in failed:
                    outcomes[topic_partition] = failed[topic_partition.topic]
                    continue
                permitted = configs[topic_partition.topic]["unclean.leader.election.enable"]
                triples.append((topic_partition, value, bool(permitted)))
        return triples

    def _announce(
        self, topic_partition: TopicPartition, written: LeaderAndIsr, recipients: tuple[int, ...]
    ) -> None:
        context = self.context
        leadership = LeaderIsrAndControllerEpoch(written, context.epoch)
        assignment: ReplicaAssignment = context.topics.partition_full_replica_assignment(
            topic_partition
        )
        context.topics.put_partition_leadership_info(topic_partition, leadership)
        self.batch.add_leader_and_isr_request_for_brokers(
            recipients, topic_partition, leadership, assignment, is_new=False
        )

    # --- logging

    def _log_illegal(self, topic_partition: TopicPartition, target: PartitionState) -> None:
        current = self.context.states.partition_state(topic_partition)
        self.log(
            "error",
            describe_illegal(
                f"partition {topic_partition}", current, target, PARTITION_PREDECESSORS
            ),
        )

    def _log_failed(self, topic_partition: TopicPartition, error: Exception) -> None:
        current = self.context.states.partition_state(topic_partition)
        self.log(
            "error",
            f"partition {topic_partition} stays in {current} instead of becoming "
            f"{PartitionState.ONLINE}: {error}",
        )
