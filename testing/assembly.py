"""What ``Cluster`` and ``Simulation`` share: assembling the processes, and the handles."""

from __future__ import annotations

import abc
import base64
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ..actors.broker.process import BrokerProcess
from ..actors.broker.spec import BrokerListener, BrokerSpec
from ..actors.node import Node
from ..actors.runtime.runtime import Runtime
from ..actors.zookeeper.process import ZooKeeperProcess
from ..protocol.awaiting import Pending
from ..protocol.config import BrokerConfig
from ..protocol.errors import UsageError
from ..protocol.names import ADMIN, zookeeper_name
from ..protocol.versions import DEFAULT_KAFKA_VERSION, behaviour
from ..replication.disk.memory import Disk, MemoryDisk
from ..zkfake.server.storage import ZooKeeperStorage
from . import arguments
from .admin import AdminOperations
from .defaults import RESTART_DELAY_MS, TEST_RESTART_DELAY_MS, cluster_config, log_dirs
from .faults import Injection, error_code, request_type
from .handles import BrokerHandle, ControllerHandle, ZooKeeperHandle
from .inspection import Inspection
from .network_handle import NetworkHandle
from .restart import is_restored, topics_are_back

if TYPE_CHECKING:
    from ..actors.delivery import Delivery

T = TypeVar("T")


class AdminNode(Node):
    """Where the API's own requests come from: an admin client inside the cluster's network."""


def _require_reserved(broker_ids: Sequence[int], config: BrokerConfig) -> None:
    """Higher ids are for brokers that draw theirs (Kafka: ``KafkaConfig.validateValues``)."""
    most = config["reserved.broker.max.id"]
    if config["broker.id.generation.enable"] and max(broker_ids) > most:
        raise UsageError(
            f"broker id {max(broker_ids)} is above reserved.broker.max.id, {most}; choose ids up "
            'to it, or set it higher, or config={"broker.id.generation.enable": False}'
        )


PARTS = frozenset({"runtime", "processes", "zookeepers", "_admin"})
"""Of a cluster: there while it is assembled."""


