"""A ZooKeeper client that sends single requests, as an operator's shell does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...actors.session_node import SessionNode
from ...protocol.errors import UsageError
from ...protocol.names import ZOOKEEPER_SHELL
from ...zkfake.messages import Request, ZkResponse, ZooKeeperError

if TYPE_CHECKING:
    from ...actors.interfaces import Process
    from ...actors.runtime.runtime import Runtime
    from ..running import RunningCluster

_SESSION_TIMEOUT_MS = 6000
_TIMEOUT_MS = 10_000


class ZooKeeperShell(SessionNode):
    """A session with the ensemble for one request."""

    def __init__(
        self, runtime: Runtime, name: str, process: Process, servers: tuple[str, ...]
    ) -> None:
        super().__init__(runtime, name, process, servers, _SESSION_TIMEOUT_MS)

    async def carry_out(self, request: Request) -> ZkResponse:
        """Return the answer to a request; ``UsageError`` if no server answers in time."""
        client = self.zk_client
        timeout_timer = self.call_later_ms(_TIMEOUT_MS, client.close)
        try:
            client.start()
            await client.wait_until_connected()
            answer = await client.handle_request(request)
            timeout_timer.cancel()
            await client.close()
        except ZooKeeperError as error:
            raise UsageError(
                f"no ZooKeeper server answered within {_TIMEOUT_MS / 1000:g} s; a majority of "
                "the servers must run and reach each other"
            ) from error
        finally:
            timeout_timer.cancel()
        return answer


def send(running: RunningCluster, request: Any) -> ZkResponse:
    """Send a request in a session of its own and return the answer."""
    running.require_waiting()
    runtime = running.runtime
    admin = running.admin.process
    servers = tuple(process.name for process in running.zookeepers.values())
    shells: list[ZooKeeperShell] = []

    async def ask() -> ZkResponse:
        shell = runtime.spawn(ZooKeeperShell, ZOOKEEPER_SHELL, admin, servers)
        shells.append(shell)
        answer: ZkResponse = await shell.carry_out(request)
        return answer

    try:
        return running.call(ask, 2 * _TIMEOUT_MS)
    finally:
        for shell in shells:
            running.in_process(admin, shell.halt)
