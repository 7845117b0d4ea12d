"""A znode, its path, and the parts of a tree's snapshot."""

from __future__ import annotations

import functools
import re
from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import NamedTuple

from .messages import Stat

_NAME = r"[^/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]+"
_VALID_PATH = re.compile(rf"(?:/(?!\.\.?(?:/|$)){_NAME})+")


class Children:
    """Two or more children of one node, by name and in order."""

    __slots__ = ("by_name", "names")

    def __init__(self, nodes: Iterable[Znode]) -> None:
        self.by_name: dict[str, Znode] = {node.name: node for node in nodes}
        self.names: list[str] = sorted(self.by_name)


class _Changes:
    """State that few nodes have: data that was set again, or an owner."""

    __slots__ = ("ephemeral_owner", "mtime", "mzxid", "version")

    def __init__(self, mzxid: int, mtime: int) -> None:
        self.mzxid = mzxid
        self.mtime = mtime
        self.version = 0
        self.ephemeral_owner = 0


class Znode:
    """A node of the tree, which its parent finds by name.

    A topic with one partition has five nodes, so memory matters: integers set by the same
    transaction are shared objects, an only child is stored without a dictionary, and state that
    most nodes never have is in an object of its own.
    """

    __slots__ = ("_changes", "children", "ctime", "czxid", "data", "name", "pzxid", "sequence")

    def __init__(
        self, name: str, data: bytes | None, zxid: int, time_ms: int, ephemeral_owner: int = 0
    ) -> None:
        self.name: str = name
        self.data = data
        self.czxid: int = zxid
        self.pzxid: int = zxid
        self.ctime: int = time_ms
        self.sequence: int = 0
        """Number of children ever created, which is the next sequential suffix; never decreases."""
        self.children: Znode | Children | None = None
        self._changes: _Changes | None = None
        if ephemeral_owner:
            self._changes = _Changes(zxid, time_ms)
            self._changes.ephemeral_owner = ephemeral_owner

    # --- data

    @property
    def mzxid(self) -> int:
        return self.czxid if self._changes is None else self._changes.mzxid

    @property
    def mtime(self) -> int:
        return self.ctime if self._changes is None else self._changes.mtime

    @property
    def version(self) -> int:
        return 0 if self._changes is None else self._changes.version

    @property
    def ephemeral_owner(self) -> int:
        """The session that owns the node; 0 for a persistent one."""
        return 0 if self._changes is None else self._changes.ephemeral_owner

    def put_data(self, data: bytes | None, mzxid: int, mtime: int, version: int) -> None:
        """Set the data with its zxid, time and version."""
        self.data = data
        changes = self._changes
        if changes is None:
            changes = self._changes = _Changes(mzxid, mtime)
        changes.mzxid = mzxid
        changes.mtime = mtime
        changes.version = version

    # --- children

    def child(self, name: str) -> Znode | None:
        children = self.children
        if type(children) is Children:
            return children.by_name.get(name)
        return children if isinstance(children, Znode) and children.name == name else None

    @property
    def num_children(self) -> int:
        children = self.children
        if children is None:
            return 0
        return len(children.names) if type(children) is Children else 1

    def child_names(self) -> tuple[str, ...]:
        """Return the names of the children, sorted."""
        children = self.children
        if children is None:
            return ()
        return (children.name,) if isinstance(children, Znode) else tuple(children.names)

    def add_child(self, node: Znode) -> None:
        children = self.children
        if children is None:
            self.children = node
        elif isinstance(children, Znode):
            self.children = Children((children, node))
        else:
            children.by_name[node.name] = node
            insort(children.names, node.name)

    def remove_child(self, name: str) -> None:
        children = self.children
        if not isinstance(children, Children):
            self.children = None
            return
        del children.by_name[name]
        del children.names[bisect_left(children.names, name)]
        if not children.names:
            self.children = None

    def stat(self) -> Stat:
        data = self.data
        num_children = self.num_children
        # Children created plus children removed: sequence + (sequence - num_children).
        cversion = 2 * self.sequence - num_children
        length = 0 if data is None else len(data)
        changes = self._changes
        if changes is None:
            return Stat(
                self.czxid, self.czxid, self.pzxid, self.ctime, self.ctime, 0, cversion, 0, 0,
                length, num_children,
            )  # fmt: skip
        return Stat(
            self.czxid,
            changes.mzxid,
            self.pzxid,
            self.ctime,
            changes.mtime,
            changes.version,
            cversion,
            0,
            changes.ephemeral_owner,
            length,
            num_children,
        )


class NodeRecord(NamedTuple):
    """A node in a snapshot."""

    path: str
    data: bytes | None
    czxid: int
    mzxid: int
    pzxid: int
    ctime: int
    mtime: int
    version: int
    sequence: int
    ephemeral_owner: int


class TreeSnapshot(NamedTuple):
    """A whole tree as one immutable value; nodes come parents first."""

    last_zxid: int
    sessions: tuple[tuple[int, int], ...]
    """Id and timeout in milliseconds of each open session."""
    nodes: tuple[NodeRecord, ...]


def parent_path(path: str) -> str:
    """Return the path of the parent; that of ``/a`` is ``/``."""
    return path[: path.rfind("/")] or "/"


def is_valid_path(path: str) -> bool:
    """Return whether ZooKeeper accepts the path: absolute, without empty, ``.`` or ``..`` parts."""
    return path == "/" or _VALID_PATH.fullmatch(path) is not None


def is_creatable_path(path: str, sequential: bool) -> bool:
    """Return whether a node can be created at the path; a sequential node's name may consist of
    its counter alone."""
    return (_valid_prefix() if sequential else _VALID_PATH).fullmatch(path) is not None


@functools.cache
def _valid_prefix() -> re.Pattern[str]:
    """Return the pattern of valid paths for sequential nodes, before their counter is appended.

    The pattern is compiled when it is first needed, as that takes a millisecond.
    """
    return re.compile(rf"(?:/(?!\.\.?/){_NAME})*/(?:{_NAME})?")
