"""Writing to ZooKeeper from outside the cluster, as an operator with a shell does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..actors.node import Node
from ..protocol.errors import UsageError
from ..protocol.names import ZOOKEEPER_SHELL
from ..zkfake.client.client import ZooKeeperClient
from ..zkfake.messages import Request, ZkCode, ZkResponse, ZooKeeperError

if TYPE_CHECKING:
    from ..actors.delivery import Delivery
    from ..actors.runtime.runtime import Runtime
    from ..actors.surroundings import Process
    from .assembly import ClusterBase

_SESSION_TIMEOUT_MS = 6000
_PATIENCE_MS = 10_000


class ZooKeeperShell(Node):
    """One session with the ensemble, for one request."""

    def __init__(
        self, runtime: Runtime, name: str, process: Process, servers: tuple[str, ...]
    ) -> None:
        super().__init__(runtime, name, process)
        self.client = ZooKeeperClient(self, servers, _SESSION_TIMEOUT_MS)

    def handle(self, delivery: Delivery) -> None:
        if not self.client.on_message(delivery.sender.name, delivery.message):
            super().handle(delivery)

    def peer_lost(self, machine: str, names: frozenset[str]) -> None:
        super().peer_lost(machine, names)
        for name in sorted(names):
            self.client.on_disconnect(name)

    def on_halt(self) -> None:
        self.client.abandon()

    async def carry_out(self, request: Request) -> ZkResponse:
        """The answer to a request; ``UsageError`` when nobody answers in time."""
        client = self.client
        patience = self.call_later_ms(_PATIENCE_MS, client.close)
        try:
            client.start()
            await client.wait_until_connected()
            answer = await client.handle_request(request)
            patience.cancel()
            await client.close()
        except ZooKeeperError as error:
            raise UsageError(
                f"no ZooKeeper server answered within {_PATIENCE_MS / 1000:g} s; a majority of "
                "the servers must run and reach each other"
            ) from error
        finally:
            patience.cancel()
        return answer


def send(cluster: ClusterBase, request: Any) -> ZkResponse:
    """Send a request in a session of its own; refusals are ``UsageError``."""
    cluster._require_waiting()
    runtime = cluster.runtime
    admin = cluster._admin.process
    servers = tuple(process.name for process in cluster.zookeepers.values())
    shells: list[ZooKeeperShell] = []

    async def ask() -> ZkResponse:
        shell = runtime.spawn(ZooKeeperShell, ZOOKEEPER_SHELL, admin, servers)
        shells.append(shell)
        answer: ZkResponse = await shell.carry_out(request)
        return answer

    try:
        answer = cluster.call(ask, 2 * _PATIENCE_MS)
    finally:
        for shell in shells:
            cluster._in_process(admin, shell.halt)
    if not answer.is_ok:
        raise UsageError(_refusal(cluster, answer.code, request))
    return answer


def _refusal(cluster: ClusterBase, code: ZkCode, request: Any) -> str:
    path = request.path
    if code is ZkCode.NONODE:
        return f"there is no znode {path!r}" + _missing_parent(cluster, path)
    if code is ZkCode.NODEEXISTS:
        return f"znode {path!r} is already there"
    if code is ZkCode.NOTEMPTY:
        return f"znode {path!r} has children: {', '.join(cluster.zookeeper.children(path))}"
    if code is ZkCode.BADVERSION:
        version = cluster.zookeeper.stat(path).version
        return f"znode {path!r} has version {version}, not {request.version}"
    return f"{type(request).__name__} for {path!r}: {code.name}"


def _missing_parent(cluster: ClusterBase, path: str) -> str:
    parent = path.rsplit("/", 1)[0]
    while parent and parent not in cluster.zookeeper.tree():
        path, parent = parent, parent.rsplit("/", 1)[0]
    return f": {path!r} is missing"
