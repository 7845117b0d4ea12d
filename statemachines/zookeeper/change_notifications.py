"""Follows the sequential znodes that notify every broker of a change.

Kafka: ``ZkNodeChangeNotificationListener``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from ...protocol import znode_paths
from ...protocol.awaiting import Cancelled, Task
from ...protocol.host import Host
from ...zkfake.messages import ZkCode
from .client import KafkaZkClient
from .errors import Log

_EXPIRATION_MS = 15 * 60 * 1000


class ChangeNotifications:
    """Applies notifications in order, each once, and deletes those older than 15 minutes."""

    def __init__(
        self,
        host: Host,
        zk: KafkaZkClient,
        path: str,
        apply: Callable[[bytes], Awaitable[object]],
        log: Log,
    ) -> None:
        self._host = host
        self._zk = zk
        self.path: str = path
        """Path of the notifications' parent node."""
        self._apply = apply
        self._log = log
        self._last_executed = -1
        self._is_due = False
        self._task: Task[None] | None = None

    async def start(self) -> None:
        """Apply existing notifications, and follow new ones from now on."""
        client = self._zk.requests.client
        client.register_state_change_handler(self._handler_name, self)
        client.register_child_change_handler(self.path, self)
        await self._process()

    def stop(self) -> None:
        """Stop following; cancels the notification that is being applied."""
        client = self._zk.requests.client
        client.unregister_state_change_handler(self._handler_name)
        client.unregister_child_change_handler(self.path)
        if self._task is not None:
            self._task.cancel()

    def has_applied(self, names: Iterable[str]) -> bool:
        """Return whether each of the named notifications was applied or skipped."""
        return all(znode_paths.sequence_number(name) <= self._last_executed for name in names)

    @property
    def _handler_name(self) -> str:
        return f"change-notification-{self.path}"

    def on_child_change(self) -> None:
        """Process the notifications soon, as one was created or deleted."""
        if not self._is_due:
            self._is_due = True
            self._host.call_later_ms(0, self._run)

    def after_initializing_session(self) -> None:
        """Process the notifications soon, as the old session's watches are gone and changes may
        have been missed."""
        self.on_child_change()

    def _run(self) -> None:
        if self._task is None or self._task.done:
            self._task = Task(self._run_while_due())

    async def _run_while_due(self) -> None:
        while self._is_due:
            self._is_due = False
            try:
                await self._process()
            except Cancelled:
                raise
            except Exception as error:
                self._log("error", f"following {self.path} failed: {error!r}")

    async def _process(self) -> None:
        """Apply new notifications in order, skipping bad ones, and delete old ones."""
        requests = self._zk.requests
        names = sorted(await requests.get_children(self.path), key=znode_paths.sequence_number)
        wall_ms = self._host.wall_ms()
        paths = [f"{self.path}/{name}" for name in names]
        for path, answer in zip(paths, await requests.get_data_for_paths(paths), strict=True):
            if answer.code != ZkCode.OK or answer.stat is None:
                continue
            number = znode_paths.sequence_number(path)
            if number > self._last_executed:
                await self._apply_one(answer.data or b"")
                self._last_executed = number
            if wall_ms - answer.stat.ctime > _EXPIRATION_MS:
                await requests.delete_path(path, recursive_delete=False)

    async def _apply_one(self, data: bytes) -> None:
        try:
            await self._apply(data)
        except Cancelled:
            raise
        except Exception as error:
            self._log("error", f"notification {data!r} is skipped: {error!r}")
