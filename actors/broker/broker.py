"""The broker actor: startup, shutdown, and the request handlers of Kafka's ``KafkaApis``.

States, as Kafka names them: ``starting`` -> ``running`` -> ``pending_controlled_shutdown`` ->
``shutting_down`` -> ``not_running``. Requests that arrive before ``running`` wait: the socket
is bound and the controller may already send, but nothing is processed
(docs/kafka/brokers.md#start-of-a-broker).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from ...protocol.awaiting import Cancelled, Pending
from ...protocol.control import ControlledShutdownRequest
from ...protocol.declaring.native import checks_arguments
from ...protocol.errors import ErrorCode, FakeKafkaError, KafkaError, UsageError
from ...protocol.host import sleep
from ...protocol.names import broker_name, fetcher_name
from ...protocol.values import BrokerInfo, EndPoint, TopicPartition
from ...replication.follower.manager import FetcherManager
from ...replication.partition.hosted_partitions import HostedPartitions
from ...replication.partition.isr_proposals import IsrUpdater
from ...replication.partition.isr_updaters import AlterIsrManager
from ...replication.partition.metadata_cache import MetadataCache
from ...replication.replica_manager import ReplicaManager
from ...statemachines.admin.manager import AdminManager
from ...statemachines.admin.parts import AdminParts
from ...statemachines.broker.broker_id import check_meta_properties
from ...statemachines.broker.dynamic_config import DynamicConfigManager
from ...statemachines.zookeeper.change_notifications import ChangeNotifications
from ...zkfake.messages import ZooKeeperError
from ..delivery import Delivery
from ..interfaces import AbstractRuntime, Process
from ..node import Node
from ..port import Handler
from .broker_id_finder import connect
from .controller import ControllerActor
from .controller_channel import ControllerChannel
from .coordinators import Coordinators
from .metadata_waiters import MetadataWaiters
from .producer_ids import (
    AllocateBlock,
    ControllerBlockAllocator,
    PrefetchedProducerIds,
    ProducerIds,
    ProducerIdSource,
)
from .security import BrokerSecurity
from .spec import BrokerSpec

if TYPE_CHECKING:
    from ...coordinators.groups.coordinator import GroupCoordinator
    from ...coordinators.transactions.coordinator import TransactionCoordinator
    from ...protocol.config import BrokerConfig
    from ...protocol.releases.behaviour import Behaviour
    from ...replication.follower.fetcher import ReplicaFetcher
    from ...statemachines.controller.controller import KafkaController
    from ...statemachines.zookeeper.client import KafkaZkClient
    from .replica_fetcher import ReplicaFetcherActor

_HANDLERS: Mapping[str, tuple[str, str]] = {
    "data": ("data", "DataHandlers"),
    "control": ("control", "ControlHandlers"),
    "groups": ("groups", "GroupHandlers"),
    "FindCoordinatorRequest": ("groups", "GroupHandlers"),
    "transactions": ("transactions", "TransactionHandlers"),
    "InitProducerIdRequest": ("transactions", "TransactionHandlers"),
    "admin": ("admin", "AdminHandlers"),
    "acls": ("security", "SecurityHandlers"),
    "authentication": ("security", "SecurityHandlers"),
    "quotas": ("security", "SecurityHandlers"),
    "delegation_tokens": ("tokens", "TokenHandlers"),
}
"""Module of ``protocol``, or single request -> module and class in ``handlers``. A class is
imported when its first request arrives, as a starting cluster needs few of them."""


class Broker(Node):
    """One broker: creates its parts, joins and leaves the cluster, and runs the fetchers."""

    def __init__(
        self,
        runtime: AbstractRuntime,
        name: str,
        process: Process,
        spec: BrokerSpec,
        controller_node: ControllerActor,
        endpoints: tuple[EndPoint, ...],
        exited: Callable[[], object],
        halted: Callable[[str], object],
    ) -> None:
        super().__init__(runtime, name, process)
        self.spec = spec
        self.broker_id: int = spec.broker_id
        self.config: BrokerConfig = spec.config
        self.behaviour: Behaviour = spec.behaviour
        self.state: str = "not_running"
        self.running: Pending[None] = Pending()
        self.controller_node = controller_node
        self.controller: KafkaController = controller_node.controller
        self.zk: KafkaZkClient = controller_node.zk
        self.info: BrokerInfo = BrokerInfo(self.broker_id, endpoints, spec.rack)
        controller_node.broker_info = self.info
        self.metadata_cache: MetadataCache = MetadataCache(self.broker_id, behaviour=self.behaviour)
        self.waiters: MetadataWaiters = MetadataWaiters(self)
        self.controller_channels: list[ControllerChannel] = []
        allocate = self._producer_id_blocks()
        self.producer_ids: ProducerIdSource = (
            PrefetchedProducerIds(self, self.broker_id, allocate)
            if self.behaviour.producer_ids_prefetched
            else ProducerIds(self.broker_id, allocate)
        )
        self._exited = exited
        self._halted = halted
        self._registered_handlers: dict[str, None] = {}
        """Classes of ``_HANDLERS`` whose handlers are registered."""
        self._shutdown: Pending[bool] | None = None
        self._build()

    def _build(self) -> None:
        """Create the parts, in the order of their dependencies."""
        spec = self.spec
        self.dynamic_config: DynamicConfigManager = DynamicConfigManager(
            broker_id=self.broker_id,
            host=self,
            config=self.config,
            behaviour=self.behaviour,
            zk=self.zk,
            controller=self.controller,
            on_topic_config=self._topic_config_changed,
        )
        self.security: BrokerSecurity = BrokerSecurity(
            self,
            self.config,
            self.behaviour,
            self.zk,
            self.dynamic_config,
            self.controller,
            spec.listener.enforce,
        )
        self.fetcher_manager: FetcherManager = FetcherManager(
            broker_id=self.broker_id,
            host=self,
            config=self.config,
            behaviour=self.behaviour,
            broker_epoch=self._broker_epoch,
            start_fetcher=self._start_fetcher,
            stop_fetcher=self._stop_fetcher,
        )
        hosted = HostedPartitions(
            broker_id=self.broker_id,
            host=self,
            config=self.config,
            behaviour=self.behaviour,
            disk=spec.disk,
            metadata_cache=self.metadata_cache,
            isr_updater=self._isr_updater(),
            topic_config=self.dynamic_config.topic_config,
        )
        self.replica_manager: ReplicaManager = ReplicaManager(
            hosted,
            host=self,
            config=self.config,
            fetcher_manager=self.fetcher_manager,
            broker_epoch=self._broker_epoch,
        )
        self.coordinators: Coordinators = Coordinators(
            self, self.config, self.behaviour, self.replica_manager, self.producer_ids
        )
        if self.behaviour.transactions_verified:
            self.replica_manager.verify_with(self.coordinators.verify)
        self.dynamic_config.on_topic_overrides = self.replica_manager.quotas.topic_changed
        self.replica_manager.roles.on_leadership_change = self.coordinators.leadership_changed
        self.replica_manager.failures.on_log_dir_failure = self._log_dir_failed
        self.replica_manager.upkeep.on_uncleanable = self._log_uncleanable
        self.replica_manager.failures.on_halt = self._halt_process
        parts = AdminParts(
            host=self,
            config=self.config,
            behaviour=self.behaviour,
            zk=self.zk,
            controller=self.controller,
            metadata=self.metadata_cache,
            wait=self.waiters.wait,
            surroundings={
                "log.dirs": ",".join(spec.disk.directories),
                "zookeeper.connect": ",".join(spec.zookeepers),
            },
        )
        self.dynamic_config.facts = parts.facts
        self.admin: AdminManager = AdminManager(parts)
        self._fetchers: dict[ReplicaFetcher, ReplicaFetcherActor] = {}

    def _producer_id_blocks(self) -> AllocateBlock:
        """Return the function that allocates blocks of producer ids."""
        if not self.behaviour.producer_ids_from_controller:
            return self.zk.brokers.allocate_producer_id_block
        channel = self._controller_channel(self.config["request.timeout.ms"])
        return ControllerBlockAllocator(channel, self._broker_epoch).allocate

    @property
    def groups(self) -> GroupCoordinator:
        """The coordinator of consumer groups."""
        return self.coordinators.groups

    @property
    def transactions(self) -> TransactionCoordinator:
        """The coordinator of transactions."""
        return self.coordinators.transactions

    def _isr_updater(self) -> IsrUpdater:
        """Return the updater that submits the ISR proposals of this broker's leaders."""
        if not self.behaviour.alter_isr:
            from .isr_writer import zookeeper_isr_updater

            return zookeeper_isr_updater(self, self.zk)
        return AlterIsrManager(
            host=self,
            broker_id=self.broker_id,
            broker_epoch=self._broker_epoch,
            send=self._controller_channel(retry_timeout_ms=None).send,
        )

    @property
    def followed(self) -> tuple[ChangeNotifications, ...]:
        """Change notifications that the broker follows: of configurations, ACLs and tokens."""
        return (self.dynamic_config.followed, *self.security.followed)

    def forget_past(self) -> None:
        """Reset the broker to its state in a new cluster, after all topics have been deleted.

        It stays registered and keeps its epochs. Internal topics that it leads by now have been
        created again, and are loaded once more: the first loading was refused if their epochs were
        below the former ones.
        """
        self.coordinators.reset()
        self.coordinators.leadership_changed(self.replica_manager.led_partitions(), ())
        self.producer_ids.forget_block()
        self.start_task(self.producer_ids.start())
        self.security.forget_usage()
        self.replica_manager.quotas.forget()
        self.replica_manager.clear_counts()
        self.replica_manager.forget_sessions()
        self.controller.metrics.clear()

    def _broker_epoch(self) -> int:
        return self.controller.registration.broker_epoch  # called for every fetch of a follower

    def _controller_channel(self, retry_timeout_ms: int | None) -> ControllerChannel:
        find = self._controller_broker_name
        channel = ControllerChannel(self, find, self.config, retry_timeout_ms)
        self.controller_channels.append(channel)
        return channel

    def _controller_broker_name(self) -> str | None:
        """Return the node of the live broker believed to be the controller; None if unknown."""
        controller_id = self.metadata_cache.controller_id
        if controller_id is None or not self.metadata_cache.is_alive(controller_id):
            return None
        return broker_name(controller_id)

    def find_handler(self, message_type: type) -> Handler:
        home = message_type.__module__.rpartition(".")[2]
        module, name = _HANDLERS.get(message_type.__name__) or _HANDLERS.get(home, ("", ""))
        if name and name not in self._registered_handlers:
            self._registered_handlers[name] = None
            handlers_module = import_module(f"fakekafka.actors.broker.handlers.{module}")
            self.register_handlers(getattr(handlers_module, name)(self).by_type())
        return super().find_handler(message_type)

    def handler_failed(self, error: BaseException, delivery: Delivery) -> None:
        """Answer UNKNOWN_SERVER_ERROR, as Kafka does, if the ZooKeeper session ended meanwhile."""
        if isinstance(error, ZooKeeperError):
            self.log("warn", f"{type(delivery.message).__name__}: {error}")
            error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
        super().handler_failed(error, delivery)

    # -- life ----------------------------------------------------------------------------------

    def on_start(self) -> None:
        self.set_state("starting")
        # Requests that arrive before the broker runs wait in the backlog for this task.
        start = self.start_task(self._start())
        if not start.done:
            self.hold_back(start)

    def set_state(self, state: str) -> None:
        self.state = state
        self.runtime.note("note", self.name, f"state {state}")
        for listener in self.spec.on_state:
            listener(self.broker_id, state)

    async def _start(self) -> None:
        """Start in the order of Kafka's ``KafkaServer.startup``
        (docs/kafka/brokers.md#start-of-a-broker)."""
        try:
            await connect(self, self.controller_node.zk_client, self.spec)
            await self.zk.brokers.create_top_level_paths()
            self.metadata_cache.cluster_id = await self.zk.brokers.create_or_get_cluster_id(
                self.spec.cluster_id
            )
            # For a broker that generates its id, ``find_broker_id`` has already checked this.
            cluster_id = self.metadata_cache.cluster_id
            check_meta_properties(
                self.spec.meta_properties(), cluster_id, self.config["broker.id"], self.behaviour
            )
            await self.dynamic_config.load()
            if self.behaviour.meta_properties_before_logs:
                self._write_meta_properties()
            self._start_disk()
            await self._join()
            if self.behaviour.transactions and not self.behaviour.producer_ids_from_controller:
                await self.producer_ids.start()
            await self.dynamic_config.startup()
            await self.security.start()
        except Cancelled:
            raise
        except FakeKafkaError as error:
            self.runtime.note("note", self.name, f"start failed: {error}")
            self.replica_manager.shutdown(checkpoint=False)
            self.spec.disk.kill()
            await self.controller_node.zk_client.close()
            self.running.set_exception(error)
            self.runtime.call_later(None, 0, self._exited)
            return
        self.set_state("running")
        self.start_task(self._serve())
        self.running.set_result(None)
        self.hold_back(None)

    async def _serve(self) -> None:
        """Accept clients once the controller has sent the metadata of every existing topic.

        Kafka accepts them a moment earlier. Clients that connect in that moment learn that their
        topics do not exist, upon which librdkafka fails records and resends others under a new
        epoch.
        """
        topics = self.dynamic_config.topics
        known = self.metadata_cache.contains_topic
        timeout_ms = 2 * self.config["zookeeper.session.timeout.ms"]
        await self.waiters.wait(lambda: all(map(known, topics)), timeout_ms)
        self.spec.listener.serve()

    def _write_meta_properties(self) -> None:
        """Write ``meta.properties``; raises ``KafkaError`` KAFKA_STORAGE_ERROR on failure."""
        values = {"version": "0", "broker.id": str(self.broker_id)}
        if self.behaviour.meta_properties_name_cluster:
            values["cluster.id"] = self.metadata_cache.cluster_id
        self.spec.disk.write_meta_properties(values)

    def _start_disk(self) -> None:
        """Load the logs; raises ``KafkaError`` KAFKA_STORAGE_ERROR if all directories are
        offline."""
        disk = self.spec.disk
        disk.start()
        if len(disk.offline_dirs) == len(disk.directories):
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"every log directory of {self.name} is offline: {', '.join(disk.directories)}",
            )
        self.replica_manager.startup()

    async def _join(self) -> None:
        """Register, and then stand for election as controller. Up to 1.0 the order is reversed, so
        that a new controller does not find itself among the live brokers
        (``KafkaServer.startup`` at 0.10.1.1)."""
        controller, registration = self.controller, self.controller.registration
        stands_first = self.behaviour.controller_stands_before_registration
        if stands_first:
            await self._retry_while_registered(registration.check_vacant)
            await controller.startup()
            await controller.election.first_election_done
            await registration.register()
        else:
            await self._retry_while_registered(registration.register)
        if not self.behaviour.meta_properties_before_logs:
            self._write_meta_properties()
        if not stands_first:
            await controller.startup()

    async def _retry_while_registered(self, step: Callable[[], Awaitable[None]]) -> None:
        """Run a step of the registration, repeated while a killed predecessor's session lives.

        In every release of Kafka the start fails then (``CheckedEphemeral``, NodeExists), and the
        supervisor of the process starts it again, which takes ``restart_delay_ms``. Retrying all
        the time would hit the moment when the znode is gone but no controller has noticed.
        """
        delay_ms = self.spec.restart_delay_ms
        timeout_ms = 2 * self.config["zookeeper.session.timeout.ms"] + delay_ms
        deadline_ms = self.now_ms() + timeout_ms
        while True:
            try:
                await step()
                return
            except KafkaError as error:
                if (
                    error.code != ErrorCode.DUPLICATE_BROKER_REGISTRATION
                    or self.now_ms() > deadline_ms
                ):
                    raise
            text = f"already registered: starting again in {delay_ms:g} ms"
            self.runtime.note("note", self.name, text)
            await sleep(self, delay_ms)

    def begin_shutdown(self) -> Pending[bool]:
        """Begin a controlled shutdown; repeated calls return the same outcome."""
        if self._shutdown is None:
            self._shutdown = self.start_task(self._shut_down())
        return self._shutdown

    async def _shut_down(self) -> bool:
        moved = True
        # From here on no fetcher is started: a broker that leaves must not rejoin an ISR.
        self.replica_manager.roles.is_shutting_down = True
        if self.config["controlled.shutdown.enable"] and self.state == "running":
            self.set_state("pending_controlled_shutdown")
            from .controlled_shutdown import move_leaderships_away

            moved = await move_leaderships_away(
                self,
                self.config,
                lambda: ControlledShutdownRequest(self.broker_id, self.controller.broker_epoch),
                self._find_controller,
            )
        self.set_state("shutting_down")
        self.replica_manager.shutdown(checkpoint=True)
        await self.controller.shutdown()
        await self.controller_node.zk_client.close()
        # The task must end before the node is halted, or halting would cancel it.
        self.runtime.call_later(None, 0, self._exited)
        return moved

    async def _find_controller(self) -> int | None:
        """Return the controller to ask for a controlled shutdown; None if none is known."""
        if not self.behaviour.controlled_shutdown_asks_metadata:
            return await self.zk.brokers.get_controller_id()
        controller_id = self.metadata_cache.controller_id
        if controller_id is None or not self.metadata_cache.is_alive(controller_id):
            return None
        return controller_id

    def on_halt(self) -> None:
        self.replica_manager.shutdown(checkpoint=False)
        if not self.running.done:
            self.running.set_exception(KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "killed"))

    # -- disks ---------------------------------------------------------------------------------

    @checks_arguments
    def fail_log_dir(self, index: int) -> bool:
        """Fail a log directory; return whether that ends the process.

        ``UsageError`` when there is no directory of that number.
        """
        directories = self.spec.disk.directories
        if not 0 <= index < len(directories):
            raise UsageError(
                f"{self.name} has no log directory {index}; there are {len(directories)}"
            )
        return self.replica_manager.failures.handle_log_dir_failure(directories[index])

    def _log_dir_failed(self, directory: str) -> None:
        self.runtime.note("fault", self.name, f"log directory {directory} failed")
        self.start_task(self._propagate_log_dir_event())

    async def _propagate_log_dir_event(self) -> None:
        try:
            await self.zk.admin.propagate_log_dir_event(self.broker_id)
        except ZooKeeperError as error:
            # The session has expired. Kafka's LogDirFailureHandler logs this error; the controller
            # learns of the offline replicas from the answers to its next LeaderAndIsr requests.
            self.log("error", f"could not report the failure of a log directory: {error}")

    def _log_uncleanable(self, name: TopicPartition, error: Exception) -> None:
        text = f"cleaning of {name} failed, so the cleaner skips it from now on: {error!r}"
        self.log("warn", text)

    def _halt_process(self, reason: str) -> None:
        # Deferred, as the process includes the node whose handler has detected the failure.
        self.runtime.call_later(None, 0, lambda: None if self.stopped else self._halted(reason))

    # -- fetchers ------------------------------------------------------------------------------

    def _start_fetcher(self, fetcher: ReplicaFetcher) -> None:
        from .replica_fetcher import ReplicaFetcherActor  # not needed to start a cluster

        name = fetcher_name(self.broker_id, fetcher.leader_id, fetcher.fetcher_id)
        self._fetchers[fetcher] = self.runtime.spawn(
            ReplicaFetcherActor,
            name,
            self.process,
            fetcher,
            self.config["replica.socket.timeout.ms"],
        )

    def _stop_fetcher(self, fetcher: ReplicaFetcher) -> None:
        actor = self._fetchers.pop(fetcher, None)
        if actor is not None:
            actor.halt()

    def _topic_config_changed(self, topic: str) -> None:
        self.replica_manager.hosted.update_topic_config(topic)
