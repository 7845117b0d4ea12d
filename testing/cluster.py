"""``Cluster``: a fake Kafka for real clients, in real time, on 127.0.0.1."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ..actors.runtime.garbage import garbage
from ..actors.runtime.live import LiveRuntime
from ..protocol.config import CONSUMER_PROTOCOL, BrokerConfig
from ..protocol.errors import UsageError
from ..protocol.names import broker_name
from ..protocol.security.configuration import PLAINTEXT, SecurityConfig
from ..protocol.versions import DEFAULT_KAFKA_VERSION, behaviour
from ..wire.kafka.security.listener_security import OPEN, ListenerSecurity
from ..wire.kafka.tcp_listener import TcpGateway, TcpListener
from ..zkfake.server.storage import ZooKeeperStorage
from . import arguments
from .assembly import ClusterPlan, Equipment, assemble
from .emulated_cluster import EmulatedCluster
from .real_time import RealTimeCluster
from .recording.cluster_recording import ClusterRecording

if TYPE_CHECKING:
    from ..actors.broker.process import BrokerProcess
    from ..actors.runtime.threaded import ThreadedRuntime
    from ..protocol.security.configuration import ListenerSpec
    from ..replication.disk.disk import Disk
    from ..tracing.reading.reader import Trace
    from ..wire.zookeeper.gateway import ZooKeeperTcp
    from .memory_bound import MemoryBound
    from .security import ClusterSecurity

logger: logging.Logger = logging.getLogger("fakekafka.testing")

_START_TIMEOUT_S = 30


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _is_open(config: SecurityConfig) -> bool:
    """Return whether the configuration needs no ``ClusterSecurity``: plain listeners only, and
    neither principal mapping rules nor token keys."""
    return (
        all(listener.protocol == PLAINTEXT for listener in config.listeners)
        and config.principal_mapping_rules == "DEFAULT"
        and config.token_keys is None
    )


def _tcp_listener(process: BrokerProcess) -> TcpListener:
    listener = process.spec.listener
    assert isinstance(listener, TcpListener)
    return listener


class Cluster(EmulatedCluster):
    """A cluster in real time that any Kafka client can use; also an async context manager.

    ``config`` takes Kafka's own names and overrides test-friendly defaults (``testing.defaults``);
    ``topics`` maps names to partition counts or to keyword arguments of ``create_topic``;
    brokers listen on ``host`` and advertise ``advertised_host`` to clients;
    ``ports`` fixes the brokers' ports, ``zookeeper_ports`` those of the ZooKeeper servers;
    ``data_dir`` keeps logs and ZooKeeper's state on the real disk: a cluster started there again
    has its former topics; ``topics`` that exist already stay as they are;
    ``runtime`` is ``"live"`` or ``"threaded"``;
    ``trace`` is a file to record to, or the number of latest events to keep for ``save``;
    ``memory`` bounds the memory of records, in bytes or as ``"1G"``: above it the oldest records
    of the largest partitions are deleted, except those of compacted topics;
    ``security`` is a ``SecurityConfig``, its fields, or listeners such as
    ``"PLAINTEXT;CLIENTS:SASL_SSL"``.

    Raises ``UsageError`` for invalid arguments. If a port is in use, ``start`` raises a
    ``UsageError`` that is also an ``OSError``, with its ``errno``.
    """

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
        host: str = "127.0.0.1",
        advertised_host: str | None = None,
        ports: Sequence[int] | None = None,
        zookeeper_ports: Sequence[int] | None = None,
        runtime: str = "live",
        trace: str | Path | int | None = None,
        data_dir: str | Path | None = None,
        memory: int | str | None = None,
        security: SecurityConfig | Mapping[str, Any] | str | None = None,
    ) -> None:
        self._security_config = SecurityConfig.of({} if security is None else security)
        super().__init__(
            ClusterPlan.check(
                brokers,
                kafka_version=kafka_version,
                config=self._with_security(config, kafka_version),
                topics=topics,
                zookeepers=zookeepers,
                racks=racks,
                restart_delay_ms=restart_delay_ms,
                test_friendly=True,
            )
        )
        if arguments.text("runtime", runtime) not in ("live", "threaded"):
            arguments.refuse("runtime", runtime, "'live' or 'threaded'")
        self._runtime_name = runtime
        self._host = arguments.text("host", host)
        if not _is_loopback(self._host):
            logger.warning(
                "brokers will listen on %s, where others can reach them; they are made for tests",
                self._host,
            )
        self._advertised_host = arguments.advertised_host(advertised_host, self._host)
        self._running: RealTimeCluster | None = None
        self._failures: list[tuple[str, BaseException]] | None = None
        self._security: ClusterSecurity | None = None
        """Created on first use."""
        if not _is_open(self._security_config):
            _ = self.security  # raises now if the configuration is invalid
        if self._security_config.uses_tls:
            from ..wire.kafka.security.certificates import require_cryptography

            require_cryptography()
        if ports is None:
            ports = (0,) * len(self._plan.broker_ids)
        self._ports = arguments.ports("ports", ports, len(self._plan.broker_ids), "brokers")
        for listener in self._security_config.listeners:
            if listener.ports:
                count = len(self._plan.broker_ids)
                arguments.ports(f"ports of {listener.name}", listener.ports, count, "brokers")
        self._zookeeper_ports = (
            None
            if zookeeper_ports is None
            else arguments.ports("zookeeper_ports", zookeeper_ports, zookeepers, "servers")
        )
        self._zookeeper_tcp: ZooKeeperTcp | None = None
        self._recording = ClusterRecording(trace)
        self._data_dir = arguments.file_path("data_dir", data_dir)
        self._memory_bytes_max: int | None = None
        if memory is not None:
            from .memory_bound import bytes_of

            self._memory_bytes_max = bytes_of("memory", memory)
        self._memory: MemoryBound | None = None

    @property
    def running(self) -> RealTimeCluster:
        if self._running is not None:
            return self._running
        if self._failures is not None:
            raise UsageError("the cluster has been stopped")
        raise UsageError("the cluster is not started; use `with Cluster() as cluster:`")

    @property
    def is_started(self) -> bool:
        """True while the cluster runs: from its start until it is stopped."""
        self._require_own_process()
        return self._running is not None

    @property
    def failures(self) -> list[tuple[str, BaseException]]:
        """Unexpected exceptions: bugs of the emulation or of your observers; normally empty."""
        return [] if self._failures is None else self._failures

    def _shown(self) -> str:
        return f" at {self.bootstrap_servers}"

    # -- life ----------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start every process and wait until the cluster serves."""
        if self._running is not None:
            self._running.require_own_process()
            raise UsageError("the cluster is already started")
        self._make_data_dir()
        runtime = self._make_runtime()
        try:
            with garbage.raised_thresholds():
                self._running = self._assemble(runtime)
                self._start(self._running)
        except BaseException:
            if self._running is None:
                runtime.stop()
            self.stop()
            raise
        return self

    def _make_runtime(self) -> LiveRuntime | ThreadedRuntime:
        if self._runtime_name == "live":
            return LiveRuntime()
        from ..actors.runtime.threaded import ThreadedRuntime

        return ThreadedRuntime()

    def _make_data_dir(self) -> None:
        """Create the data directory; ``UsageError`` if it cannot be used."""
        path = self._data_dir
        if path is None:
            return
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            is_file = path.exists() and not path.is_dir()
            reason = "it is a file" if is_file else error.strerror
            raise UsageError(
                f"data_dir {path} cannot be used: {reason}; give a directory, or where to make one"
            ) from None
        if not os.access(path, os.W_OK | os.X_OK):
            raise UsageError(f"data_dir {path} cannot be used: it may not be written to")

    def _assemble(self, runtime: LiveRuntime | ThreadedRuntime) -> RealTimeCluster:
        self._failures = runtime.failures
        self._handles.clear()
        gateway = TcpGateway(runtime, self.kafka_version)
        equipment = Equipment(
            lambda broker_id, config: self._make_listener(gateway, broker_id, config),
            self._make_disk,
            self._make_zookeeper_storage,
        )
        return RealTimeCluster(runtime, *assemble(self._plan, runtime, equipment))

    def _start(self, running: RealTimeCluster) -> None:
        runtime = running.runtime
        self._recording.start(runtime, self._runtime_name, self.kafka_version, self._plan.config)
        if self._security is not None:
            self._security.attach(running)
        starts = runtime.run_in(None, self._start_processes)
        if self._zookeeper_ports is not None:
            self._serve_zookeeper(self._zookeeper_ports)

        def has_started() -> bool:
            return self._has_started(starts)

        running.await_settled(starts, _START_TIMEOUT_S)
        running.wait_until(has_started, _START_TIMEOUT_S)
        if self._security is not None:
            self._security.create_users()
        self.create_initial_topics()
        if self._memory_bytes_max is not None:
            from .memory_bound import MemoryBound

            self._memory = MemoryBound(running, self._memory_bytes_max)
            self._memory.start()

    def stop(self) -> None:
        """Stop everything: sockets, threads, actors; idempotent."""
        running = self._running
        if running is None:
            return
        self._running = None
        if self._memory is not None:
            self._memory.close()
        running.end()
        if running.runtime.thread.is_forked_away:  # a forked child has none of the threads
            return
        for process in running.processes.values():
            _tcp_listener(process).release()
        if self._zookeeper_tcp is not None:
            self._zookeeper_tcp.stop()
            self._zookeeper_tcp = None
        running.runtime.stop()
        for process in running.processes.values():
            if process.broker is not None and self._data_dir is not None:
                # Otherwise replicas would start with high watermark 0, to which 0.10 truncates.
                process.broker.replica_manager.upkeep.checkpoint_high_watermarks()
            process.forget_nodes()
            process.spec.disk.dispose()
        for zookeeper in running.zookeepers.values():
            zookeeper.node = None
            zookeeper.storage.close()
        if self._security is not None:
            self._security.attach(None)
            self._security.remove_files()
        self._recording.close()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.stop)

    @property
    def bootstrap_servers(self) -> str:
        """``host:port`` of every broker, comma-separated, for clients.

        IPv6 addresses are in brackets.
        """
        return self.bootstrap_servers_of(self._security_config.listeners[0].name)

    def bootstrap_servers_of(self, listener: str) -> str:
        """Return the ``bootstrap_servers`` of a listener, given by its name, or by its protocol if
        only one listener has it."""
        specs = self._security_config.listeners
        found = [s.name for s in specs if listener == s.name]
        found = found or [s.name for s in specs if listener == s.protocol]
        if len(found) != 1:
            known = ", ".join(f"{spec.name} ({spec.protocol})" for spec in specs)
            what = "names several listeners" if found else "names no listener"
            raise UsageError(f"{listener!r} {what}; there are {known}")
        host = self._advertised_host
        host = f"[{host}]" if ":" in host else host
        return ",".join(
            f"{host}:{_tcp_listener(process).ports[found[0]]}"
            for process in self.processes.values()
        )

    @property
    def memory(self) -> MemoryBound | None:
        """Memory that records take, and its bound; None without the argument ``memory``."""
        return self._memory

    @property
    def security(self) -> ClusterSecurity:
        """Certificates, users, tokens, ACLs and quotas for the clients of a test."""
        if self._security is None:
            from .security import ClusterSecurity

            self._security = ClusterSecurity(self._security_config, self._advertised_host)
            self._security.attach(self._running)
        return self._security

    @property
    def zookeeper_connect(self) -> str:
        """``host:port`` of every ZooKeeper server, for ZooKeeper clients such as kazoo.

        The servers begin to listen when this is first read, or at the start if
        ``zookeeper_ports`` is given.
        """
        if self._zookeeper_tcp is None:
            self._serve_zookeeper(None)
        assert self._zookeeper_tcp is not None
        return self._zookeeper_tcp.connect_string

    def _serve_zookeeper(self, ports: Sequence[int] | None) -> None:
        from ..wire.zookeeper.gateway import ZooKeeperTcp

        self._zookeeper_tcp = ZooKeeperTcp(
            self.running.runtime, list(self.zookeepers), host=self._host, ports=ports
        )
        self._zookeeper_tcp.start()

    def _with_security(
        self, config: Mapping[str, Any] | None, kafka_version: str
    ) -> dict[str, Any]:
        """Return the user's configuration on top of that of the security settings."""
        flags = behaviour(arguments.text("kafka_version", kafka_version))
        values = self._security_config.broker_config(flags.acl_authorizer, flags.delegation_tokens)
        return {**values, **arguments.broker_config(config)}

    # -- on this runtime -----------------------------------------------------------------------

    def _make_listener(
        self, gateway: TcpGateway, broker_id: int, config: BrokerConfig
    ) -> TcpListener:
        at = self._plan.broker_ids.index(broker_id)
        listeners = [
            (spec, spec.ports[at] if spec.ports else 0) for spec in self._security_config.listeners
        ]
        first, port = listeners[0]
        listeners[0] = (first, port or self._ports[at])
        return TcpListener(
            gateway,
            self._host,
            listeners,
            functools.partial(self._listener_security, gateway, config),
            advertised_host=self._advertised_host,
            max_request_bytes=config["socket.request.max.bytes"],
            idle_ms=config["connections.max.idle.ms"],
            queued_bytes_max=config["queued.max.request.bytes"],
            has_consumer_groups=CONSUMER_PROTOCOL
            in config["group.coordinator.rebalance.protocols"],
            guard=self.security.guard(config) if config["authorizer.class.name"] else None,
        )

    def _listener_security(
        self, gateway: TcpGateway, config: BrokerConfig, broker_id: int, listener: ListenerSpec
    ) -> ListenerSecurity:
        if self._security is None:  # plain listeners
            return OPEN
        return self._security.listener_security(gateway, config, broker_id, listener)

    def _make_disk(self, broker_id: int) -> Disk:
        if self._data_dir is None:
            return self._plan.memory_disk()
        from ..replication.disk.file_disk import FileDisk

        # A broker that generates its id has the directory of its position among the brokers.
        directory = self._data_dir / broker_name(abs(broker_id))
        if self._plan.log_dirs:
            return FileDisk(directories=[directory / name for name in self._plan.log_dirs])
        return FileDisk(directory)

    def _make_zookeeper_storage(self, server_id: int) -> ZooKeeperStorage:
        if self._data_dir is None:
            return ZooKeeperStorage()
        from .zookeeper_journal import open_storage

        return open_storage(self._data_dir / f"zookeeper-{server_id}", server_id)

    def wait_until(self, condition: Callable[[], object], timeout_s: float = 10) -> None:
        """Wait until a condition holds; raise ``WaitTimeout`` after ``timeout_s``.

        The error names the condition and the last values of its parts.
        """
        self.running.wait_until(condition, timeout_s)

    def reset(self) -> None:
        """Empty the cluster, which is faster than starting a new one.

        Deletes every topic, with groups, transactions, producer ids, dynamic configurations,
        quotas, ACLs, tokens, counts of metrics and every znode that a new cluster does not have.
        Restores the configured users. Starts every broker and ZooKeeper server. Ends cuts, losses,
        delays, holds, injections and observers that a test set up. The cluster id, the controller,
        the epochs of controller and brokers, and the clients' connections stay.

        Raises ``UsageError`` if a topic has replicas on brokers that this cluster does not have:
        as in Kafka, the topic cannot be deleted without them. Also raises ``UsageError`` if clients
        create topics again as soon as they are deleted; the error names these clients and topics.
        """
        from .reset import reset

        reset(self.running, self.security.restore)

    # -- the recording -------------------------------------------------------------------------

    def _require_own_process(self) -> None:
        if self._running is not None:  # a stopped cluster can still be read
            self._running.require_own_process()

    def trace(self) -> Trace:
        """Return the latest events, if ``Cluster(trace=20_000)`` or the like keeps them."""
        self._require_own_process()
        return self._recording.trace()

    def save(self, path: str | Path) -> None:
        """Write the events that the cluster keeps to a ``.fktrace`` file."""
        self._require_own_process()
        self._recording.save(path)
