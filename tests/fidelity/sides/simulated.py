"""A side in virtual time: a scenario of minutes takes milliseconds, and is deterministic."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fakekafka.protocol.errors import NotThereYet, UsageError
from fakekafka.testing.simulation import Simulation
from fakekafka.tests.fidelity.protocol.client import Line
from fakekafka.tests.fidelity.sides.emulated import EmulatedSide
from fakekafka.tests.fidelity.sides.side import ClusterShape, Znode
from fakekafka.tests.fidelity.sides.virtual_lines import VirtualLine, VirtualListener
from fakekafka.tests.support.present import present

_QUIET_MS = 1500
_SETTLE_ROUNDS_MAX = 20
_POLL_MS = 50


class SimulatedSide(EmulatedSide):
    """A ``Simulation``."""

    name = "simulation"

    def __init__(self, kafka_version: str, shape: ClusterShape, seed: int = 1) -> None:
        super().__init__(kafka_version, shape)
        self.cluster = self.simulation = Simulation(
            shape.brokers,
            seed=seed,
            kafka_version=kafka_version,
            config=shape.configuration(),
            racks=list(shape.racks[: shape.brokers]) or None,
            trace=False,
        )
        self._failed: dict[int, list[int]] = {}
        self._listeners: dict[int, VirtualListener] = {}
        self.up = set(self.broker_ids)

    def fail_directory(self, broker: int, partition: str) -> None:
        handle = self.simulation.broker(broker)
        for position, directory in enumerate(handle.log_dirs):
            if any(f"{log.topic}-{log.partition}" == partition for log in directory.replicas):
                handle.fail_log_dir(position)
                self._failed.setdefault(broker, []).append(position)

    def repair_directories(self, broker: int) -> None:
        for position in self._failed.pop(broker, []):
            self.simulation.broker(broker).repair_log_dir(position)

    def end_session(self, broker: int) -> None:
        """End the session after cutting the broker off, like ``SessionProxy``: no watch reports it.

        A controller that thaws would otherwise read the watch first, wait for a new session, and
        drop queued AlterIsr requests without a response (AlterIsrReceived.preempt).
        """
        try:
            owner = self.simulation.zookeeper.stat(f"/brokers/ids/{broker}").ephemeral_owner
        except NotThereYet:
            return
        self._cut_off(owner)
        self.simulation.zookeeper.end_session(owner, self.simulation.processes[broker].name)
        super().end_session(broker)

    def _cut_off(self, session_id: int) -> None:
        for process in self.simulation.zookeepers.values():
            server = present(process.server)
            connection = server.connections.by_session.get(session_id)
            if connection is not None:
                close = partial(server.close_connection, connection)
                self.simulation.runtime.run_in(process.process, close)

    def line(self, broker: int) -> Line:
        if broker not in self._listeners:
            self._listeners[broker] = VirtualListener(self.simulation, broker)
        return VirtualLine(self.simulation, self._listeners[broker], broker)

    def let_brokers_ask(self) -> None:
        for process in self.simulation.processes.values():
            for channel in present(process.broker).controller_channels:
                channel._controller.forget()
                channel.look_up()

    def znode(self, path: str) -> Znode | None:
        try:
            data = self.simulation.zookeeper.get(path)
            stat = self.simulation.zookeeper.stat(path)
        except NotThereYet:
            return None
        return Znode(data or b"", stat.version, stat.czxid)

    def children(self, path: str) -> list[str] | None:
        try:
            return self.simulation.zookeeper.children(path)
        except NotThereYet:
            return None

    def create_znode(self, path: str, data: bytes, *, sequential: bool = False) -> bool:
        try:
            self.simulation.zookeeper.create(path, data, sequential=sequential)
        except UsageError:
            return False
        return True

    def set_znode(self, path: str, data: bytes) -> bool:
        try:
            self.simulation.zookeeper.set(path, data)
        except UsageError:
            return False
        return True

    def delete_znode(self, path: str) -> bool:
        try:
            self.simulation.zookeeper.delete(path)
        except UsageError:
            return False
        return True

    def now_ms(self) -> int:
        return self.simulation.runtime.now_ms()

    def pass_time(self, seconds: float) -> None:
        self.simulation.run_for(seconds * 1000)

    def wait(self, condition: Callable[[], object], timeout_s: float) -> bool:
        try:
            self.simulation.run_until(condition, timeout_s * 1000, every_ms=_POLL_MS)
        except TimeoutError:
            return False
        return True

    def settle(self, look: Callable[[], Any]) -> Any:
        seen = self._last_zxid()
        for _ in range(_SETTLE_ROUNDS_MAX):
            self.simulation.run_for(_QUIET_MS)
            now = self._last_zxid()
            if now == seen:
                break
            seen = now
        return look()

    def _last_zxid(self) -> int:
        (process,) = self.simulation.zookeepers.values()
        return process.server.last_zxid

    def close(self) -> None:
        self.simulation.stop()
