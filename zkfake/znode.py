"""One znode, its path, and what a snapshot of a tree is made of."""

from __future__ import annotations

import re
from typing import NamedTuple

from .messages import Stat

_NAME = r"[^/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]+"
_VALID_PATH = re.compile(rf"(?:/(?!\.\.?(?:/|$)){_NAME})+")
_VALID_PREFIX = re.compile(rf"(?:/(?!\.\.?/){_NAME})*/(?:{_NAME})?")


class Znode:
    """One node. Integers made by the same transaction are shared objects: memory matters."""

    __slots__ = (
        "children",
        "ctime",
        "czxid",
        "data",
        "ephemeral_owner",
        "mtime",
        "mzxid",
        "pzxid",
        "sequence",
        "version",
    )

    def __init__(self, data: bytes | None, zxid: int, time_ms: int, ephemeral_owner: int) -> None:
        self.data = data
        self.czxid = zxid
        self.mzxid = zxid
        self.pzxid = zxid
        self.ctime = time_ms
        self.mtime = time_ms
        self.version = 0
        self.sequence = 0
        """Children ever created: the next sequential suffix; never falls."""
        self.ephemeral_owner = ephemeral_owner
        self.children: dict[str, None] | str | None = None
        """Names: none, one, or several; most nodes of a Kafka tree have at most one."""

    @property
    def num_children(self) -> int:
        children = self.children
        if children is None:
            return 0
        return 1 if isinstance(children, str) else len(children)

    def child_names(self) -> list[str]:
        children = self.children
        if children is None:
            return []
        return [children] if isinstance(children, str) else sorted(children)

    def add_child(self, name: str) -> None:
        children = self.children
        if children is None:
            self.children = name
        elif isinstance(children, str):
            self.children = {children: None, name: None}
        else:
            children[name] = None

    def remove_child(self, name: str) -> None:
        children = self.children
        if isinstance(children, dict):
            del children[name]
            if not children:
                self.children = None
        else:
            self.children = None

    def stat(self) -> Stat:
        data = self.data
        num_children = self.num_children
        return Stat(
            self.czxid,
            self.mzxid,
            self.pzxid,
            self.ctime,
            self.mtime,
            self.version,
            # Every child was created once; those gone were removed once.
            2 * self.sequence - num_children,
            0,
            self.ephemeral_owner,
            0 if data is None else len(data),
            num_children,
        )


class NodeRecord(NamedTuple):
    """A node as a snapshot carries it."""

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
    """Session id and timeout in milliseconds."""
    nodes: tuple[NodeRecord, ...]


def parent_path(path: str) -> str:
    """Path of the parent; of ``/a`` it is ``/``."""
    return path[: path.rfind("/")] or "/"


def is_valid_path(path: str) -> bool:
    """Whether ZooKeeper accepts the path: absolute, no empty, ``.`` or ``..`` part."""
    return path == "/" or _VALID_PATH.fullmatch(path) is not None


def is_creatable_path(path: str, sequential: bool) -> bool:
    """Whether a node can be created there; a sequential name may be empty before its counter."""
    return (_VALID_PREFIX if sequential else _VALID_PATH).fullmatch(path) is not None
