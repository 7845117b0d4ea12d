"""``Cluster``: a fake Kafka for real clients, in real time, on 127.0.0.1."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from ..actors.runtime.live import LiveRuntime
from ..actors.runtime.runtime import Runtime
from ..actors.runtime.threaded import ThreadedRuntime
from ..protocol.awaiting import Pending, Task
from ..protocol.errors import FakeKafkaError, UsageError
from ..protocol.names import broker_name
from ..protocol.versions import DEFAULT_KAFKA_VERSION
from ..replication.disk.memory import Disk
from ..wire.kafka.gateway import TcpGateway, TcpListener
from ..wire.zookeeper.gateway import ZooKeeperTcp
from ..zkfake.server.storage import ZooKeeperStorage
from . import arguments
from .assembly import PARTS, ClusterBase
from .condition_text import failed_wait
from .reset import reset

T = TypeVar("T")

_START_TIMEOUT_S = 30
_POLL_S = 0.0005
_RUNTIMES: dict[str, Callable[[], Runtime]] = {"live": LiveRuntime, "threaded": ThreadedRuntime}


class WaitTimeout(FakeKafkaError, TimeoutError):
    """A condition did not come true in time."""


def _stood_still() -> str:
    """What to do instead of waiting in a coroutine, where this is called from one."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return ""
    return (
        "; this thread's event loop stood still meanwhile, and clients in it with it: "
        "`await asyncio.to_thread(cluster.wait_until, condition)` lets them go on"
    )


