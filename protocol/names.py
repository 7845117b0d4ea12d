"""Names of machines and nodes: this module alone builds and parses them.

Traces, network rules and error messages refer to actors by name. A process and its first node share
a name, such as ``broker-1``; the other nodes in the process have names of their own.
"""

from __future__ import annotations

import functools


@functools.cache
def broker_name(broker_id: int) -> str:
    """Return the name of a broker's process and node."""
    return f"broker-{broker_id}"


def new_broker_name(number: int) -> str:
    """Return the name of a broker's process and node while the broker has no id yet."""
    return f"broker-new-{number}"


@functools.cache
def controller_name(broker_id: int) -> str:
    """Return the name of the controller node in a broker's process."""
    return f"controller-{broker_id}"


def machine_of(name: str) -> str:
    """Return the name of the process that contains a broker or controller node.

    Any other name is returned unchanged.
    """
    return "broker-" + name.removeprefix("controller-") if is_controller_name(name) else name


def is_controller_name(name: str) -> bool:
    """Return True if this is the name of a broker's controller node."""
    return name.startswith("controller-")


def fetcher_name(broker_id: int, leader_id: int, fetcher_id: int) -> str:
    """Return the name of a node that fetches from one leader; the first has no number."""
    name = f"fetcher-{broker_id}-from-{leader_id}"
    return f"{name}-{fetcher_id}" if fetcher_id else name


def zookeeper_name(server_id: int) -> str:
    """Return the name of a ZooKeeper server's process and node."""
    return f"zk-{server_id}"


def zookeeper_client_name(number: int) -> str:
    """Return the name under which a client of the ZooKeeper port sends to the servers."""
    return f"zkclient-{number}"


ADMIN = "admin"
"""The process, and its node, that sends requests on behalf of the user of the cluster."""
ZOOKEEPER_SHELL = "zookeeper-shell"
"""The node in the ``admin`` process with the session of one external write to ZooKeeper."""


TCP_CLIENTS = "clients"
"""The machine of all clients that are connected over TCP."""


def broker_id_of(name: str) -> int | None:
    """Return the id of the broker that a node belongs to: 2 for ``broker-2`` or ``controller-2``.

    None for any other node.
    """
    role, _, number = name.partition("-")
    return int(number) if role in ("broker", "controller") and number.isdigit() else None
