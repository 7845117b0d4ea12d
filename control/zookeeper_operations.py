"""Operations on ZooKeeper: its tree, its servers, and the sessions of brokers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ..testing.parameters.kinds import FLAG, INT32, STRING, nullable
from ..testing.parameters.parameter import optional, required
from . import cluster_state
from .operation import Operation, ServedCluster
from .section import Section

if TYPE_CHECKING:
    from ..zkfake.messages import Stat

_ZOOKEEPER = Section("zookeeper")
_PATH = required("path", STRING, "such as /brokers/ids")
_DATA = nullable(STRING)
_VERSION = optional("version", INT32, "which it must have; any without it")


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "backslashreplace")


def _tree(served: ServedCluster, _arguments: dict[str, Any]) -> dict[str, str | None]:
    return {path: _text(data) for path, data in served.cluster.zookeeper.tree().items()}


def _node(served: ServedCluster, arguments: dict[str, Any]) -> dict[str, Any]:
    zookeeper, path = served.cluster.zookeeper, arguments["path"]
    return {
        "path": path,
        "data": _text(zookeeper.get(path)),
        "children": zookeeper.children(path),
        "stat": _stat(zookeeper.stat(path)),
    }


def _stat(stat: Stat) -> dict[str, Any]:
    return dataclasses.asdict(stat)


def _create(served: ServedCluster, arguments: dict[str, Any]) -> str:
    return served.cluster.zookeeper.create(
        arguments["path"], arguments.get("data", ""), sequential=arguments.get("sequential", False)
    )


def _set(served: ServedCluster, arguments: dict[str, Any]) -> dict[str, Any]:
    return _stat(
        served.cluster.zookeeper.set(
            arguments["path"], arguments["data"], version=arguments.get("version", -1)
        )
    )


def _delete(served: ServedCluster, arguments: dict[str, Any]) -> None:
    served.cluster.zookeeper.delete(
        arguments["path"],
        version=arguments.get("version", -1),
        recursive=arguments.get("recursive", False),
    )


ZOOKEEPER_OPERATIONS: tuple[Operation, ...] = (
    _ZOOKEEPER.get(
        "/zookeeper",
        "where ZooKeeper clients connect; its servers listen from then on",
        lambda served, _: {"connect": served.cluster.zookeeper_connect},
        gives="the connect string",
    ),
    _ZOOKEEPER.get("/zookeeper/tree", "every znode with its data", _tree, gives="an object"),
    _ZOOKEEPER.get(
        "/zookeeper/node",
        "a znode: data, children, versions and times",
        _node,
        _PATH,
        gives="the znode",
    ),
    _ZOOKEEPER.post(
        "/zookeeper/node",
        "create a persistent znode",
        _create,
        _PATH,
        optional("data", _DATA),
        optional("sequential", FLAG, "whether a counter ends its name"),
        gives="its path",
    ),
    _ZOOKEEPER.put(
        "/zookeeper/node",
        "replace the data of a znode",
        _set,
        _PATH,
        required("data", _DATA),
        _VERSION,
        gives="its new versions and times",
    ),
    _ZOOKEEPER.delete(
        "/zookeeper/node",
        "delete a znode",
        _delete,
        _PATH,
        _VERSION,
        optional("recursive", FLAG, "whether with all below it"),
    ),
    _ZOOKEEPER.get(
        "/zookeeper/servers",
        "the servers of the ensemble with their state",
        lambda served, _: cluster_state.zookeepers(served.cluster),
        gives="an array of servers",
    ),
    _ZOOKEEPER.act("/zookeeper/servers/{server}/kill", "kill_zookeeper"),
    _ZOOKEEPER.act("/zookeeper/servers/{server}/start", "start_zookeeper"),
    _ZOOKEEPER.act("/zookeeper/servers/{server}/set_clock_rate", "set_zookeeper_clock_rate"),
    _ZOOKEEPER.act("/zookeeper/expire_session/{broker}", "expire_session"),
)