class ClusterBase(AdminOperations, Inspection):
    """A cluster on some runtime; see ``Cluster`` and ``Simulation`` for the arguments."""

    _test_friendly = True

    def __init__(
        self,
        brokers: int | Sequence[int] = 3,
        *,
        kafka_version: str = DEFAULT_KAFKA_VERSION,
        config: Mapping[str, Any] | None = None,
        topics: Mapping[str, Any] | None = None,
        zookeepers: int = 1,
        racks: Sequence[str | None] | None = None,
        restart_delay_ms: float | None = None,
    ) -> None:
        self.broker_ids = arguments.broker_ids(brokers)
        count = len(self.broker_ids)
        zookeepers = arguments.integer("zookeepers", zookeepers)
        if zookeepers < 1:
            raise UsageError(f"a cluster needs at least one ZooKeeper server, not {zookeepers}")
        self.kafka_version = arguments.text("kafka_version", kafka_version)
        self.behaviour = behaviour(kafka_version)
        self._racks = (None,) * count if racks is None else arguments.racks(racks, count)
        if restart_delay_ms is None:
            restart_delay_ms = TEST_RESTART_DELAY_MS if self._test_friendly else RESTART_DELAY_MS
        self._restart_delay_ms = arguments.number(
            "restart_delay_ms", restart_delay_ms, "milliseconds", above_zero=True
        )
        given = arguments.broker_config(config)
        self._config = cluster_config(
            given, count, kafka_version, test_friendly=self._test_friendly
        )
        checked = BrokerConfig(self._config, kafka_version)  # refuse a bad one here and now
        _require_reserved(self.broker_ids, checked)
        self._log_dirs = log_dirs(checked["log.dirs"])
        self._topics = arguments.topics(topics)
        self._zookeeper_count = zookeepers
        self.runtime: Runtime
        self.zookeepers: dict[int, ZooKeeperProcess]
        self.processes: dict[int, BrokerProcess]
        self._was_started = False
        self._handles: dict[int, BrokerHandle] = {}
        self._failures: list[tuple[str, BaseException]] = []
        self._started = False
        self._starts: list[Pending[None]] = []

    # -- what the runtimes differ in -----------------------------------------------------------

    @abc.abstractmethod
    def _make_runtime(self) -> Runtime: ...

    @abc.abstractmethod
    def _make_listener(self, broker_id: int) -> BrokerListener: ...

    def _make_disk(self, broker_id: int) -> Disk:
        return MemoryDisk(self._log_dirs) if self._log_dirs else MemoryDisk()

    def _make_zookeeper_storage(self, server_id: int) -> ZooKeeperStorage:
        return ZooKeeperStorage()

    def _require_going(self) -> None:
        """Raise ``UsageError`` unless something can be done to the cluster now."""
        _ = self.processes

    def _require_own_process(self) -> None:
        """Raise ``UsageError`` in a forked child, if what it has there is but a dead copy."""

    def _require_waiting(self) -> None:
        """Raise ``UsageError`` where the cluster could not go on while somebody waits for it."""

    def __getattr__(self, name: str) -> NoReturn:
        """Called for what is not there: a cluster has its parts between start and stop."""
        if name in PARTS:
            if self._was_started:
                raise UsageError("the cluster has been stopped")
            raise UsageError("the cluster is not started; use `with Cluster() as cluster:`")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # -- assembling ----------------------------------------------------------------------------

    def _assemble(self) -> None:
        """Create every process; nothing runs before this."""
        runtime = self.runtime = self._make_runtime()
        self._was_started = True
        self._failures = runtime.failures
        self._handles = {}
        self.zookeepers, self.processes = {}, {}
        ids = range(1, self._zookeeper_count + 1)
        names = {server_id: zookeeper_name(server_id) for server_id in ids}
        for server_id in ids:
            peers = names if self._zookeeper_count > 1 else {}
            storage = self._make_zookeeper_storage(server_id)
            self.zookeepers[server_id] = ZooKeeperProcess(runtime, server_id, peers, storage)
        cluster_id = base64.urlsafe_b64encode(runtime.rng.randbytes(16)).decode().rstrip("=")
        for broker_id, rack in zip(self.broker_ids, self._racks, strict=True):
            spec = BrokerSpec(
                broker_id=broker_id,
                config=BrokerConfig({**self._config, "broker.id": broker_id}, self.kafka_version),
                behaviour=self.behaviour,
                disk=self._make_disk(broker_id),
                zookeepers=tuple(names.values()),
                listener=self._make_listener(broker_id),
                rack=rack,
                cluster_id=cluster_id,
                restart_delay_ms=self._restart_delay_ms,
            )
            self.processes[broker_id] = BrokerProcess(runtime, spec)
        self._admin = runtime.spawn(AdminNode, ADMIN, runtime.process(ADMIN))

    def _start_processes(self) -> None:
        self._starts = []
        for zookeeper in self.zookeepers.values():
            zookeeper.start()
        for process in self.processes.values():
            process.start()
            if process.broker is not None:
                self._starts.append(process.broker.running)

    def _has_started(self) -> bool:
        """Whether the cluster serves; raises what kept a broker from starting."""
        for running in self._starts:
            if running.done:
                running.result()
        return self._is_settled() and (not is_restored(self) or topics_are_back(self))

    def _state_text(self) -> str:
        """Controller and brokers in a few words, for errors."""
        states = ", ".join(f"{b}: {process.state}" for b, process in self.processes.items())
        return f"controller {self.controller.id}, brokers {states}"

    def _is_settled(self) -> bool:
        """Every living broker serves and knows the controller and all living brokers."""
        alive = []
        for process in self.processes.values():
            broker = process.broker
            if broker is None:
                continue
            if broker.state != "running":
                return False
            alive.append(broker)
        ids = {broker.broker_id for broker in alive}
        return all(
            broker.metadata_cache.controller_id in ids
            and ids <= {info.id for info in broker.metadata_cache.alive_brokers()}
            for broker in alive
        )

    def _create_initial_topics(self) -> None:
        there = self.topics()
        for name, shape in self._topics.items():
            if name not in there:  # a data directory has it
                self._create_shaped(name, shape)

    def _create_shaped(self, name: str, shape: Any) -> None:
        """Create a topic from a partition count or from arguments of ``create_topic``."""
        if isinstance(shape, Mapping):
            self.create_topic(name, **shape)
        else:
            replication_factor = min(3, len(self.broker_ids))
            self.create_topic(name, partitions=shape, replication_factor=replication_factor)

    # -- handles -------------------------------------------------------------------------------

    def broker(self, broker_id: int) -> BrokerHandle:
        """Handle of a broker, by its id."""
        processes = self.processes
        arguments.integer("broker_id", broker_id)
        if broker_id not in processes:
            raise UsageError(f"there is no broker {broker_id!r}; ids are {list(self.broker_ids)}")
        handle = self._handles.get(broker_id)
        if handle is None:
            handle = self._handles[broker_id] = BrokerHandle(self, processes[broker_id])
        return handle

    @property
    def controller(self) -> ControllerHandle:
        return ControllerHandle(self)

    @property
    def zookeeper(self) -> ZooKeeperHandle:
        return ZooKeeperHandle(self)

    @property
    def network(self) -> NetworkHandle:
        return NetworkHandle(self)

    # -- interventions -------------------------------------------------------------------------

    def inject(
        self,
        api: str,
        error: str | int | None = None,
        times: int = 1,
        broker: int | None = None,
        delay_ms: float = 0,
        disconnect: bool = False,
    ) -> Injection:
        """Answer, delay or break off the next ``times`` requests of an API.

        ``error`` is a name or number of Kafka's; without it the request is only delayed, or its
        connection broken with ``disconnect``.
        """
        self._require_going()
        arguments.number("delay_ms", delay_ms, "milliseconds")
        if error is None and not delay_ms and not disconnect:
            raise UsageError("inject needs an error, a delay_ms or disconnect=True")
        arguments.integer("times", times, 1)
        wanted = request_type(api)
        code = None if error is None else error_code(error)
        machine = None if broker is None else self.broker(broker).name

        def install() -> Injection:
            return Injection(
                self.runtime,
                wanted,
                code,
                times,
                machine,
                delay_ms,
                disconnect,
                self._require_own_process,
            )

        return self._in_process(None, install)

    def observe(self, function: Callable[[Delivery], object]) -> Callable[[], None]:
        """Call a function with every message that arrives; gives a function that ends it.

        ``reset`` ends it, too. In real time the function runs on a thread of the cluster, so it
        must not wait for the cluster: note what it saw and act elsewhere. A function that raises
        is ended: a simulation raises the error at once, a cluster keeps it in ``failures``.
        """
        self._require_going()
        arguments.function("function", function, "seen.append")
        network = self.runtime.network
        self._in_process(None, lambda: network.observe(function))

        def end() -> None:
            self._in_process(None, lambda: network.stop_observing(function))

        return end

    @property
    def failures(self) -> list[tuple[str, BaseException]]:
        """What handlers raised that they must not: bugs of the emulation; normally empty."""
        return self._failures
