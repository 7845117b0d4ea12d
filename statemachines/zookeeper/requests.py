"""Requests of ``KafkaZkClient``: sending, guarded writes, and operations on paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ...protocol.errors import InvariantError
from ...protocol.versions import Behaviour
from ...protocol.znode_paths import CONTROLLER_EPOCH
from ...zkfake.messages import (
    CheckRequest,
    CreateRequest,
    DeleteRequest,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    MultiRequest,
    Request,
    SetDataRequest,
    Stat,
    ZkCode,
    ZkResponse,
    ZooKeeperError,
)
from .errors import ControllerMoved
from .timed_work import ZOOKEEPER_ANSWERS, Work, ignore_work

UNGUARDED = -1
"""Value of ``guard`` for a write without a guard; other values are the version that
``/controller_epoch`` must have."""
UNKNOWN_VERSION = -2
"""Version of a node that does not exist, or whose conditional update failed."""

WriteRequest = CreateRequest | DeleteRequest | SetDataRequest


class AsyncZooKeeperClient(Protocol):
    """A ZooKeeper client as the controller and the brokers use it (``zkfake.client.client``)."""

    @property
    def session_id(self) -> int: ...

    async def handle_requests(self, requests: Sequence[Request]) -> list[ZkResponse]:
        """Return the answers in order; resends requests after lost connections until answered."""
        ...

    def register_change_handler(self, path: str, handler: Any) -> None:
        """Call the handler for events of a node; the next read or exists call arms the watch."""
        ...

    def unregister_change_handler(self, path: str) -> None: ...
    def register_child_change_handler(self, path: str, handler: Any) -> None: ...
    def unregister_child_change_handler(self, path: str) -> None: ...
    def register_state_change_handler(self, name: str, handler: Any) -> None: ...
    def unregister_state_change_handler(self, name: str) -> None: ...


class ZkRequests:
    """Sends requests, one batch per step.

    Writes by the controller are guarded if the emulated release does so: each is sent in a
    transaction with a check of ``/controller_epoch``'s version, and ``ControllerMoved`` is raised
    if the check fails. Other unexpected codes raise ``ZooKeeperError``.
    """

    def __init__(
        self, client: AsyncZooKeeperClient, behaviour: Behaviour, work: Work = ignore_work
    ) -> None:
        self.client: AsyncZooKeeperClient = client
        self.behaviour: Behaviour = behaviour
        self._work = work
        self._registered_session_id = -1
        """Id of the session in which this process last created an ephemeral node; -1 if none."""

    # --- sending

    async def send(self, requests: Sequence[Request]) -> list[ZkResponse]:
        """Send requests in one batch, or one by one before 1.1."""
        if not requests:
            return []
        if self.behaviour.pipelined_zookeeper:
            answers = await self.client.handle_requests(requests)
            self._work(ZOOKEEPER_ANSWERS, len(answers))
            return answers
        return [await self.send_one(request) for request in requests]

    async def send_one(self, request: Request) -> ZkResponse:
        answers = await self.client.handle_requests((request,))
        self._work(ZOOKEEPER_ANSWERS, 1)
        return answers[0]

    async def write(self, requests: Sequence[WriteRequest], guard: int) -> list[ZkResponse]:
        """Send guarded writes and return the answers of the writes themselves.

        Raises ``ControllerMoved`` if the guard of any write failed.
        """
        if guard == UNGUARDED or not self.behaviour.guard_controller_writes:
            return await self.send(requests)
        check = CheckRequest(CONTROLLER_EPOCH, guard)
        answers = await self.send([MultiRequest((check, request)) for request in requests])
        return [_unwrap(answer) for answer in answers]

    async def write_one(self, request: WriteRequest, guard: int) -> ZkResponse:
        return (await self.write((request,), guard))[0]

    # --- reading

    async def path_exists(self, path: str) -> bool:
        """Return whether a node exists; arms the watch of a registered handler in either case."""
        response = await self.send_one(ExistsRequest(path))
        if response.code == ZkCode.NONODE:
            return False
        response.raise_if_failed()
        return True

    async def get_children(self, path: str, register_watch: bool = True) -> list[str]:
        """Return the sorted child names; empty if the node is missing.

        Arms the child watch of a registered handler unless ``register_watch`` is false.
        """
        response = await self.send_one(GetChildrenRequest(path, watch=register_watch))
        if response.code == ZkCode.NONODE:
            return []
        return list(response.raise_if_failed().children)

    async def get_data_and_stat(self, path: str) -> tuple[bytes | None, Stat | None]:
        """Return (data, stat); (None, None) if the node is missing."""
        response = await self.send_one(GetDataRequest(path))
        if response.code == ZkCode.NONODE:
            return None, None
        response.raise_if_failed()
        return response.data, response.stat

    async def get_data_and_version(self, path: str) -> tuple[bytes | None, int]:
        """Return (data, version); (None, ``UNKNOWN_VERSION``) if the node is missing."""
        data, stat = await self.get_data_and_stat(path)
        return data, UNKNOWN_VERSION if stat is None else stat.version

    async def get_data_for_paths(self, paths: Sequence[str]) -> list[ZkResponse]:
        return await self.send([GetDataRequest(path) for path in paths])

    async def exist(self, paths: Sequence[str]) -> list[bool]:
        """Return whether each node exists (in one batch); arms watches of registered handlers."""
        answers = await self.send([ExistsRequest(path) for path in paths])
        return [
            answer.code != ZkCode.NONODE and answer.raise_if_failed().is_ok for answer in answers
        ]

    # --- writing

    async def conditional_update_path(
        self,
        path: str,
        data: bytes,
        expected_version: int,
        already_written: Callable[[bytes | None], bool] | None = None,
    ) -> tuple[bool, int]:
        """Set data if the version matches; returns (success, new version).

        On BADVERSION, the set counts as successful if ``already_written`` is true of the stored
        data, as a set that is repeated after a lost connection finds its own value. A failed set
        returns (False, ``UNKNOWN_VERSION``).
        """
        response = await self.send_one(SetDataRequest(path, data, expected_version))
        if response.code == ZkCode.OK:
            return True, _version(response)
        if response.code == ZkCode.BADVERSION and already_written is not None:
            stored, version = await self.get_data_and_version(path)
            if version != UNKNOWN_VERSION and already_written(stored):
                return True, version
            return False, UNKNOWN_VERSION
        if response.code in (ZkCode.BADVERSION, ZkCode.NONODE):
            return False, UNKNOWN_VERSION
        raise ZooKeeperError(response.code, path)

    async def make_sure_persistent_path_exists(self, path: str) -> None:
        """Create a node without data, and its parents, if they are missing."""
        await self.create_recursive(path, None, throw_if_path_exists=False)

    async def create_recursive(
        self,
        path: str,
        data: bytes | None = None,
        throw_if_path_exists: bool = True,
        guard: int = UNGUARDED,
    ) -> None:
        """Create a persistent node, and missing parents without data."""
        request = CreateRequest(path, data)
        response = await self.write_one(request, guard)
        if response.code == ZkCode.NONODE:
            parents = [CreateRequest(parent) for parent in parents_of(path)]
            for answer in await self.write(parents, guard):
                if answer.code != ZkCode.NODEEXISTS:
                    answer.raise_if_failed()
            response = await self.write_one(request, guard)
        if response.code == ZkCode.NODEEXISTS and not throw_if_path_exists:
            return
        if response.code != ZkCode.OK:
            raise ZooKeeperError(response.code, path)

    async def delete_path(
        self, path: str, guard: int = UNGUARDED, recursive_delete: bool = True
    ) -> bool:
        """Delete a node (and all below it if recursive); returns False if it did not exist."""
        if recursive_delete:
            return await self.delete_recursive(path, guard)
        response = await self.write_one(DeleteRequest(path), guard)
        if response.code == ZkCode.NONODE:
            return False
        if response.code != ZkCode.OK:
            raise ZooKeeperError(response.code, path)
        return True

    async def delete_recursive(self, path: str, guard: int = UNGUARDED) -> bool:
        """Delete a node and all below it, children first; returns False if it did not exist.

        Each level is listed in one batch; then all nodes are deleted in one batch.
        """
        doomed: list[str] = []
        level = [path]
        while level:
            found: list[str] = []
            for parent, response in zip(
                level, await self.send([GetChildrenRequest(p) for p in level]), strict=True
            ):
                if response.code == ZkCode.NONODE:
                    continue
                doomed.append(parent)
                found += [f"{parent}/{child}" for child in response.raise_if_failed().children]
            level = found
        await self.delete_all(doomed[::-1], guard)
        return bool(doomed)

    async def delete_all(self, paths: Sequence[str], guard: int) -> None:
        """Delete nodes in one batch; missing ones are ignored."""
        requests = [DeleteRequest(path) for path in paths]
        for response in await self.write(requests, guard):
            if response.code != ZkCode.NONODE:
                response.raise_if_failed()

    async def create_sequential(self, path_prefix: str, data: bytes) -> str:
        """Create a persistent node with the parent's counter appended; returns the path created."""
        request = CreateRequest(path_prefix, data, sequential=True)
        response = (await self.send_one(request)).raise_if_failed()
        return response.path or path_prefix

    async def set_or_create(self, path: str, payload: bytes, guard: int) -> None:
        response = await self.write_one(SetDataRequest(path, payload), guard)
        if response.code == ZkCode.NONODE:
            await self.create_recursive(path, payload, True, guard)
        elif response.code != ZkCode.OK:
            raise ZooKeeperError(response.code, path)

    # --- ephemeral nodes

    async def create_checked_ephemeral(self, path: str, data: bytes) -> Stat:
        """Create an ephemeral node, unless this session owns it already, and return its stat.

        The node is created and set in one transaction, because only the set returns a stat. An
        existing node is kept if this session owns it (its data is *not* rewritten), and replaced
        if an earlier session of this process owns it; otherwise raises ``ZooKeeperError``
        (NODEEXISTS).
        """
        while True:
            create = CreateRequest(path, None, ephemeral=True)
            multi = MultiRequest((create, SetDataRequest(path, data, 0)))
            response = await self.send_one(multi)
            if response.code == ZkCode.OK:
                stat = response.results[1].stat
                break
            if response.code != ZkCode.NODEEXISTS:
                raise ZooKeeperError(response.code, path)
            _, stat = await self.get_data_and_stat(path)
            if stat is None:
                continue
            if stat.ephemeral_owner == self.client.session_id:
                break
            if stat.ephemeral_owner != self._registered_session_id:
                raise ZooKeeperError(ZkCode.NODEEXISTS, path)
            deleted = await self.send_one(DeleteRequest(path))
            if deleted.code != ZkCode.NONODE:
                deleted.raise_if_failed()
        if stat is None:
            raise InvariantError(f"the set of {path} succeeded without a stat")
        self._registered_session_id = self.client.session_id
        return stat

    # --- handlers

    async def register_znode_change_handler_and_check_existence(
        self, path: str, handler: Any
    ) -> bool:
        """Register a handler, arm its watch with an exists request, and return whether the node
        exists."""
        self.client.register_change_handler(path, handler)
        return await self.path_exists(path)


def parents_of(path: str) -> list[str]:
    """Return the parents of a path, topmost first, without the root."""
    names = path.split("/")[1:-1]
    return ["/" + "/".join(names[: i + 1]) for i in range(len(names))]


def _version(response: ZkResponse) -> int:
    return UNKNOWN_VERSION if response.stat is None else response.stat.version


def _unwrap(answer: ZkResponse) -> ZkResponse:
    """Return the answer of the write in a guarded transaction."""
    if len(answer.results) != 2:
        return answer
    check, write = answer.results
    if check.code == ZkCode.BADVERSION:
        raise ControllerMoved("the controller epoch in ZooKeeper changed: another one took over")
    if check.code not in (ZkCode.OK, ZkCode.RUNTIMEINCONSISTENCY):
        raise ZooKeeperError(check.code, CONTROLLER_EPOCH)
    return write
