"""Handles of brokers, of the controller and of ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..protocol.errors import UsageError
from ..protocol.values import PartitionReplica, TopicPartition
from ..zkfake.messages import (
    ANY_VERSION,
    CreateRequest,
    DeleteRequest,
    SetDataRequest,
    ZkCode,
    ZooKeeperError,
)
from . import arguments
from .metrics import broker_metrics
from .zookeeper_writes import send

if TYPE_CHECKING:
    from ..actors.broker.process import BrokerProcess
    from ..actors.delivery import Delivery
    from ..zkfake.messages import Stat
    from .assembly import ClusterBase

_SHUTDOWN_TIMEOUT_MS = 120000


class BrokerHandle:
    """One broker: end it, bring it back, freeze it. Every method waits until it is done."""

    def __init__(self, cluster: ClusterBase, process: BrokerProcess) -> None:
        self._cluster = cluster
        self._process = process

    def __repr__(self) -> str:
        return f"<broker {self.id} {self._process.state}>"

    @property
    def id(self) -> int:
        return self._process.spec.broker_id

    @property
    def name(self) -> str:
        return self._process.name

    @property
    def is_alive(self) -> bool:
        self._cluster._require_own_process()
        return self._process.is_alive

    @property
    def state(self) -> str:
        """``starting``, ``running``, ``pending_controlled_shutdown``, ``shutting_down`` or
        ``not_running``."""
        self._cluster._require_own_process()
        return self._process.state

    @property
    def port(self) -> int:
        """TCP port; the same over restarts. 9092 in a simulation."""
        return getattr(self._process.spec.listener, "port", 9092)

    @property
    def metrics(self) -> dict[str, Any]:
        """Kafka's metrics of this broker by name: its replicas', and its controller's.

        Those of an inactive controller are 0. ``UsageError`` when the broker is not running.
        """
        broker = self._process.broker
        if broker is None:
            raise UsageError(f"{self.name} is not running; it has no metrics")
        process = self._process.process
        return dict(self._cluster._in_process(process, lambda: broker_metrics(broker)))

    def _run(self, function: Callable[[], Any]) -> Any:
        self._cluster._require_going()
        return self._cluster._in_process(self._process.process, function)

    def kill(self) -> None:
        """End the process as ``kill -9`` does; its disk keeps all that was appended."""
        self._run(self._process.kill)

    def power_off(self) -> None:
        """Cut the power: unflushed data is lost and peers hear nothing of it."""
        self._run(self._process.power_off)

    def shutdown(self) -> bool:
        """Shut down in control; False when leadership of some partition could not be moved."""
        self._cluster._require_waiting()
        pending = self._run(self._process.shutdown)
        self._cluster.wait_until(
            lambda: pending.done and not self._process.is_alive, _SHUTDOWN_TIMEOUT_MS / 1000
        )
        return bool(pending.result())

    def begin_shutdown(self) -> None:
        """Start a controlled shutdown without waiting for its end."""
        self._run(self._process.shutdown)

    def start(self, *, wait: bool = True) -> None:
        """Start a broker that is down, with the disk it had; waits until it serves.

        Raises what kept it from starting: ``RequestTimeout`` without ZooKeeper, ``KafkaError``
        KAFKA_STORAGE_ERROR when every log directory is offline.
        """
        if wait:
            self._cluster._require_waiting()
        self._run(self._process.start)
        broker = self._process.broker
        if wait and broker is not None:
            running = broker.running
            self._cluster.wait_until(lambda: running.done and self.state != "starting", 30)
            running.result()

    def restart(self) -> None:
        """Shut down in control and start again; kill first for a crash."""
        self.shutdown()
        self.start()

    def pause(self) -> None:
        """Freeze the process, as a long garbage collection does; ``UsageError`` without one."""
        self._require_running("nothing to pause")
        self._run(lambda: self._process.runtime.pause(self._process.process))
        self._process.runtime.note("fault", self.name, "paused")

    def resume(self) -> None:
        """Let a paused process go on with everything that waited."""
        self._require_running("nothing to resume")
        self._run(lambda: self._process.runtime.resume(self._process.process))
        self._process.runtime.note("fault", self.name, "resumed")

    def _require_running(self, consequence: str) -> None:
        self._cluster._require_going()
        if not self._process.is_alive:
            raise UsageError(f"{self.name} is not running; there is {consequence}")

    def fail_log_dir(self, directory: int = 0) -> None:
        """Let one of the broker's log directories fail, the first by default.

        The broker goes on with the others (``config={"log.dirs": "a,b"}``); with the last one its
        process ends, before Kafka 1.0 with any.
        """
        arguments.integer("directory", directory)
        broker = self._process.broker
        if broker is None:
            raise UsageError(f"{self.name} is not running")
        if self._run(lambda: broker.fail_log_dir(directory)):
            self._cluster.wait_until(lambda: not self._process.is_alive)

    def repair_log_dir(self, directory: int = 0) -> None:
        """Put a failed log directory in order: the broker finds its content at the next start."""
        arguments.integer("directory", directory)
        disk = self._process.spec.disk
        if not 0 <= directory < len(disk.directories):
            raise UsageError(
                f"{self.name} has no log directory {directory}; there are {len(disk.directories)}"
            )
        self._run(lambda: disk.repair(disk.directories[directory]))


class ControllerHandle:
    """The active controller, wherever it is."""

    def __init__(self, cluster: ClusterBase) -> None:
        self._cluster = cluster

    def _active(self) -> Any:
        """The controller with the highest epoch: one cut off may not know it was deposed."""
        self._cluster._require_own_process()
        return max(self._actives(), key=lambda controller: controller.epoch, default=None)

    def _actives(self) -> list[Any]:
        """All that take themselves for the controller."""
        brokers = [process.broker for process in self._cluster.processes.values()]
        controllers = [broker.controller for broker in brokers if broker is not None]
        return [controller for controller in controllers if controller.is_active]

    def _require(self) -> Any:
        controller = self._active()
        if controller is None:
            raise UsageError("no controller is active now; wait_until(cluster.controller.id)")
        return controller

    @property
    def id(self) -> int | None:
        """Broker id of the active controller; None during an election."""
        controller = self._active()
        return None if controller is None else controller.broker_id

    @property
    def epoch(self) -> int:
        return int(self._require().epoch)

    def partition_state(self, topic: str, partition: int) -> str:
        """State in the partition state machine, such as ``OnlinePartition``."""
        key = TopicPartition(*arguments.partition_key("partition", (topic, partition)))
        state = self._require().context.partition_state(key)
        return str(state)

    def replica_state(self, topic: str, partition: int, broker_id: int) -> str:
        """State in the replica state machine, such as ``OnlineReplica``."""
        key = arguments.partition_key("partition", (topic, partition))
        replica = PartitionReplica(*key, arguments.integer("broker_id", broker_id))
        state = self._require().context.replica_state(replica)
        return str(state)

    @property
    def metrics(self) -> dict[str, Any]:
        """Kafka's controller metrics by name."""
        controller = self._require()
        process = self._cluster.processes[controller.broker_id].process
        return dict(self._cluster._in_process(process, controller.metrics.snapshot))

    def resign(self) -> None:
        """Delete /controller: every broker takes part in a new election."""
        controller = self._require()

        async def resign() -> None:
            try:
                await controller.zk.requests.delete_path("/controller")
            except ZooKeeperError as error:
                if error.code != ZkCode.SESSIONEXPIRED:  # else the znode went with the session
                    raise

        old_epoch = controller.epoch
        self._cluster.call(resign, 10000)
        self._cluster.wait_until(
            lambda: self._active() is not None and self._active().epoch > old_epoch
        )

    def move_to(self, broker_id: int) -> None:
        """Make a broker the active controller.

        ``/controller`` is deleted, as ``resign`` does, while ZooKeeper's news to all other brokers
        are on their way: so this one is the first to hear and to be elected. No effect when it
        is the controller; ``WaitTimeout`` when it cannot be, being paused or cut off.
        """
        cluster = self._cluster
        chosen = cluster.broker(broker_id)
        self._require()
        if chosen.state != "running":
            raise UsageError(f"{chosen.name} is {chosen.state}; it cannot become the controller")
        if self.id == broker_id:
            return
        others = {process.name for process in cluster.processes.values()} - {chosen.name}
        servers = {process.name for process in cluster.zookeepers.values()}

        def is_news_to_others(delivery: Delivery) -> bool:
            return delivery.sender.machine in servers and delivery.target.machine in others

        hold = cluster.network.hold(is_news_to_others)
        try:
            cluster.zookeeper.delete("/controller")
            cluster.wait_until(lambda: self.id == broker_id)
        finally:
            hold.end()
        # Until the former one has heard, it takes itself for the controller.
        cluster.wait_until(lambda: len(self._actives()) == 1)


