"""The controller: who is it, what becomes of its events (docs/kafka/controller-state.md#events,
docs/kafka/controller-failover.md).

Theory of operation. Every broker process runs one ``KafkaController``; at most one is *active*.
All it does is process events from one queue, one at a time. Watches, timers, responses and API
calls only put events. What an event does is in the flow it belongs to:

========================  ==========================================================
``failover``              becoming and ceasing to be the controller
``broker_changes``        brokers come, go, change; log directories fail
``topic_changes``         topics and partitions appear
``topic_deletion``        topics go
``reassignment``          replicas move (``legacy_reassignment`` before 2.4)
``elections``             leaders are elected because someone asked
``rebalance``             leaders return to preferred replicas
``controlled_shutdown``   leaders leave a broker that asks for it
``isr_changes``           in-sync replicas change
``features``              finalised features of the cluster
========================  ==========================================================

Source: Kafka's ``KafkaController``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from ...protocol.awaiting import Cancelled, Task
from ...protocol.config import BrokerConfig
from ...protocol.control import AlterIsrRequest, AlterIsrResponse
from ...protocol.host import Host
from ...protocol.values import BrokerInfo, TopicPartition
from ...protocol.versions import Behaviour
from ..broker.registration import BrokerRegistration
from ..machines.context import ControllerContext
from ..machines.partition_machine import PartitionStateMachine
from ..machines.replica_machine import ReplicaStateMachine
from ..machines.request_batch import ControllerBrokerRequestBatch
from ..zookeeper.client import KafkaZkClient
from ..zookeeper.errors import ControllerMoved, IllegalState, Log
from ..zookeeper.timed_work import Work, ignore_work
from . import events
from .channels import BrokerChannels
from .events import ControllerEvent
from .flows.broker_changes import BrokerChanges
from .flows.controlled_shutdown import ControlledShutdownFlow
from .flows.elections import Elections
from .flows.failover import Failover
from .flows.features import Features
from .flows.isr_changes import IsrChanges
from .flows.legacy_reassignment import LegacyReassignments
from .flows.reassignment import Reassignments
from .flows.rebalance import Rebalance
from .flows.topic_changes import TopicChanges
from .flows.topic_deletion import ControllerDeletionClient, TopicDeletionFlow, TopicDeletionManager
from .metrics import ControllerMetrics
from .queue import ControllerEventManager
from .responses import ResponsesToEvents
from .session import SessionWatcher
from .watches import ControllerWatches

NO_CONTROLLER = -1
STATE_CHANGE_HANDLER = "controller-state-change-handler"


class KafkaController:
    """One broker's controller, active or not. Construct it, ``await startup()``.

    ``zk_client`` is the client below ``zk``; ``broker_info`` tells what this broker registers.
    """

    def __init__(
        self,
        *,
        broker_id: int,
        host: Host,
        config: BrokerConfig,
        behaviour: Behaviour,
        zk: KafkaZkClient,
        zk_client: Any,
        channels: BrokerChannels,
        broker_info: Callable[[], BrokerInfo],
        log: Log,
        work: Work = ignore_work,
    ) -> None:
        self.broker_id = broker_id
        self.host = host
        self.config = config
        self.behaviour = behaviour
        self.zk = zk
        self.zk_client = zk_client
        self.channels = channels
        self.broker_info = broker_info
        self.log = log
        self.broker_epoch = -1
        """Epoch (czxid) of this broker's own registration; -1 before it registered."""
        self.active_controller_id = NO_CONTROLLER
        """Broker last seen in ``/controller``."""
        self.registration = BrokerRegistration(self)
        self.context = ControllerContext(behaviour)
        self.event_manager = ControllerEventManager(
            host, self, preempt_queued_events=behaviour.preempt_queued_events, log=log
        )
        self.watches = ControllerWatches(zk, self.event_manager)
        responses = ResponsesToEvents(self.event_manager)
        self.batch, partition_batch, replica_batch = (
            ControllerBrokerRequestBatch(
                broker_id, behaviour, self.context, channels, responses, log
            )
            for _ in range(3)
        )
        self.partition_state_machine = PartitionStateMachine(
            config, behaviour, self.context, zk, partition_batch, log, work
        )
        self.replica_state_machine = ReplicaStateMachine(
            config, behaviour, self.context, zk, replica_batch, log
        )
        self.topic_deletion = TopicDeletionManager(
            enabled=config["delete.topic.enable"],
            context=self.context,
            replica_state_machine=self.replica_state_machine,
            partition_state_machine=self.partition_state_machine,
            client=ControllerDeletionClient(self),
            behaviour=behaviour,
            log=log,
        )
        self.features = Features(self)
        self.broker_changes = BrokerChanges(self)
        self.topic_changes = TopicChanges(self)
        self.deletion_flow = TopicDeletionFlow(self)
        self.reassignments: Reassignments | LegacyReassignments = (
            Reassignments(self) if behaviour.reassignment_api else LegacyReassignments(self)
        )
        self.elections = Elections(self)
        self.rebalance = Rebalance(self)
        self.controlled_shutdown_flow = ControlledShutdownFlow(self)
        self.isr_changes = IsrChanges(self)
        self.failover = Failover(self)
        self.metrics = ControllerMetrics(self)
        self._handlers = self._make_handlers()
        self._loop: Task[None] | None = None

    def _make_handlers(self) -> dict[type[ControllerEvent], Callable[[Any], Awaitable[None]]]:
        return {
            events.Startup: self._process_startup,
            events.ControllerChange: self._process_controller_change,
            events.Reelect: self._process_reelect,
            events.Expire: self._process_expire,
            events.RegisterBrokerAndReelect: self._process_register_broker_and_reelect,
            events.BrokerChange: self.broker_changes.process_broker_change,
            events.BrokerModifications: self.broker_changes.process_broker_modifications,
            events.LogDirEventNotification: self.broker_changes.process_log_dir_event,
            events.LeaderAndIsrResponseReceived: self.broker_changes.process_leader_and_isr,
            events.UpdateMetadataResponseReceived: self.broker_changes.process_update_metadata,
            events.ControlledShutdown: self.controlled_shutdown_flow.process_controlled_shutdown,
            events.TopicChange: self.topic_changes.process_topic_change,
            events.PartitionModifications: self.topic_changes.process_partition_modifications,
            events.TopicDeletion: self.deletion_flow.process_topic_deletion,
            events.TopicDeletionStopReplicaResponseReceived: (
                self.deletion_flow.process_stop_replica_response
            ),
            events.ZkPartitionReassignment: self.reassignments.process_zk_reassignment,
            events.ApiPartitionReassignment: self.reassignments.process_api_reassignment,
            events.PartitionReassignmentIsrChange: self.reassignments.process_isr_change,
            events.ListPartitionReassignments: self.reassignments.process_list,
            events.AutoPreferredReplicaLeaderElection: self.rebalance.process_rebalance,
            events.ReplicaLeaderElection: self.elections.process_replica_leader_election,
            events.UncleanLeaderElectionEnable: self.elections.process_unclean_enable,
            events.TopicUncleanLeaderElectionEnable: self.elections.process_topic_unclean_enable,
            events.IsrChangeNotification: self.isr_changes.process_isr_change_notification,
            events.AlterIsrReceived: self.isr_changes.process_alter_isr,
            events.UpdateFeatures: self.features.process_update_features,
        }

    # --- life

    @property
    def is_active(self) -> bool:
        return self.active_controller_id == self.broker_id

    @property
    def epoch(self) -> int:
        """Controller epoch of this tenure, 0 when not active."""
        return self.context.epoch

    async def startup(self) -> None:
        """Take part in the election; the broker calls it once it has registered."""
        self.zk.register_state_change_handler(STATE_CHANGE_HANDLER, SessionWatcher(self))
        self.event_manager.put(events.Startup())
        self._loop = Task(self.event_manager.run())

    async def shutdown(self) -> None:
        """Preempt queued events, finish the one in hand, resign (CP-64, CP-65)."""
        self.zk.unregister_state_change_handler(STATE_CHANGE_HANDLER)
        await self.event_manager.close()
        self.resign()
        self.active_controller_id = NO_CONTROLLER

    def crash(self) -> None:
        """The process is killed: stop wherever it is, send nothing."""
        if self._loop is not None:
            self._loop.cancel()
        self.rebalance.stop()
        self.active_controller_id = NO_CONTROLLER

    # --- the face to the local broker

    def controlled_shutdown(
        self, broker_id: int, broker_epoch: int, callback: events.ControlledShutdownCallback
    ) -> None:
        """Move leaders off a broker; the callback gets what it still leads, or an exception."""
        self.event_manager.put(events.ControlledShutdown(broker_id, broker_epoch, callback))

    def elect_leaders(
        self,
        partitions: Iterable[TopicPartition] | None,
        election_type: int,
        callback: events.ElectionCallback,
    ) -> None:
        """Elect because an admin client asked; None means every partition known here."""
        chosen = self.context.all_partitions() if partitions is None else partitions
        self.event_manager.put(
            events.ReplicaLeaderElection(
                tuple(dict.fromkeys(chosen)),
                election_type,
                events.ElectionTrigger.ADMIN_CLIENT_TRIGGERED,
                callback,
            )
        )

    def alter_partition_reassignments(
        self,
        reassignments: Mapping[TopicPartition, tuple[int, ...] | None],
        callback: events.ReassignmentCallback,
    ) -> None:
        """Start, redirect or (None) cancel reassignments."""
        self.event_manager.put(
            events.ApiPartitionReassignment(tuple(reassignments.items()), callback)
        )

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None, callback: events.ListCallback
    ) -> None:
        """Ongoing reassignments among some partitions, or all."""
        chosen = None if partitions is None else tuple(dict.fromkeys(partitions))
        self.event_manager.put(events.ListPartitionReassignments(chosen, callback))

    def alter_isr(
        self, request: AlterIsrRequest, callback: Callable[[AlterIsrResponse], object]
    ) -> None:
        """A leader proposes ISRs (KIP-497)."""
        self.event_manager.put(events.AlterIsrReceived(request, callback))

    def update_features(
        self, updates: events.FeatureUpdates, callback: events.FeaturesCallback
    ) -> None:
        """Change finalised features (KIP-584)."""
        self.event_manager.put(events.UpdateFeatures(tuple(updates.items()), callback))

    def enable_default_unclean_leader_election(self) -> None:
        """This broker's default was turned on while it runs."""
        self.event_manager.put(events.UncleanLeaderElectionEnable())

    def enable_topic_unclean_leader_election(self, topic: str) -> None:
        """A topic's configuration says true; ignored by those who are not the controller."""
        if self.is_active:
            self.event_manager.put(events.TopicUncleanLeaderElectionEnable(topic))

    # --- processing

    async def process(self, event: ControllerEvent) -> None:
        """Run an event's handler: whoever has lost the controllership resigns."""
        try:
            await self._handlers[type(event)](event)
        except Cancelled:
            raise
        except ControllerMoved as moved:
            self.log("info", f"the controller moved while processing {event.name}: {moved}")
            await self.maybe_resign()
        except Exception as error:
            self.log("error", f"error processing event {event.name}: {error!r}")

    async def _process_startup(self, _event: events.Startup) -> None:
        await self.watches.watch_controller()
        await self.elect()

    async def _process_controller_change(self, _event: events.ControllerChange) -> None:
        await self.maybe_resign()

    async def _process_reelect(self, _event: events.Reelect) -> None:
        await self.maybe_resign()
        await self.elect()

    async def _process_expire(self, _event: events.Expire) -> None:
        self.active_controller_id = NO_CONTROLLER
        self.resign()

    async def _process_register_broker_and_reelect(
        self, _event: events.RegisterBrokerAndReelect
    ) -> None:
        await self.registration.register_again()
        if self.behaviour.pipelined_zookeeper:
            await self.maybe_resign()
            await self.elect()
            return
        # 0.10.1: whoever still finds itself in /controller has resigned and stays so, while the
        # node keeps everybody else from being elected (KAFKA-4229).
        await self.watches.watch_controller()
        self.active_controller_id = NO_CONTROLLER
        self.resign()
        if await self.zk.get_controller_id() != self.broker_id:
            await self.elect()

    # --- the election of a controller

    async def elect(self) -> None:
        """Try to become the controller (docs/kafka/controller-failover.md#election)."""
        await self._read_controller_id()
        if self.active_controller_id != NO_CONTROLLER:
            return
        try:
            epoch, zk_version = await self.zk.register_controller_and_increment_controller_epoch(
                self.broker_id, self.host.now_ms()
            )
            self.context.epoch = epoch
            self.context.epoch_zk_version = zk_version
            self.active_controller_id = self.broker_id
            self.log("info", f"broker {self.broker_id} is the controller of epoch {epoch}")
            await self.failover.on_controller_failover()
        except Cancelled:
            raise
        except ControllerMoved as moved:
            self.log("info", f"broker {self.broker_id} is not the controller: {moved}")
            await self.maybe_resign()
            if self.is_active and self.context.epoch == 0:
                # Before 2.1 the node may be won and the epoch lost: without an epoch, give way.
                await self.trigger_controller_move()
        except Exception as error:
            self.log("error", f"becoming the controller failed: {error!r}")
            await self.trigger_controller_move()

    async def maybe_resign(self) -> None:
        """Look who is the controller; stop being it if it is someone else
        (docs/kafka/controller-failover.md#resignation)."""
        was_active = self.is_active
        await self.watches.watch_controller()
        await self._read_controller_id()
        if was_active and not self.is_active:
            self.resign()

    async def trigger_controller_move(self) -> None:
        """Give up: resign and delete ``/controller``, so that everyone stands for election."""
        await self._read_controller_id()
        if not self.is_active:
            self.log("warn", "not the controller any more: there is nothing to give up")
            return
        zk_version = self.context.epoch_zk_version
        self.active_controller_id = NO_CONTROLLER
        self.resign()
        try:
            await self.zk.delete_controller(zk_version)
        except ControllerMoved as moved:
            self.log("info", f"/controller is someone else's already: {moved}")

    def resign(self) -> None:
        """Stop watching, stop sending, forget everything
        (docs/kafka/controller-failover.md#resignation)."""
        self.failover.on_controller_resignation()

    async def _read_controller_id(self) -> None:
        controller_id = await self.zk.get_controller_id()
        self.active_controller_id = NO_CONTROLLER if controller_id is None else controller_id

    # --- what several flows do

    async def send_update_metadata(
        self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition] = ()
    ) -> None:
        """Tell brokers of the registered brokers and of partitions.

        Raises ``IllegalState`` after giving up the controllership if the batch is broken.
        """
        try:
            self.batch.new_batch()
            self.batch.add_update_metadata_request_for_brokers(broker_ids, partitions)
            self.batch.send_requests_to_brokers(self.context.epoch)
        except IllegalState as error:
            await self.handle_illegal_state(error)

    async def handle_illegal_state(self, error: IllegalState) -> None:
        """Requests cannot be sent as they should: let another broker try; raises ``error``."""
        self.batch.clear()
        await self.trigger_controller_move()
        raise error
