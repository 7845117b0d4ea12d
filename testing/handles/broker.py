"""Handle of a broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...protocol.awaiting import Cancelled
from ...protocol.errors import ErrorCode, KafkaError, NotThereYet, UsageError
from .. import arguments
from ..parameters.cluster_kinds import LOG_DIR
from ..parameters.kinds import CLOCK_SHIFT
from ..views import LogDirView, StoredReplicaView
from .clock_rate import clock_rate, set_clock_rate
from .partitions import partition_key
from .zookeeper import ZooKeeperHandle

if TYPE_CHECKING:
    from ...actors.broker.broker import Broker
    from ...actors.broker.process import BrokerProcess
    from ..running import RunningCluster

_SHUTDOWN_TIMEOUT_MS = 120000


class BrokerHandle:
    """A broker that can be stopped, started and frozen. Methods wait until they take effect."""

    __slots__ = ("_process", "_running")

    def __init__(self, running: RunningCluster, process: BrokerProcess) -> None:
        self._running = running
        self._process = process

    def __repr__(self) -> str:
        paused = ", paused" if self._process.process.paused else ""
        return f"<broker {self.id} {self._process.state}{paused}, port {self.port}>"

    @property
    def id(self) -> int:
        """Broker id."""
        return self._process.spec.broker_id

    @property
    def name(self) -> str:
        """Name of the broker in traces and on the network, such as ``broker-1``."""
        return self._process.name

    @property
    def is_alive(self) -> bool:
        """True while the broker's process runs."""
        self._running.require_own_process()
        return self._process.is_alive

    @property
    def is_paused(self) -> bool:
        """True while the broker is frozen by ``pause``."""
        self._running.require_own_process()
        return self._process.process.paused

    @property
    def state(self) -> str:
        """State of the broker: ``starting``, ``running``, ``pending_controlled_shutdown``,
        ``shutting_down`` or ``not_running``."""
        self._running.require_own_process()
        return self._process.state

    @property
    def port(self) -> int:
        """TCP port of the first listener, which restarts keep; 9092 in a simulation."""
        return getattr(self._process.spec.listener, "port", 9092)

    @property
    def ports(self) -> dict[str, int]:
        """TCP ports of all listeners, by listener name."""
        return getattr(self._process.spec.listener, "ports", {"PLAINTEXT": 9092})

    @property
    def metrics(self) -> dict[str, Any]:
        """Metrics of the broker's replicas and its controller, by Kafka's names.

        Those of an inactive controller are 0. ``NotThereYet`` if the broker is not running.
        """
        broker = self._process.broker
        if broker is None:
            raise NotThereYet(f"{self.name} is not running; it has no metrics")
        process = self._process.process
        return dict(self._running.in_process(process, lambda: _broker_metrics(broker)))

    def _run(self, function: Callable[[], Any]) -> Any:
        self._running.require_going()
        return self._running.in_process(self._process.process, function)

    def kill(self, *, expire_session: bool = False) -> None:
        """End the process as ``kill -9`` does; its disk keeps everything that was appended.

        ``expire_session`` ends its ZooKeeper session at once, so that the controller learns of the
        death without waiting for the session timeout.
        """
        node = self._process.controller_node if expire_session else None
        zookeeper = ZooKeeperHandle(self._running)
        if node is not None:
            zookeeper.require_server()
        self._run(self._process.kill)
        if node is not None:
            zookeeper.end_session(node.zk_client.session_id, self.name)

    def power_off(self, *, torn: bool = False) -> None:
        """Cut the power: unflushed data is lost, and peers are not notified.

        ``torn`` cuts it in the middle of a write: each log ends at a random point, given by the
        seed, between its flushed end and its last append, perhaps inside a batch. Log recovery at
        the next start truncates such a batch.
        """
        self._run(lambda: self._process.power_off(torn=torn))

    def shutdown(self) -> bool:
        """Perform a controlled shutdown; return False if the leadership of a partition could not
        be moved.

        Raises ``KafkaError`` BROKER_NOT_AVAILABLE if the broker is killed before it is done.
        """
        self._running.require_waiting()
        pending = self._run(self._process.shutdown)
        self._running.wait_until(
            lambda: pending.done and not self._process.is_alive, _SHUTDOWN_TIMEOUT_MS / 1000
        )
        try:
            return bool(pending.result())
        except Cancelled:
            self._running.require_going()
            raise KafkaError(
                ErrorCode.BROKER_NOT_AVAILABLE,
                f"{self.name} was killed before its controlled shutdown was done",
            ) from None

    def begin_shutdown(self) -> None:
        """Start a controlled shutdown without waiting for its end."""
        self._run(self._process.shutdown)

    def start(self, *, wait: bool = True) -> None:
        """Start a stopped broker with the disk it had, and wait until it serves.

        Raises an error if the broker cannot start: ``RequestTimeout`` without ZooKeeper,
        ``KafkaError`` KAFKA_STORAGE_ERROR if every log directory is offline.
        """
        if wait:
            self._running.require_waiting()
        self._run(self._process.start)
        if wait:
            running = self._process.running
            self._running.wait_until(lambda: running.done and self.state != "starting", 30)
            running.result()

    def restart(self) -> None:
        """Perform a controlled shutdown, then start; for a crash use ``kill`` and ``start``."""
        self.shutdown()
        self.start()

    def pause(self) -> None:
        """Freeze the process, as a long garbage collection does; ``UsageError`` if it is down."""
        self._require_running("nothing to pause")
        self._process.runtime.note("fault", self.name, "paused")
        self._run(lambda: self._process.runtime.pause(self._process.process))

    def resume(self) -> None:
        """Resume a paused process, which then handles everything that waited for it."""
        self._require_running("nothing to resume")
        self._process.runtime.note("fault", self.name, "resumed")
        self._run(lambda: self._process.runtime.resume(self._process.process))

    def shift_clock(self, shift_ms: float) -> None:
        """Shift the wall clock of the broker's machine forward, or back if negative.

        The wall clock gives the timestamps of ``LogAppendTime``, offsets, transactions and tokens,
        and decides what has expired by date. Timeouts and timers do not follow it. Restarts keep
        the shift.
        """
        CLOCK_SHIFT.check("shift_ms", shift_ms)
        self._run(lambda: self._process.shift_clock(round(shift_ms)))

    @property
    def clock_shift_ms(self) -> int:
        """Milliseconds by which the wall clock of the broker's machine is ahead, due to
        ``shift_clock`` and ``set_clock_rate``; negative if it is behind."""
        self._running.require_own_process()
        process = self._process.process
        now_us = self._process.runtime.now_us
        ahead_ms: int = self._running.in_process(
            process, lambda: process.clock.wall_ahead_ms(now_us())
        )
        return ahead_ms

    def set_clock_rate(self, rate: float) -> None:
        """Run the clocks of the broker's machine ``rate`` times as fast as usual, from 0.1 to 10.

        Elapsed times, timers and dates of the broker follow these clocks. Timers already set
        expire sooner or later accordingly, and no clock jumps. Restarts keep the rate; a rate of 1
        leaves the clocks as far ahead or behind as they are by then.
        """
        self._running.require_going()
        set_clock_rate(self._running, self._process.process, rate)

    @property
    def clock_rate(self) -> float:
        """Rate of the clocks of the broker's machine; 1 is the usual rate."""
        self._running.require_own_process()
        return clock_rate(self._process.process)

    def _require_running(self, consequence: str) -> None:
        self._running.require_going()
        if not self._process.is_alive:
            raise UsageError(f"{self.name} is not running; there is {consequence}")

    @property
    def log_dirs(self) -> tuple[LogDirView, ...]:
        """The broker's log directories with the logs in each, including the future logs of moves.

        ``UsageError`` if the broker is not running.
        """
        broker = self._process.broker
        if broker is None:
            raise UsageError(f"{self.name} is not running; start it before you look at its disk")
        log_dirs = broker.replica_manager.log_dirs
        process = self._process.process
        described = self._running.in_process(process, lambda: log_dirs.describe(None))
        return tuple(
            LogDirView(
                directory.path,
                directory.error == ErrorCode.NONE,
                tuple(
                    StoredReplicaView(
                        *replica.topic_partition,
                        replica.size_bytes,
                        replica.offset_lag,
                        replica.is_future,
                    )
                    for replica in directory.replicas
                ),
                directory.total_bytes,
                directory.usable_bytes,
            )
            for directory in described
        )

    def move_replica(self, topic: str, partition: int, log_dir: str) -> None:
        """Begin to move this broker's replica to another of its log directories (KIP-113).

        ``move_replica("orders", 0, "second")`` with ``config={"log.dirs": "first,second"}``;
        ``log_dirs`` shows the progress. Raises ``KafkaError`` with the code that
        AlterReplicaLogDirs answers: LOG_DIR_NOT_FOUND, KAFKA_STORAGE_ERROR, REPLICA_NOT_AVAILABLE.
        """
        key = partition_key(topic, partition)
        path = arguments.text("log_dir", log_dir)
        broker = self._process.broker
        if broker is None:
            raise UsageError(f"{self.name} is not running")
        log_dirs = broker.replica_manager.log_dirs
        ((_, error),) = self._run(lambda: log_dirs.alter(((key, path),)))
        if error != ErrorCode.NONE:
            known = ", ".join(self._process.spec.disk.directories)
            raise KafkaError(error, f"{key} of {self.name} cannot move to {path!r}; it has {known}")

    def fail_log_dir(self, directory: int = 0) -> None:
        """Fail one of the broker's log directories, the first by default.

        The broker continues with the others (``config={"log.dirs": "a,b"}``). Its process ends when
        the last one fails; before Kafka 1.0, when any fails.
        """
        LOG_DIR.check("directory", directory)
        broker = self._process.broker
        if broker is None:
            raise UsageError(f"{self.name} is not running")
        if self._run(lambda: broker.fail_log_dir(directory)):
            self._running.wait_until(lambda: not self._process.is_alive)

    def repair_log_dir(self, directory: int = 0) -> None:
        """Repair a failed log directory; the broker uses it again after its next start."""
        LOG_DIR.check("directory", directory)
        disk = self._process.spec.disk
        if not 0 <= directory < len(disk.directories):
            raise UsageError(
                f"{self.name} has no log directory {directory}; there are {len(disk.directories)}"
            )
        self._run(lambda: disk.repair(disk.directories[directory]))


def _broker_metrics(broker: Broker) -> dict[str, Any]:
    """Return the metrics of the replica manager and of the controller (0 while it is inactive).

    Meters (``...PerSec``) are given as their counts since the broker started.
    """
    replicas = broker.replica_manager
    return {
        "LeaderCount": replicas.leader_count,
        "PartitionCount": replicas.partition_count,
        "OfflineReplicaCount": replicas.offline_count,
        "UnderReplicatedPartitions": replicas.under_replicated_count,
        "UnderMinIsrPartitionCount": replicas.under_min_isr_count,
        "AtMinIsrPartitionCount": replicas.at_min_isr_count,
        "IsrShrinksPerSec": replicas.isr_shrinks,
        "IsrExpandsPerSec": replicas.isr_expands,
        "FailedIsrUpdatesPerSec": replicas.failed_isr_updates,
        "MaxLag": broker.fetcher_manager.lag_max,
        **broker.controller.metrics.snapshot(),
    }
