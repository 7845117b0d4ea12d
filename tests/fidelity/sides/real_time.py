"""The common part of the sides that run in real time and have sockets."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from fakekafka.tests.fidelity.protocol.client import Closed, Line
from fakekafka.tests.fidelity.sides.side import ClusterShape, Side, Znode
from fakekafka.tests.fidelity.sides.socket_line import SocketLine
from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

_POLL_S = 0.02
_SETTLE_S = 90.0
_PATIENCE_S = 8.0
"""Time in seconds without changes after which an expected change is given up, without load."""
_BUSY_AT = 4.0


class RealTimeSide(Side):
    """A cluster that is reached over TCP, and its ZooKeeper as well."""

    quiet_s = 1.0
    """Time in seconds without changes after which the cluster has settled."""

    def __init__(self, kafka_version: str, shape: ClusterShape) -> None:
        super().__init__(kafka_version, shape)
        self.addresses: dict[int, tuple[str, int]] = {}
        self.zookeeper_connect = ""
        self._zookeeper: KazooClient | None = None

    def line(self, broker: int) -> Line:
        return SocketLine(*self.addresses[broker])

    @property
    def zookeeper(self) -> KazooClient:
        if self._zookeeper is None:
            client = KazooClient(hosts=self.zookeeper_connect, timeout=20)
            try:
                client.start(timeout=20)
            except KazooTimeoutError as error:
                raise Closed(f"ZooKeeper at {self.zookeeper_connect}: {error}") from None
            self._zookeeper = client
        return self._zookeeper

    def znode(self, path: str) -> Znode | None:
        try:
            data, stat = self.zookeeper.get(path)
        except NoNodeError:
            return None
        return Znode(data or b"", stat.version, stat.czxid)

    def children(self, path: str) -> list[str] | None:
        try:
            return sorted(self.zookeeper.get_children(path))
        except NoNodeError:
            return None

    def create_znode(self, path: str, data: bytes, *, sequential: bool = False) -> bool:
        try:
            self.zookeeper.create(path, data, sequence=sequential)
        except (NodeExistsError, NoNodeError):
            return False
        return True

    def set_znode(self, path: str, data: bytes) -> bool:
        try:
            self.zookeeper.set(path, data)
        except NoNodeError:
            return False
        return True

    def delete_znode(self, path: str) -> bool:
        try:
            self.zookeeper.delete(path)
        except NoNodeError:
            return False
        return True

    def now_ms(self) -> int:
        return int(time.time() * 1000)

    def pass_time(self, seconds: float) -> None:
        time.sleep(seconds)

    def wait(self, condition: Callable[[], object], timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def settle(self, look: Callable[[], Any]) -> Any:
        quiet_s = self.quiet_s if self.expected is None else _patience_s()
        deadline = time.monotonic() + _SETTLE_S
        last: Any = None
        since = time.monotonic()
        while time.monotonic() < deadline:
            seen = look()
            if self.expected is not None and seen == self.expected:
                return seen
            if seen != last:
                last, since = seen, time.monotonic()
            elif time.monotonic() - since >= quiet_s:
                break
            time.sleep((10 if self.expected is None else 1) * _POLL_S)
        return last

    def close(self) -> None:
        if self._zookeeper is not None:
            self._zookeeper.stop()
            self._zookeeper.close()
            self._zookeeper = None


def _patience_s() -> float:
    """Return the patience in seconds, which is longer under load."""
    return _PATIENCE_S * max(1.0, os.getloadavg()[0] / _BUSY_AT)
