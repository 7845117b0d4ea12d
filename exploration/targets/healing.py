"""Healing the cluster of a history, as an operator would, until it is whole."""

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
"""Virtual time a healed cluster has to be whole again: producers may retry for 120 s of it."""
_LOAD_AFTER_HEALING_MS = 3000


class Healing:
    """Undoes every fault and waits; helps where Kafka needs an operator."""

    def __init__(self, target: Target, load: Load) -> None:
        self._target = target
        self._world = target.world
        self._simulation = target.world.simulation
        self._load = load
        self._known = target.known
        self._mended: set[int] = set()
        """Brokers that were started at the end."""
        self._helped: dict[str, tuple[str, str]] = {}  # promise -> what was lacking, its name
        self._missed = "KAFKA-1120"
        self._controller_moves = 0
        """The number of times the controller was moved because of brokers that it had missed."""
        self.restarted: set[TopicPartition] = set()
        """Partitions for whose sake their leader was restarted."""
        self._restarted_followers: set[int] = set()
        """Brokers that were restarted because they copied no more."""
        self.relieved: set[TopicPartition] = set()
        """Partitions for whose sake the controller was moved."""

    def run(self) -> bool:
        """Undo every fault, as an operator would, and wait until the cluster is whole; whether it
        became so. Where an operator had to help, the promise was broken, which is told."""
        simulation = self._simulation
        self._world.end_faults()
        simulation.run_for(_LOAD_AFTER_HEALING_MS)
        self._load.sends = False
        limit_ms = simulation.now_ms + SETTLE_MS
        while True:
            self._mend_brokers()
            lacking = self._target.lacking()
            if lacking is None or simulation.now_ms >= limit_ms:
                break
            promise, _ = lacking
            if simulation.now_ms >= limit_ms - SETTLE_MS / 2:
                self._relieve_controller()
            if simulation.now_ms >= limit_ms - SETTLE_MS * 0.9 and promise != "BrokersRun":
                self._relieve_partitions()
            if simulation.now_ms >= limit_ms - SETTLE_MS / 4 and promise == "IsrWhole":
                self._relieve_high_watermarks()
                self._relieve_leaders()
                self._relieve_fetchers()
            simulation.run_for(500)
        for helped, (text, name) in self._helped.items():
            self._target.tell_lacking(helped, text, name)
        if lacking is not None:
            waited_s = SETTLE_MS / 1000
            text = f"not {waited_s:g} s after the last fault: {lacking[1]}"
            self._target.tell_lacking(lacking[0], text)
        return lacking is None

    def _note_help(self, name: str) -> None:
        """Note that an operator helps, and how the reason is called: what helped last for a promise
        is what it was broken by."""
        lacking = self._target.lacking()
        if lacking is not None:
            self._helped[lacking[0]] = (lacking[1], name)

    def _mend_brokers(self) -> None:
        simulation = self._simulation
        for broker_id, process in simulation.processes.items():
            handle = simulation.broker(broker_id)
            disk = process.spec.disk
            if disk.offline_dirs and handle.is_alive:  # what was in them is found at the next start
                if handle.state == "running":
                    handle.begin_shutdown()
                continue
            if not handle.is_alive:
                self._world.repair(broker_id)
                if broker_id in self._mended:  # it ended by itself
                    self._discard_cut_partitions(broker_id, disk)
                self._mended.add(broker_id)
                handle.start(wait=False)

    def _discard_cut_partitions(self, broker_id: int, disk: Any) -> None:
        """Help a broker of 0.10 that holds more than a leader that has cut its log (KIP-101).

        It ends itself at each start, because it may not cut what it has
        (``ReplicaFetcherThread.handleOffsetOutOfRange``)."""
        if self._simulation.behaviour.truncation != "high_watermark":
            return  # it was shut down here, to be helped otherwise
        for where in sorted(self._known.notes):
            if broker_id not in self._stored_isr(where) and disk.stored(where) is not None:
                disk.delete_log(where)
                self._note_help("KIP-101 (divergence)")

    def _stored_isr(self, where: TopicPartition) -> list[int]:
        """The ISR that ZooKeeper has."""
        path = znode_paths.topic_partition_state_path(where)
        isr: list[int] = json.loads(self._simulation.zookeeper.get(path) or b"{}").get("isr", [])
        return isr

    def _relieve_controller(self) -> None:
        """Have the controller move where Kafka needs that, as operators did.

        It cannot create what is there: it lost the answer to its write, and takes the partition
        for a new one (``PartitionStateMachine.initializeLeaderAndIsrForPartition``). And before
        brokers had epochs it missed that a broker had gone and come, and told it nothing
        (KAFKA-1120).
        """
        simulation = self._simulation
        if simulation.controller.id is None:
            return
        # 0.10.1 tells brokers who lives after it has told them whom to follow (KAFKA-4443).
        needed = 1 if simulation.behaviour.failover_announces_brokers_first else 2
        if not simulation.behaviour.broker_epochs and self._controller_moves < needed:
            if not self._controller_moves and self._follows_nobody():
                self._missed = "KAFKA-4443"
            self._controller_moves += 1
            self._note_help(self._missed)
            self.relieved.update(self._world.main)
            simulation.controller.resign()
            return
        context = simulation.running.require_controller().context
        for where, state in context.states.partition_states.items():
            if state is PartitionState.NEW and where not in self.relieved:
                self.relieved.add(where)
                if znode_paths.topic_partition_state_path(where) in simulation.zookeeper.tree():
                    self._note_help("unanswered create")
                    simulation.controller.resign()
                    return

    def _follows_nobody(self) -> bool:
        """Return whether a broker was told to follow one of whom it had not heard: until 0.10.1 it
        makes the log, and forgets the rest."""
        if self._simulation.behaviour.failover_announces_brokers_first:
            return False
        return any(
            partition is not None and partition.log is not None and partition.leader_id is None
            for where in self._world.main
            for partition in (self._world.hosted(b, where) for b in self._simulation.broker_ids)
        )

    def _relieve_partitions(self) -> None:
        """Give partitions a leader that lost theirs because a reassignment dropped it.

        ``KafkaController.updateCurrentReassignment`` stops replicas that an earlier request was
        adding and a later one does not want, even when one of them leads, or when nobody else is
        in sync. The partition then has no leader, but counts as online: no election comes, until
        the controller moves. Where the ISR names dropped replicas only, no election helps as long
        as these live, not even an unclean one
        (``PartitionStateMachine.collectUncleanLeaderElectionState``).
        """
        simulation = self._simulation
        for where in sorted(self._known.dropped):
            if simulation.controller.id is None:
                return
            context = simulation.running.require_controller().context
            leadership = context.topics.partition_leadership_info(where)
            if leadership is None or leadership.leader_and_isr.leader != NO_LEADER:
                continue
            isr = leadership.leader_and_isr.isr
            if self._known.dropped[where].issuperset(isr):
                self._elect_without(where, isr)
            elif where not in self.relieved:
                self.relieved.add(where)
                self._note_help("dropped in sync")
                simulation.controller.resign()
                return

    def _elect_without(self, where: TopicPartition, brokers: tuple[int, ...]) -> None:
        """Elect from outside the ISR while its brokers are down; what the leader lacks is lost."""
        simulation = self._simulation
        self._note_help("dropped in sync")
        for broker_id in brokers:
            if simulation.broker(broker_id).state == "running":
                simulation.broker(broker_id).begin_shutdown()

        def they_are_gone() -> bool:
            if simulation.controller.id is None:
                return False
            known = simulation.running.require_controller().context
            return not any(b in known.brokers.live_or_shutting_down_broker_ids for b in brokers)

        simulation.run_until(they_are_gone)
        simulation.elect_leaders("unclean", [where])
        view = simulation.partition(*where)
        if view.leader is not None:
            replica = view.replica(view.leader)
            since = [start for epoch, start in replica.epochs if epoch >= view.leader_epoch]
            end = min(since, default=replica.log_end_offset)
            self._known.note(where, end, "dropped in sync")

    def _relieve_high_watermarks(self) -> None:
        """Write to partitions whose high watermark a follower was told while it did not listen.

        A follower that is about to truncate ignores what the answer to an earlier fetch says of
        the partition, and the leader takes it for told (docs/kafka/fetch-sessions.md#answers).
        The next record brings the high watermark along.
        """
        flags = self._simulation.behaviour
        if not flags.fetch_sessions or flags.truncation != "leader_epoch":
            return
        for topic in self._world.topics():
            for view in self._world.views(topic):
                replicas = [view.replica(broker_id) for broker_id in view.replicas]
                ends = {replica.log_end_offset for replica in replicas}
                if len(ends) == 1 and any(r.high_watermark not in ends for r in replicas):
                    self._note_help("truncating deaf")
                    self._simulation.produce(topic, b"relief", partition=view.partition)

    def _relieve_leaders(self) -> None:
        """Restart a leader that changes its ISR no more until it hears of another leader epoch.

        It knows an older version of its partition than ZooKeeper has: the ISR was written, and the
        answer to that was lost. A later controller tells it the same epoch: before 2.7 each of its
        writes fails (KAFKA-2729), since then its change counts as under way. So does a change that
        was refused for good by a controller that was none any more
        (docs/kafka/isr.md#changes-through-the-controller).
        """
        for topic in self._world.topics():
            for view in self._world.views(topic):
                where = TopicPartition(topic, view.partition)
                path = znode_paths.topic_partition_state_path(where)
                if view.leader is None or where in self.restarted:
                    continue
                partition = self._world.hosted(view.leader, where)
                if partition is None:
                    continue
                flags = self._simulation.behaviour
                updater = partition.context.isr_updater
                if isinstance(updater, AlterIsrManager) and where in updater.pending:
                    continue  # it asks, and will hear
                if partition.partition_epoch < self._simulation.zookeeper.stat(path).version:
                    name = "unanswered AlterIsr" if flags.alter_isr else "KAFKA-2729"
                elif flags.alter_isr and partition.pending_isr is not None:
                    name = "refused AlterIsr"
                else:
                    continue
                self.restarted.add(where)
                self._note_help(name)
                self._simulation.broker(view.leader).begin_shutdown()
                return

    def _relieve_fetchers(self) -> None:
        """Restart a broker that copies no more, as its log differs from its leader's (KIP-320).

        It missed that its leader led no more for a while and cut its log. What the leader sends
        since then begins inside a batch of the leader, below the end of the broker's own log. The
        append fails (``Log.append``), and until 2.2 the thread ends with all its partitions
        (``AbstractFetcherThread.processFetchRequest``). No request of the same leader epoch starts
        another one.
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
                self._note_help("KIP-320")
                self._simulation.broker(broker_id).begin_shutdown()
                return

    def _differs_from_leader(self, broker_id: int, where: TopicPartition) -> bool:
        """Return whether a log goes on in its last epoch after its leader has ended that."""
        leader = self._world.leader(*where)
        own = self._world.hosted(broker_id, where)
        its = None if leader is None else self._world.hosted(leader, where)
        if own is None or own.log is None or its is None or its.log is None:
            return False
        ends = its.log.end_offset_for_epoch(own.log.latest_epoch)
        return ends.end_offset < own.log.log_end_offset
