"""Healing the cluster of a history, as an operator would, until it has recovered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ...protocol import znode_paths
from ...protocol.values import NO_LEADER, TopicPartition
from ...replication.partition.isr_updaters import AlterIsrManager
from ...statemachines.machines.transitions import PartitionState
from ..worlds.load import Load

if TYPE_CHECKING:
    from .target import Target

SETTLE_MS = 400_000
"""Virtual time in milliseconds for a cluster to recover; producers may retry for 120 s of it."""
_LOAD_AFTER_HEALING_MS = 3000


class Healing:
    """Undoes every fault and waits for recovery; helps where Kafka needs an operator."""

    def __init__(self, target: Target, load: Load) -> None:
        self._target = target
        self._world = target.world
        self._simulation = target.world.simulation
        self._load = load
        self._defects = target.defects
        self._started_brokers: set[int] = set()
        """Brokers that were started during the healing."""
        self._interventions: dict[str, tuple[str, str]] = {}
        """Promise -> (why it was not kept, name of the defect that made the help necessary)."""
        self._controller_defect = "KAFKA-1120"
        self._controller_moves = 0
        """Number of controller moves for brokers whose restart the controller had missed."""
        self.restarted_leaders: set[TopicPartition] = set()
        """Partitions whose leader was restarted to change their ISR."""
        self._restarted_followers: set[int] = set()
        """Brokers that were restarted because their fetchers had stopped."""
        self.controller_moved_for: set[TopicPartition] = set()
        """Partitions for which the controller was moved."""

    def run(self) -> bool:
        """Undo every fault and wait until the cluster has recovered; return True if it has.

        If the help of an operator was needed, the promise counts as broken and is reported.
        """
        simulation = self._simulation
        self._world.end_faults()
        simulation.run_for(_LOAD_AFTER_HEALING_MS)
        self._load.sends = False
        limit_ms = simulation.now_ms + SETTLE_MS
        while True:
            self._recover_brokers()
            unmet = self._target.first_unmet()
            if unmet is None or simulation.now_ms >= limit_ms:
                break
            promise, _ = unmet
            if simulation.now_ms >= limit_ms - SETTLE_MS / 2:
                self._move_controller_if_stuck()
            if simulation.now_ms >= limit_ms - SETTLE_MS * 0.9 and promise != "BrokersRun":
                self._replace_dropped_leaders()
            if simulation.now_ms >= limit_ms - SETTLE_MS / 4 and promise == "IsrWhole":
                self._propagate_high_watermarks()
                self._restart_leader_with_stuck_isr()
                self._restart_failed_fetcher()
            simulation.run_for(500)
        for promise, (text, name) in self._interventions.items():
            self._target.report_unmet(promise, text, name)
        if unmet is not None:
            waited_s = SETTLE_MS / 1000
            text = f"not {waited_s:g} s after the last fault: {unmet[1]}"
            self._target.report_unmet(unmet[0], text)
        return unmet is None

    def _record_intervention(self, name: str) -> None:
        """Record that an operator helps, with the name of the reason.

        The last reason recorded for a promise counts as the one that broke it.
        """
        unmet = self._target.first_unmet()
        if unmet is not None:
            self._interventions[unmet[0]] = (unmet[1], name)

    def _recover_brokers(self) -> None:
        simulation = self._simulation
        for broker_id, process in simulation.processes.items():
            handle = simulation.broker(broker_id)
            disk = process.spec.disk
            if disk.offline_dirs and handle.is_alive:  # it finds their content at the next start
                if handle.state == "running":
                    handle.begin_shutdown()
                continue
            if not handle.is_alive:
                self._world.repair(broker_id)
                if broker_id in self._started_brokers:  # it halted or was shut down again
                    self._delete_diverged_logs(broker_id, disk)
                self._started_brokers.add(broker_id)
                handle.start(wait=False)

    def _delete_diverged_logs(self, broker_id: int, disk: Any) -> None:
        """Help a broker of 0.10 that has more records than a leader that truncated (KIP-101).

        Such a broker halts after each start, because it must not truncate its own log
        (``ReplicaFetcherThread.handleOffsetOutOfRange``).
        """
        if self._simulation.behaviour.truncation != "high_watermark":
            return  # the healing itself shut it down, for another kind of help
        for where in sorted(self._defects.caveats):
            if broker_id not in self._stored_isr(where) and disk.stored(where) is not None:
                disk.delete_log(where)
                self._record_intervention("KIP-101 (divergence)")

    def _stored_isr(self, where: TopicPartition) -> list[int]:
        """Return the ISR stored in ZooKeeper."""
        path = znode_paths.topic_partition_state_path(where)
        isr: list[int] = json.loads(self._simulation.zookeeper.get(path) or b"{}").get("isr", [])
        return isr

    def _move_controller_if_stuck(self) -> None:
        """Move the controller to another broker where Kafka needs that, as operators did.

        One reason is a partition that the controller considers new because it lost the answer to
        its write, and cannot create as its znode exists
        (``PartitionStateMachine.initializeLeaderAndIsrForPartition``). The other, before broker
        epochs, is that the controller missed the restart of a broker and sent it no state
        (KAFKA-1120).
        """
        simulation = self._simulation
        if simulation.controller.id is None:
            return
        # 0.10.1 announces the live brokers only after the leaders to follow (KAFKA-4443).
        needed = 1 if simulation.behaviour.failover_announces_brokers_first else 2
        if not simulation.behaviour.broker_epochs and self._controller_moves < needed:
            if not self._controller_moves and self._has_follower_of_unknown_leader():
                self._controller_defect = "KAFKA-4443"
            self._controller_moves += 1
            self._record_intervention(self._controller_defect)
            self.controller_moved_for.update(self._world.main)
            simulation.controller.resign()
            return
        context = simulation.running.require_controller().context
        for where, state in context.states.partition_states.items():
            if state is PartitionState.NEW and where not in self.controller_moved_for:
                self.controller_moved_for.add(where)
                if znode_paths.topic_partition_state_path(where) in simulation.zookeeper.tree():
                    self._record_intervention("unanswered create")
                    simulation.controller.resign()
                    return

    def _has_follower_of_unknown_leader(self) -> bool:
        """Return True if a broker was told to follow a leader unknown to it.

        Until 0.10.1, such a broker creates the log and ignores the rest of the request.
        """
        if self._simulation.behaviour.failover_announces_brokers_first:
            return False
        return any(
            partition is not None and partition.log is not None and partition.leader_id is None
            for where in self._world.main
            for partition in (self._world.hosted(b, where) for b in self._simulation.broker_ids)
        )

    def _replace_dropped_leaders(self) -> None:
        """Elect leaders for partitions whose leader was dropped by a reassignment.

        ``KafkaController.updateCurrentReassignment`` stops replicas that an earlier request was
        adding and a later one omits, even if one of them leads or no other replica is in sync. The
        partition then has no leader but counts as online, so no election takes place until the
        controller moves. If the ISR consists of dropped replicas, no election succeeds while they
        are alive, not even an unclean one
        (``PartitionStateMachine.collectUncleanLeaderElectionState``).
        """
        simulation = self._simulation
        for where in sorted(self._defects.dropped):
            if simulation.controller.id is None:
                return
            context = simulation.running.require_controller().context
            leadership = context.topics.partition_leadership_info(where)
            if leadership is None or leadership.leader_and_isr.leader != NO_LEADER:
                continue
            isr = leadership.leader_and_isr.isr
            if self._defects.dropped[where].issuperset(isr):
                self._elect_outside_isr(where, isr)
            elif where not in self.controller_moved_for:
                self.controller_moved_for.add(where)
                self._record_intervention("dropped in sync")
                simulation.controller.resign()
                return

    def _elect_outside_isr(self, where: TopicPartition, brokers: tuple[int, ...]) -> None:
        """Elect a leader outside the ISR while the ISR's brokers are down.

        Records that the new leader lacks are lost.
        """
        simulation = self._simulation
        self._record_intervention("dropped in sync")
        for broker_id in brokers:
            if simulation.broker(broker_id).state == "running":
                simulation.broker(broker_id).begin_shutdown()

        def are_brokers_offline() -> bool:
            if simulation.controller.id is None:
                return False
            context = simulation.running.require_controller().context
            return not any(b in context.brokers.live_or_shutting_down_broker_ids for b in brokers)

        simulation.run_until(are_brokers_offline)
        simulation.elect_leaders("unclean", [where])
        view = simulation.partition(*where)
        if view.leader is not None:
            replica = view.replica(view.leader)
            epoch_starts = [start for epoch, start in replica.epochs if epoch >= view.leader_epoch]
            end = min(epoch_starts, default=replica.log_end_offset)
            self._defects.add_caveat(where, end, "dropped in sync")

    def _propagate_high_watermarks(self) -> None:
        """Write to partitions in which a follower missed the last high watermark.

        A follower that is about to truncate ignores a partition in the response to an earlier
        fetch, while the leader considers the high watermark delivered
        (docs/kafka/fetch-sessions.md#answers). The next record brings the high watermark with it.
        """
        flags = self._simulation.behaviour
        if not flags.fetch_sessions or flags.truncation != "leader_epoch":
            return
        for topic in self._world.topics():
            for view in self._world.views(topic):
                replicas = [view.replica(broker_id) for broker_id in view.replicas]
                ends = {replica.log_end_offset for replica in replicas}
                if len(ends) == 1 and any(r.high_watermark not in ends for r in replicas):
                    self._record_intervention("missed high watermark")
                    self._simulation.produce(topic, b"relief", partition=view.partition)

    def _restart_leader_with_stuck_isr(self) -> None:
        """Restart a leader that cannot change its ISR until it gets a new leader epoch.

        The leader knows an older version of the partition's state than ZooKeeper, because its ISR
        was written but the answer was lost, and a later controller sends it the same epoch. Before
        2.7, each of its writes fails (KAFKA-2729); since then, its change remains pending. So does
        a change that a former controller has refused for good
        (docs/kafka/isr.md#changes-through-the-controller).
        """
        for topic in self._world.topics():
            for view in self._world.views(topic):
                where = TopicPartition(topic, view.partition)
                path = znode_paths.topic_partition_state_path(where)
                if view.leader is None or where in self.restarted_leaders:
                    continue
                partition = self._world.hosted(view.leader, where)
                if partition is None:
                    continue
                flags = self._simulation.behaviour
                updater = partition.context.isr_updater
                if isinstance(updater, AlterIsrManager) and where in updater.pending:
                    continue  # its request is under way, and will be answered
                if partition.partition_epoch < self._simulation.zookeeper.stat(path).version:
                    name = "unanswered AlterIsr" if flags.alter_isr else "KAFKA-2729"
                elif flags.alter_isr and partition.pending_isr is not None:
                    name = "refused AlterIsr"
                else:
                    continue
                self.restarted_leaders.add(where)
                self._record_intervention(name)
                self._simulation.broker(view.leader).begin_shutdown()
                return

    def _restart_failed_fetcher(self) -> None:
        """Restart a broker that stopped fetching as its log differs from its leader's (KIP-320).

        The broker missed that its leader did not lead for a while, and that the leader truncated
        its log meanwhile. The leader's responses then begin with a batch that starts below the end
        of the broker's own log. The append fails (``Log.append``), and until 2.2 the fetcher thread
        ends with all its partitions (``AbstractFetcherThread.processFetchRequest``). No request of
        the same leader epoch starts another thread.
        """
        flags = self._simulation.behaviour
        if flags.fetch_epoch_fencing or not flags.epoch_cache:
            return
        for broker_id, process in self._simulation.processes.items():
            broker = process.broker
            if broker is None or broker_id in self._restarted_followers:
                continue
            failed = broker.replica_manager.fetcher_manager.failed_partitions
            if any(self._differs_from_leader(broker_id, where) for where in failed):
                self._restarted_followers.add(broker_id)
                self._record_intervention("KIP-320")
                self._simulation.broker(broker_id).begin_shutdown()
                return

    def _differs_from_leader(self, broker_id: int, where: TopicPartition) -> bool:
        """Return True if a broker's log has records in its last epoch beyond that epoch's end in
        the leader's log."""
        leader = self._world.leader(*where)
        own = self._world.hosted(broker_id, where)
        at_leader = None if leader is None else self._world.hosted(leader, where)
        if own is None or own.log is None or at_leader is None or at_leader.log is None:
            return False
        ends = at_leader.log.end_offset_for_epoch(own.log.latest_epoch)
        return ends.end_offset < own.log.log_end_offset