class ZooKeeperHandle:
    """The znode tree and the servers behind it."""

    def __init__(self, cluster: ClusterBase) -> None:
        self._cluster = cluster

    def _tree(self) -> Any:
        self._cluster._require_own_process()
        alive = [p for p in self._cluster.zookeepers.values() if p.is_alive]
        if not alive:
            raise UsageError("no ZooKeeper server is running")
        serving = [p for p in alive if p.server.is_serving]
        return max(serving or alive, key=lambda p: p.server.last_zxid).server

    def _read_node(self, path: str, function: Callable[[Any], Any]) -> Any:
        """Read a znode, which must exist."""
        arguments.path("path", path)
        try:
            return self._read(function)
        except ZooKeeperError as error:
            if error.code is not ZkCode.NONODE:
                raise
            raise UsageError(f"there is no znode {path!r}") from None

    def _read(self, function: Callable[[Any], Any]) -> Any:
        server = self._tree()
        process = next(
            p.process
            for p in self._cluster.zookeepers.values()
            if p.is_alive and p.server is server
        )
        return self._cluster._in_process(process, lambda: function(server))

    def get(self, path: str) -> bytes | None:
        """Data of a znode; ``UsageError`` when it does not exist."""
        data: bytes | None = self._read_node(path, lambda server: server.get(path))
        return data

    def stat(self, path: str) -> Stat:
        """Versions and times of a znode; ``UsageError`` when it does not exist."""
        stat: Stat = self._read_node(path, lambda server: server.stat(path))
        return stat

    def children(self, path: str) -> list[str]:
        """Names of the children, sorted; ``UsageError`` when the znode does not exist."""
        return sorted(self._read_node(path, lambda server: server.children(path)))

    def tree(self) -> dict[str, bytes | None]:
        """Every path with its data, sorted."""
        return dict(sorted(self._read(lambda server: server.tree()).items()))

    def create(self, path: str, data: bytes | str | None = b"", *, sequential: bool = False) -> str:
        """Create a persistent znode; gives its path, which ``sequential`` ends with a counter.

        This and the next two go through a session of their own, as an operator's shell does.
        ``UsageError`` when it is there already, its parent is not, or no majority of servers runs.
        """
        arguments.path("path", path)
        stored = arguments.record_bytes("data", data)
        request = CreateRequest(path, stored, sequential=bool(sequential))
        return str(send(self._cluster, request).path)

    def set(self, path: str, data: bytes | str | None, *, version: int = ANY_VERSION) -> Stat:
        """Replace the data of a znode; ``UsageError`` unless it has that version, if one is given.

        Gives its new versions and times.
        """
        arguments.path("path", path)
        stored = arguments.record_bytes("data", data)
        arguments.integer("version", version, ANY_VERSION)
        stat = send(self._cluster, SetDataRequest(path, stored, version)).stat
        assert stat is not None
        return stat

    def delete(self, path: str, *, version: int = ANY_VERSION, recursive: bool = False) -> None:
        """Delete a znode, with all below it if ``recursive``.

        ``UsageError`` unless it has that version, if one is given, or when it has children.
        """
        arguments.path("path", path)
        arguments.integer("version", version, ANY_VERSION)
        if recursive:
            for name in self.children(path):
                self.delete(f"{path}/{name}", recursive=True)
        send(self._cluster, DeleteRequest(path, version))

    def expire_session(self, broker_id: int) -> None:
        """Expire a broker's session at the server, as if its heartbeats had stayed away."""
        process = self._cluster.broker(broker_id)._process
        node = process.controller_node
        if node is None:
            raise UsageError(f"broker {broker_id} is not running; it has no session")
        self._cluster._require_going()
        session_id = node.zk_client.session_id
        self._cluster.runtime.note("fault", process.name, "session expired")
        self._read(lambda server: server.expire_session(session_id))

    def server(self, server_id: int) -> ZooKeeperServerHandle:
        """Handle of a server; ids run from 1."""
        arguments.integer("server_id", server_id)
        ids = list(self._cluster.zookeepers)
        if server_id not in ids:
            raise UsageError(f"there is no ZooKeeper server {server_id}; ids are {ids}")
        return ZooKeeperServerHandle(self._cluster, server_id)


class ZooKeeperServerHandle:
    """One ZooKeeper server."""

    def __init__(self, cluster: ClusterBase, server_id: int) -> None:
        self._cluster = cluster
        self._process = cluster.zookeepers[server_id]

    @property
    def is_alive(self) -> bool:
        self._cluster._require_own_process()
        return self._process.is_alive

    def kill(self) -> None:
        """End the process; what it logged stays in its storage."""
        self._cluster._require_going()
        self._cluster._in_process(self._process.process, self._process.kill)

    def start(self) -> None:
        """Start it again with its storage."""
        self._cluster._require_going()
        self._cluster._in_process(self._process.process, self._process.start)
