"""The znode tree: a deterministic state machine fed with numbered transactions.

Every server of an ensemble applies the same requests with the same zxid and time, so trees that
applied the same transactions are equal. Sessions are part of the tree, as transactions open and
close them. Watches are not: they belong to the server a client is connected to, which finds in
``changes`` what to fire.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping

from .messages import (
    CheckRequest,
    CloseSession,
    CreateRequest,
    CreateSession,
    DeleteRequest,
    EventType,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    MultiRequest,
    SessionRequest,
    SetDataRequest,
    SyncRequest,
    ZkCode,
    ZkResponse,
)
from .znode import (
    Children,
    NodeRecord,
    TreeSnapshot,
    Znode,
    is_creatable_path,
    is_valid_path,
    parent_path,
)

QUOTA_NODES = ("/zookeeper", "/zookeeper/quota")
CONFIG_NODE = "/zookeeper/config"

Change = tuple[EventType, str]
"""Kind and path of a change to a node's data or existence; the change of its parent's children
follows from it."""


def _is_built_in(node: Znode) -> bool:
    """Return whether no client created the node: the root and nodes that ZooKeeper provides."""
    return node.czxid == 0


def _is_read_only(node: Znode, path: str) -> bool:
    """Return whether clients may only read the node: the ensemble's configuration, which only
    ``reconfig`` changes."""
    return _is_built_in(node) and path == CONFIG_NODE


class ZnodeTree:
    """Nodes, sessions and the last transaction applied.

    ``apply`` takes writes in zxid order, ``read`` anything else. Neither raises for a client's
    mistake: the code of the ``ZkResponse`` reports it.
    """

    def __init__(self) -> None:
        self.root: Znode = Znode("", None, 0, 0)
        self.sessions: dict[int, int] = {}
        """Open sessions with their timeout in milliseconds."""
        self.last_zxid: int = 0
        self.changes: list[Change] = []
        """Changes by the transactions since the last ``take_changes``, in order."""
        self._ephemerals: dict[int, dict[str, None]] = {}
        # Steps that undo the operations of the current multi; None outside a multi.
        self._undo: list[Callable[[], None]] | None = None
        # Time of the last transaction; transactions of the same millisecond share one integer.
        self._time_ms = 0

    def add_built_in_nodes(self, paths: Iterable[str]) -> None:
        """Add the nodes that ZooKeeper provides, except those that exist already.

        Their zxids and times are 0, and their parents do not count them as created.
        """
        for path in paths:
            if self.find(path) is None:
                parent = self.find(parent_path(path))
                assert parent is not None, "parents come first"
                parent.add_child(Znode(sys.intern(path.rpartition("/")[2]), b"", 0, 0))

    @property
    def nodes(self) -> Mapping[str, Znode]:
        """Read-only mapping from paths to nodes."""
        return _NodesByPath(self)

    def find(self, path: str) -> Znode | None:
        """Return the node at a path; None if there is none or the path is malformed."""
        node = self.root
        if path == "/":
            return node
        names = path.split("/")
        if names[0] or len(names) < 2:
            return None
        del names[0]
        for name in names:
            children = node.children
            if isinstance(children, Children):
                child = children.by_name.get(name)
                if child is None:
                    return None
                node = child
            elif children is not None and children.name == name:
                node = children
            else:
                return None
        return node

    # --- writes

    def apply(
        self, zxid: int, time_ms: int, session_id: int, request: SessionRequest
    ) -> ZkResponse:
        """Apply one transaction on behalf of ``session_id``.

        A failed request uses up its zxid and changes nothing. The answer is SESSIONEXPIRED if the
        session is not open.
        """
        self.last_zxid = zxid
        if time_ms == self._time_ms:
            time_ms = self._time_ms
        else:
            self._time_ms = time_ms
        kind = type(request)
        if kind is CreateSession:
            self.sessions[session_id] = request.session_timeout_ms  # type: ignore[union-attr]
            return ZkResponse(ZkCode.OK, zxid=zxid)
        if session_id not in self.sessions:
            return ZkResponse(ZkCode.SESSIONEXPIRED, getattr(request, "path", None), zxid=zxid)
        return self._write(zxid, time_ms, session_id, request)

    def _write(
        self, zxid: int, time_ms: int, session_id: int, request: SessionRequest
    ) -> ZkResponse:
        if isinstance(request, SetDataRequest):
            return self._set_data(zxid, time_ms, request)
        if isinstance(request, CreateRequest):
            return self._create(zxid, time_ms, session_id, request)
        if isinstance(request, MultiRequest):
            return self._multi(zxid, time_ms, session_id, request)
        if isinstance(request, DeleteRequest):
            return self._delete(zxid, request)
        if isinstance(request, CheckRequest):
            return self._check(zxid, request)
        if isinstance(request, CloseSession):
            return self._close_session(zxid, session_id)
        return ZkResponse(ZkCode.UNIMPLEMENTED, zxid=zxid)

    def _no_node(self, path: str, zxid: int) -> ZkResponse:
        code = ZkCode.NONODE if is_valid_path(path) else ZkCode.BADARGUMENTS
        return ZkResponse(code, path, zxid=zxid)

    def _create(
        self, zxid: int, time_ms: int, session_id: int, request: CreateRequest
    ) -> ZkResponse:
        path = request.path
        if path == "/" and not request.sequential:
            return ZkResponse(ZkCode.NODEEXISTS, path, zxid=zxid)
        if not is_creatable_path(path, request.sequential):
            return ZkResponse(ZkCode.BADARGUMENTS, path, zxid=zxid)
        parent = self.find(parent_path(path))
        if parent is None:
            return ZkResponse(ZkCode.NONODE, path, zxid=zxid)
        if _is_read_only(parent, path.rpartition("/")[0]):
            return ZkResponse(ZkCode.NOAUTH, path, zxid=zxid)
        if request.sequential:
            path = f"{path}{parent.sequence:010d}"
        name = sys.intern(path[path.rfind("/") + 1 :])
        if parent.child(name) is not None:
            return ZkResponse(ZkCode.NODEEXISTS, path, zxid=zxid)
        if parent.ephemeral_owner:
            return ZkResponse(ZkCode.NOCHILDRENFOREPHEMERALS, path, zxid=zxid)
        owner = session_id if request.ephemeral else 0
        node = Znode(name, request.data, zxid, time_ms, owner)
        if self._undo is not None:
            self._undo.append(self._undo_create(path, name, parent, parent.pzxid, owner))
        parent.add_child(node)
        parent.sequence += 1
        parent.pzxid = zxid
        if owner:
            self._ephemerals.setdefault(owner, {})[path] = None
        self.changes.append((EventType.NODE_CREATED, path))
        return ZkResponse(ZkCode.OK, path, node.stat(), zxid=zxid)

    def _undo_create(
        self, path: str, name: str, parent: Znode, pzxid: int, owner: int
    ) -> Callable[[], None]:
        def undo() -> None:
            parent.remove_child(name)
            parent.sequence -= 1
            parent.pzxid = pzxid
            if owner:
                self._forget_ephemeral(owner, path)

        return undo

    def _forget_ephemeral(self, owner: int, path: str) -> None:
        paths = self._ephemerals[owner]
        del paths[path]
        if not paths:
            del self._ephemerals[owner]

    def _delete(self, zxid: int, request: DeleteRequest) -> ZkResponse:
        path = request.path
        node = self.find(path)
        if node is None:
            return self._no_node(path, zxid)
        if _is_built_in(node):
            return ZkResponse(ZkCode.BADARGUMENTS, path, zxid=zxid)
        if request.version != -1 and request.version != node.version:
            return ZkResponse(ZkCode.BADVERSION, path, zxid=zxid)
        if node.children is not None:
            return ZkResponse(ZkCode.NOTEMPTY, path, zxid=zxid)
        self._remove(path, node, zxid)
        return ZkResponse(ZkCode.OK, path, zxid=zxid)

    def _remove(self, path: str, node: Znode, zxid: int) -> None:
        parent = self.find(parent_path(path))
        assert parent is not None, "a node has a parent"
        owner = node.ephemeral_owner
        if self._undo is not None:
            pzxid = parent.pzxid

            def undo() -> None:
                parent.add_child(node)
                parent.pzxid = pzxid
                if owner:
                    self._ephemerals.setdefault(owner, {})[path] = None

            self._undo.append(undo)
        parent.remove_child(node.name)
        parent.pzxid = zxid
        if owner:
            self._forget_ephemeral(owner, path)
        self.changes.append((EventType.NODE_DELETED, path))

    def _set_data(self, zxid: int, time_ms: int, request: SetDataRequest) -> ZkResponse:
        path = request.path
        node = self.find(path)
        if node is None:
            return self._no_node(path, zxid)
        if _is_read_only(node, path):
            return ZkResponse(ZkCode.NOAUTH, path, zxid=zxid)
        if request.version != -1 and request.version != node.version:
            return ZkResponse(ZkCode.BADVERSION, path, zxid=zxid)
        if self._undo is not None:
            before = (node.data, node.mzxid, node.mtime, node.version)

            def undo() -> None:
                node.put_data(*before)

            self._undo.append(undo)
        node.put_data(request.data, zxid, time_ms, node.version + 1)
        self.changes.append((EventType.NODE_DATA_CHANGED, path))
        return ZkResponse(ZkCode.OK, path, node.stat(), zxid=zxid)

    def _check(self, zxid: int, request: CheckRequest) -> ZkResponse:
        node = self.find(request.path)
        if node is None:
            return self._no_node(request.path, zxid)
        if request.version != -1 and request.version != node.version:
            return ZkResponse(ZkCode.BADVERSION, request.path, zxid=zxid)
        return ZkResponse(ZkCode.OK, request.path, zxid=zxid)

    def _multi(self, zxid: int, time_ms: int, session_id: int, request: MultiRequest) -> ZkResponse:
        operations = request.operations
        results: list[ZkResponse] = []
        changes_before = len(self.changes)
        self._undo = []
        for operation in operations:
            if isinstance(operation, MultiRequest | CloseSession):
                result = ZkResponse(ZkCode.UNIMPLEMENTED, zxid=zxid)
            else:
                result = self._write(zxid, time_ms, session_id, operation)
            results.append(result)
            if result.code != 0:
                break
        undo, self._undo = self._undo, None
        if not results or results[-1].code == 0:
            return ZkResponse(ZkCode.OK, results=tuple(results), zxid=zxid)
        for step in reversed(undo):
            step()
        del self.changes[changes_before:]
        failed = results[-1]
        before = len(results) - 1
        after = len(operations) - len(results)
        answers = (
            *(ZkResponse(ZkCode.OK, op.path, zxid=zxid) for op in operations[:before]),
            failed,
            *(
                ZkResponse(ZkCode.RUNTIMEINCONSISTENCY, op.path, zxid=zxid)
                for op in operations[len(operations) - after :]
            ),
        )
        return ZkResponse(failed.code, failed.path, results=answers, zxid=zxid)

    def _close_session(self, zxid: int, session_id: int) -> ZkResponse:
        for path in self.ephemerals_of(session_id):
            node = self.find(path)
            assert node is not None, "sessions own only existing nodes"
            self._remove(path, node, zxid)
        del self.sessions[session_id]
        return ZkResponse(ZkCode.OK, zxid=zxid)

    # --- reads

    def read(self, request: SessionRequest) -> ZkResponse:
        """Answer an exists, get data, get children, check or sync; UNIMPLEMENTED for a write."""
        zxid = self.last_zxid
        if isinstance(request, SyncRequest):
            return ZkResponse(ZkCode.OK, request.path, zxid=zxid)
        if isinstance(request, CheckRequest):
            return self._check(zxid, request)
        if not isinstance(request, (GetDataRequest, ExistsRequest, GetChildrenRequest)):
            return ZkResponse(ZkCode.UNIMPLEMENTED, getattr(request, "path", None), zxid=zxid)
        path = request.path
        node = self.find(path)
        if node is None:
            return self._no_node(path, zxid)
        if isinstance(request, GetDataRequest):
            return ZkResponse(ZkCode.OK, path, node.stat(), node.data, zxid=zxid)
        if isinstance(request, ExistsRequest):
            return ZkResponse(ZkCode.OK, path, node.stat(), zxid=zxid)
        return ZkResponse(ZkCode.OK, path, node.stat(), children=node.child_names(), zxid=zxid)

    def take_changes(self) -> list[Change]:
        """Return the changes since the last call; the caller fires watches for them."""
        changes = self.changes
        if changes:
            self.changes = []
        return changes

    def ephemerals_of(self, session_id: int) -> list[str]:
        """Return the paths of a session's ephemeral nodes, oldest first, then by path."""
        found = [(path, self.find(path)) for path in self._ephemerals.get(session_id, ())]
        return [path for _, path in sorted((node.czxid, path) for path, node in found if node)]

    def walk(self) -> Iterator[str]:
        """Yield all paths, parents before children, siblings sorted."""
        for path, _ in self.items():
            yield path

    def items(self) -> Iterator[tuple[str, Znode]]:
        """Yield all nodes with their paths, in the order of ``walk``."""
        stack = [("/", self.root)]
        while stack:
            path, node = stack.pop()
            yield path, node
            prefix = "/" if path == "/" else path + "/"
            for name in reversed(node.child_names()):
                child = node.child(name)
                assert child is not None, "it was listed"
                stack.append((prefix + name, child))

    # --- snapshots

    def snapshot(self) -> TreeSnapshot:
        """Return the whole tree as an immutable value; data bytes are shared, not copied."""
        records = []
        for path, n in self.items():
            records.append(
                NodeRecord(
                    path, n.data, n.czxid, n.mzxid, n.pzxid, n.ctime, n.mtime, n.version,
                    n.sequence, n.ephemeral_owner,
                )
            )  # fmt: skip
        return TreeSnapshot(self.last_zxid, tuple(sorted(self.sessions.items())), tuple(records))

    @classmethod
    def restored(cls, snapshot: TreeSnapshot) -> ZnodeTree:
        """Return a tree equal to the one from which the snapshot was taken."""
        tree = cls()
        tree.last_zxid = snapshot.last_zxid
        tree.sessions = dict(snapshot.sessions)
        for record in snapshot.nodes:
            path = record.path
            name = sys.intern(path[path.rfind("/") + 1 :])
            node = Znode(name, record.data, record.czxid, record.ctime, record.ephemeral_owner)
            node.pzxid = record.pzxid
            node.sequence = record.sequence
            if record.version or record.mzxid != record.czxid:
                node.put_data(record.data, record.mzxid, record.mtime, record.version)
            if path == "/":
                tree.root = node
            else:
                parent = tree.find(parent_path(path))
                assert parent is not None, "snapshots list parents first"
                parent.add_child(node)
            if record.ephemeral_owner:
                tree._ephemerals.setdefault(record.ephemeral_owner, {})[path] = None
        return tree


class _NodesByPath(Mapping[str, Znode]):
    """A read-only view of a tree's nodes by path."""

    __slots__ = ("_tree",)

    def __init__(self, tree: ZnodeTree) -> None:
        self._tree = tree

    def __getitem__(self, path: str) -> Znode:
        node = self._tree.find(path)
        if node is None:
            raise KeyError(path)
        return node

    def __iter__(self) -> Iterator[str]:
        return self._tree.walk()

    def __len__(self) -> int:
        return sum(1 for _ in self)
