"""A broker's controller: its parts, its events, and its interface for the rest of the broker
(docs/kafka/controller-state.md#events).

Theory of operation. Every broker process runs one ``KafkaController``; at most one is *active*.
A controller only processes events from one queue, one at a time. Watches, timers, responses and
API calls only add events to it. The flows handle the events:

========================  ==========================================================
``failover``              becoming the controller, and resigning
``broker_changes``        brokers appear, disappear, change; log directories fail
``topic_changes``         topics and partitions appear, and topics are deleted
``reassignment``          replicas move (``legacy_reassignment`` before 2.4)
``elections``             leaders are elected on request
``rebalance``             leaders return to preferred replicas
``controlled_shutdown``   leaders move off a broker before it shuts down
``isr_changes``           in-sync replicas change
``features``              finalised features of the cluster
``producer_ids``          brokers get blocks of producer ids
========================  ==========================================================

Source: Kafka's ``KafkaController``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ...protocol.awaiting import Cancelled
from ...protocol.config import BrokerConfig
from ...protocol.host import Host
from ...protocol.values import BrokerInfo
from ...protocol.versions import Behaviour
from ..machines.context import ControllerContext
from ..machines.machine_states import PartitionListener
from ..machines.partition_machine import PartitionStateMachine
from ..machines.replica_machine import ReplicaStateMachine
from ..machines.request_batch import ControllerBrokerRequestBatch
from ..zookeeper.client import KafkaZkClient
from ..zookeeper.errors import ControllerMoved, Log
from ..zookeeper.timed_work import Work, ignore_work
from . import events
from .active_controller import ActiveController
from .channels import BrokerChannels
from .control_requests import ControlRequests, ResponsesToEvents
from .controller_election import ControllerElection
from .events import ControllerEvent
from .flows.broker_changes import BrokerChanges
from .flows.controlled_shutdown import ControlledShutdownFlow
from .flows.elections import Elections
from .flows.failover import Failover
from .flows.features import Features
from .flows.isr_changes import IsrChanges
from .flows.producer_ids import ProducerIdBlocks
from .flows.reassignment import Reassignments
from .flows.reassignment_flow import ReassignmentFlow
from .flows.rebalance import Rebalance
from .flows.topic_changes import TopicChanges
from .metrics import ControllerMetrics
from .parts import ControllerParts
from .queue import ControllerEventManager, Mailbox
from .registration import BrokerRegistration
from .topic_deletion_manager import DeletionClient, TopicDeletionManager
from .watches import ControllerWatches, SessionWatcher

STATE_CHANGE_HANDLER = "controller-state-change-handler"


class KafkaController:
    """A broker's controller, active or not. Construct it, then ``await startup()``.

    ``broker_info`` returns the data that this broker registers.
    """

    def __init__(
        self,
        *,
        broker_id: int,
        host: Host,
        config: BrokerConfig,
        behaviour: Behaviour,
        zk: KafkaZkClient,
        channels: BrokerChannels,
        mailbox: Mailbox,
        broker_info: Callable[[], BrokerInfo],
        log: Log,
        work: Work = ignore_work,
    ) -> None:
        self.broker_id = broker_id
        self.zk = zk
        self.log = log
        self.active_controller: ActiveController = ActiveController(broker_id)
        self.registration: BrokerRegistration = BrokerRegistration(zk, host, broker_info)
        self.context: ControllerContext = ControllerContext(behaviour, host.state_listener)
        preempts = behaviour.preempt_queued_events
        self.event_manager: ControllerEventManager = ControllerEventManager(
            host, self.process, mailbox, preempt_queued_events=preempts, log=log
        )
        watches = ControllerWatches(zk, self.event_manager)
        responses = ResponsesToEvents(self.event_manager)
        batch, partition_batch, replica_batch = (
            ControllerBrokerRequestBatch(
                broker_id, behaviour, self.context, channels, responses, log
            )
            for _ in range(3)
        )
        self.batch: ControllerBrokerRequestBatch = batch
        requests = ControlRequests(batch, self.context, self.trigger_controller_move)
        self.partition_state_machine: PartitionStateMachine = PartitionStateMachine(
            config, behaviour, self.context, zk, partition_batch, log, work
        )
        self.replica_state_machine: ReplicaStateMachine = ReplicaStateMachine(
            config, behaviour, self.context, zk, replica_batch, log
        )
        topic_deletion = TopicDeletionManager(
            enabled=config["delete.topic.enable"],
            context=self.context,
            replicas=self.replica_state_machine,
            partitions=self.partition_state_machine,
            client=DeletionClient(self.context, zk, watches, requests),
            behaviour=behaviour,
            log=log,
        )
        parts = ControllerParts(
            host=host,
            config=config,
            behaviour=behaviour,
            zk=zk,
            channels=channels,
            broker_info=broker_info,
            log=log,
            active_controller=self.active_controller,
            context=self.context,
            event_manager=self.event_manager,
            watches=watches,
            requests=requests,
            partition_state_machine=self.partition_state_machine,
            replica_state_machine=self.replica_state_machine,
            topic_deletion=topic_deletion,
        )
        self.parts: ControllerParts = parts
        self.metrics: ControllerMetrics = ControllerMetrics(parts)
        self._session_watcher = SessionWatcher(behaviour, self.event_manager)
        self._handlers = self._make_handlers(parts)

    def _make_handlers(
        self, parts: ControllerParts
    ) -> dict[type[ControllerEvent], Callable[[Any], Awaitable[None]]]:
        """Create the flows, and return the handler of each type of event."""
        features = Features(parts)
        topic_changes = TopicChanges(parts)
        reassignments = _reassignment_flow(parts)
        brokers = BrokerChanges(parts, features, reassignments)
        isr_changes = IsrChanges(parts, reassignments)
        elections = Elections(parts)
        self.rebalance: Rebalance = Rebalance(parts, elections)
        failover = Failover(
            parts=parts,
            features=features,
            topic_changes=topic_changes,
            isr_changes=isr_changes,
            reassignments=reassignments,
            elections=elections,
            rebalance=self.rebalance,
        )
        election = ControllerElection(parts, self.registration, failover)
        self.election: ControllerElection = election
        return {
            events.Startup: election.process_startup,
            events.ControllerChange: election.process_controller_change,
            events.Reelect: election.process_reelect,
            events.Expire: election.process_expire,
            events.RegisterBrokerAndReelect: election.process_register_broker_and_reelect,
            events.BrokerChange: brokers.process_broker_change,
            events.BrokerModifications: brokers.process_broker_modifications,
            events.LogDirEventNotification: brokers.process_log_dir_event,
            events.LeaderAndIsrResponseReceived: brokers.process_leader_and_isr,
            events.UpdateMetadataResponseReceived: brokers.process_update_metadata,
            events.ControlledShutdown: ControlledShutdownFlow(parts).process_controlled_shutdown,
            events.TopicChange: topic_changes.process_topic_change,
            events.PartitionModifications: topic_changes.process_partition_modifications,
            events.TopicDeletion: topic_changes.process_topic_deletion,
            events.TopicDeletionStopReplicaResponseReceived: topic_changes.process_stop_replica,
            events.ZkPartitionReassignment: reassignments.process_zk_reassignment,
            events.ApiPartitionReassignment: reassignments.process_api_reassignment,
            events.PartitionReassignmentIsrChange: reassignments.process_isr_change,
            events.ListPartitionReassignments: reassignments.process_list,
            events.AutoPreferredReplicaLeaderElection: self.rebalance.process_rebalance,
            events.ReplicaLeaderElection: elections.process_replica_leader_election,
            events.UncleanLeaderElectionEnable: elections.process_unclean_enable,
            events.TopicUncleanLeaderElectionEnable: elections.process_topic_unclean_enable,
            events.IsrChangeNotification: isr_changes.process_isr_change_notification,
            events.AlterIsrReceived: isr_changes.process_alter_isr,
            events.UpdateFeatures: features.process_update_features,
            events.AllocateProducerIds: ProducerIdBlocks(parts).process_allocate,
        }

    # --- lifecycle

    @property
    def is_active(self) -> bool:
        return self.active_controller.is_this_broker

    @property
    def epoch(self) -> int:
        """Controller epoch of this tenure; 0 while this controller is not active."""
        return self.context.epoch

    @property
    def broker_epoch(self) -> int:
        """Epoch (czxid) of this broker's registration; -1 before it registered."""
        return self.registration.broker_epoch

    async def startup(self) -> None:
        """Start to process events, the first of which takes part in the election."""
        self.zk.requests.client.register_state_change_handler(
            STATE_CHANGE_HANDLER, self._session_watcher
        )
        self.event_manager.put(events.Startup())
        self.event_manager.start()

    async def shutdown(self) -> None:
        """Preempt queued events, finish the current one, then resign (CP-64, CP-65)."""
        self.zk.requests.client.unregister_state_change_handler(STATE_CHANGE_HANDLER)
        await self.event_manager.close()
        self.election.resign()
        self.active_controller.forget()

    def crash(self) -> None:
        """Stop at once without sending anything, as the process is killed."""
        self.event_manager.crash()
        self.rebalance.stop()
        self.active_controller.forget()

    async def trigger_controller_move(self) -> None:
        """Resign and delete ``/controller``, so that all brokers stand for election."""
        await self.election.trigger_controller_move()

    def listen(self, listener: PartitionListener) -> None:
        """Add a listener for the states and elections of the partition state machine."""
        self.context.states.listeners.append(listener)

    # --- processing

    def put(self, event: ControllerEvent) -> None:
        """Queue an event, which is processed when its turn comes."""
        self.event_manager.put(event)

    async def process(self, event: ControllerEvent) -> None:
        """Run an event's handler, and resign if the handler finds that the controller moved."""
        if event.is_for_active and not self.is_active:
            return
        try:
            await self._handlers[type(event)](event)
        except Cancelled:
            raise
        except ControllerMoved as moved:
            self.log("info", f"the controller moved while processing {event.name}: {moved}")
            await self.election.maybe_resign()
        except Exception as error:
            self.log("error", f"error processing event {event.name}: {error!r}")


def _reassignment_flow(parts: ControllerParts) -> ReassignmentFlow:
    if parts.behaviour.reassignment_api:
        return Reassignments(parts)
    from .flows.legacy_reassignment import LegacyReassignments

    return LegacyReassignments(parts)