class Cluster(ClusterBase):
    """A cluster in real time that any Kafka client can use; also an async context manager.

    ``config`` takes Kafka's own names, over test-friendly defaults (``testing.defaults``);
    ``topics`` maps names to partition counts or to keyword arguments of ``create_topic``;
    ``ports`` fixes the brokers' ports, ``zookeeper_ports`` those of the ZooKeeper servers;
    ``data_dir`` keeps logs and ZooKeeper's state on the real disk: a cluster started there again
    has its topics; ``topics`` that are there already stay as they are;
    ``runtime`` is ``"live"`` or ``"threaded"``; ``trace`` is a path to record to.

    Raises ``UsageError`` for arguments that make no sense. For a port in use ``start`` raises one
    that is an ``OSError`` too, with its ``errno``.
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
        ports: Sequence[int] | None = None,
        zookeeper_ports: Sequence[int] | None = None,
        runtime: str = "live",
        trace: str | Path | None = None,
        data_dir: str | Path | None = None,
        security: Any = None,
    ) -> None:
        super().__init__(
            brokers,
            kafka_version=kafka_version,
            config=config,
            topics=topics,
            zookeepers=zookeepers,
            racks=racks,
            restart_delay_ms=restart_delay_ms,
        )
        if arguments.text("runtime", runtime) not in _RUNTIMES:
            arguments.refuse("runtime", runtime, "'live' or 'threaded'")
        if security is not None:
            raise UsageError("security is not supported: every listener is PLAINTEXT")
        self._runtime_name = runtime
        self._host = arguments.text("host", host)
        if ports is None:
            ports = (0,) * len(self.broker_ids)
        self._ports = arguments.ports("ports", ports, len(self.broker_ids), "brokers")
        self._zookeeper_ports = (
            None
            if zookeeper_ports is None
            else arguments.ports("zookeeper_ports", zookeeper_ports, zookeepers, "servers")
        )
        self._zookeeper_tcp: ZooKeeperTcp | None = None
        self._trace = arguments.file_path("trace", trace)
        self._data_dir = arguments.file_path("data_dir", data_dir)
        self._recorder: Any = None

    # -- life ----------------------------------------------------------------------------------

    def start(self) -> Cluster:
        """Start every process and wait until the cluster serves."""
        self._require_own_process()
        if self._started:
            raise UsageError("the cluster is already started")
        self._started = True
        try:
            self._assemble()
            self._start_recording()
            gateway = TcpGateway(self._sockets, self.processes, self.kafka_version)
            for process in self.processes.values():
                listener = process.spec.listener
                assert isinstance(listener, TcpListener)
                listener.gateway = gateway
                listener.max_request_bytes = process.spec.config["socket.request.max.bytes"]
                listener.idle_ms = process.spec.config["connections.max.idle.ms"]
                listener.queued_bytes_max = process.spec.config["queued.max.request.bytes"]
            self.runtime.run_in(None, self._start_processes)
            if self._zookeeper_ports is not None:
                self._serve_zookeeper(self._zookeeper_ports)
            self.wait_until(self._has_started, _START_TIMEOUT_S)
            self._create_initial_topics()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop everything: sockets, threads, actors; idempotent."""
        if "runtime" not in self.__dict__:
            return
        if self._sockets.thread.is_forked_away:  # the parent's threads are not here
            self._forget_parts()
            return
        for process in self.processes.values():
            listener = process.spec.listener
            assert isinstance(listener, TcpListener)
            listener.release()
        if self._zookeeper_tcp is not None:
            self._zookeeper_tcp.stop()
            self._zookeeper_tcp = None
        self.runtime.stop()
        for process in self.processes.values():
            if process.broker is not None and self._data_dir is not None:
                # Else replicas would begin at high watermark 0, and cut their logs there in 0.10.
                process.broker.replica_manager.checkpoint_high_watermarks()
            process.broker = None
            process.controller_node = None
            process.spec.disk.dispose()
        for zookeeper in self.zookeepers.values():
            zookeeper.node = None
            zookeeper.storage.close()
        if self._recorder is not None:
            self._recorder.close()
            self._recorder = None
        self._forget_parts()

    def _forget_parts(self) -> None:
        self._started = False
        for part in PARTS:
            self.__dict__.pop(part, None)

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Cluster:
        import asyncio

        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        import asyncio

        await asyncio.to_thread(self.stop)

    @property
    def bootstrap_servers(self) -> str:
        """``host:port`` of every broker, comma-separated, as clients want it.

        An IPv6 address stands in brackets.
        """
        host = f"[{self._host}]" if ":" in self._host else self._host
        return ",".join(f"{host}:{self.broker(broker_id).port}" for broker_id in self.broker_ids)

    @property
    def zookeeper_connect(self) -> str:
        """``host:port`` of every ZooKeeper server, for ZooKeeper clients such as kazoo.

        The servers listen from the first time this is asked, or from the start when
        ``zookeeper_ports`` is given.
        """
        if self._zookeeper_tcp is None:
            self._serve_zookeeper(None)
        assert self._zookeeper_tcp is not None
        return self._zookeeper_tcp.connect_string

    def _serve_zookeeper(self, ports: Sequence[int] | None) -> None:
        self._zookeeper_tcp = ZooKeeperTcp(
            self._sockets, list(self.zookeepers), host=self._host, ports=ports
        )
        self._zookeeper_tcp.start()

    # -- on this runtime -----------------------------------------------------------------------

    @property
    def _sockets(self) -> LiveRuntime | ThreadedRuntime:
        """The runtime, known to have an event loop for sockets."""
        assert isinstance(self.runtime, (LiveRuntime, ThreadedRuntime))
        return self.runtime

    def _make_runtime(self) -> Runtime:
        return _RUNTIMES[self._runtime_name]()

    def _make_listener(self, broker_id: int) -> TcpListener:
        port = self._ports[self.broker_ids.index(broker_id)]
        return TcpListener(self._sockets, broker_id, self._host, port)

    def _make_disk(self, broker_id: int) -> Disk:
        if self._data_dir is None:
            return super()._make_disk(broker_id)
        from ..replication.disk.files import FileDisk

        directory = self._data_dir / broker_name(broker_id)
        if self._log_dirs:
            return FileDisk(directories=[directory / name for name in self._log_dirs])
        return FileDisk(directory)

    def _make_zookeeper_storage(self, server_id: int) -> ZooKeeperStorage:
        if self._data_dir is None:
            return ZooKeeperStorage()
        from .zookeeper_journal import open_storage

        return open_storage(self._data_dir / f"zookeeper-{server_id}", server_id)

    def _require_going(self) -> None:
        super()._require_going()
        self._require_own_process()

    def _require_own_process(self) -> None:
        if "runtime" in self.__dict__:
            self._sockets.thread.require_own_process()

    def _require_waiting(self) -> None:
        self._require_going()
        if self._sockets.is_own_thread:
            raise UsageError(
                "a thread of the cluster cannot wait for the cluster: do in a thread of your own "
                "what an observer or a filter shall set off"
            )

    def _in_process(self, process: Any, function: Callable[[], T]) -> T:
        self._require_going()
        return super()._in_process(process, function)

    def call(self, function: Callable[[], Coroutine[Any, Any, T]], timeout_ms: float) -> T:
        self._require_waiting()
        done: concurrent.futures.Future[T] = concurrent.futures.Future()

        def finish(task: Pending[T]) -> None:
            error = task.exception
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(task.result())

        def start() -> None:
            Task(function()).add_done_callback(finish)

        self.runtime.run_in(self._admin.process, start)
        try:
            return done.result(timeout_ms / 1000)
        except concurrent.futures.TimeoutError:
            raise WaitTimeout(f"no outcome within {timeout_ms / 1000:g} s") from None

    def wait_until(self, condition: Callable[[], object], timeout_s: float = 10) -> None:
        """Wait until a condition holds; raises ``WaitTimeout`` after ``timeout_s``.

        The error names the condition and what its parts gave at last.
        """
        arguments.condition(condition)
        arguments.number("timeout_s", timeout_s, "seconds")
        self._require_waiting()
        deadline = time.monotonic() + timeout_s
        pause_s = _POLL_S
        while not condition():
            if time.monotonic() > deadline:
                text = failed_wait(condition, f"{timeout_s:g} s", self._state_text())
                raise WaitTimeout(text + _stood_still())
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 0.02)

    def reset(self) -> None:
        """Empty the cluster; faster than a new one.

        Every topic goes, with the committed offsets, and every dynamic configuration; every
        broker and ZooKeeper server is up; what a test set up has ended: cuts, losses, delays,
        holds, injections, observers.

        ``UsageError`` when a topic has replicas at brokers that this cluster does not have: as in
        Kafka it cannot be deleted without them.
        """
        reset(self)

    def _start_recording(self) -> None:
        if self._trace is None:
            return
        from ..tracing.header import build_header
        from ..tracing.recorder import LockedRecorder
        from ..tracing.writer import TraceWriter

        header = build_header(
            mode=self._runtime_name, kafka_version=self.kafka_version, config=self._config
        )
        self._recorder = LockedRecorder(TraceWriter(self._trace, header))
        self.runtime.recorder = self._recorder
