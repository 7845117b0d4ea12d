"""Names of machines and nodes: the one place that builds them and takes them apart.

Traces, rules of the network and error messages name actors. A process and its first node have one
name, such as ``broker-1``; the nodes beside it in that process have names of their own.
"""

from __future__ import annotations

import functools


@functools.cache
def broker_name(broker_id: int) -> str:
    """Name of a broker's process and node."""
    return f"broker-{broker_id}"


def new_broker_name(number: int) -> str:
    """Name of a broker's process and node while it does not know its id."""
    return f"broker-new-{number}"


@functools.cache
def controller_name(broker_id: int) -> str:
    """Name of the controller node in a broker's process."""
    return f"controller-{broker_id}"


def machine_of(name: str) -> str:
    """Name of the process in which a node of this name lives."""
    return "broker-" + name.removeprefix("controller-") if is_controller_name(name) else name


def is_controller_name(name: str) -> bool:
    """Return whether this is the controller node of some broker."""
    return name.startswith("controller-")


def fetcher_name(broker_id: int, leader_id: int, fetcher_id: int) -> str:
    """Name of the node that fetches from one leader; the first fetcher has no number."""
    name = f"fetcher-{broker_id}-from-{leader_id}"
    return f"{name}-{fetcher_id}" if fetcher_id else name


def zookeeper_name(server_id: int) -> str:
    """Name of a ZooKeeper server's process and node."""
    return f"zk-{server_id}"


def zookeeper_client_name(number: int) -> str:
    """Name under which a client of the ZooKeeper port talks to the servers."""
    return f"zkclient-{number}"


ADMIN = "admin"
"""The process that speaks for whoever uses the cluster, and its node."""
ZOOKEEPER_SHELL = "zookeeper-shell"
"""A node beside it: the session of one write to ZooKeeper from outside."""


TCP_CLIENTS = "clients"
"""The machine of everything that came over TCP."""


def broker_id_of(name: str) -> int | None:
    """The broker a node belongs to: ``broker-2`` and ``controller-2`` are both 2."""
    role, _, number = name.partition("-")
    return int(number) if role in ("broker", "controller") and number.isdigit() else None
