"""A forked child has a cluster's memory but not its threads, so every use there is refused."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from fakekafka import Cluster, Simulation, UsageError
from fakekafka.protocol.data import MetadataRequest
from fakekafka.testing.handles.broker import BrokerHandle
from fakekafka.testing.handles.controller import ControllerHandle
from fakekafka.testing.handles.network import NetworkHandle
from fakekafka.testing.handles.zookeeper import ZooKeeperHandle, ZooKeeperServerHandle

CHILD_OF = "was forked from the one that runs the cluster"

_SOME: dict[str, tuple[Any, ...]] = {
    "ask": (1, MetadataRequest(("t",))),
    "alter_config": ("t", {"retention.ms": "1"}),
    "broker": (1,),
    "call": (lambda: None, 10),
    "bandwidth": (1,),
    "bootstrap_servers_of": ("PLAINTEXT",),
    "children": ("/",),
    "consume": ("t",),
    "create": ("/a",),
    "create_partitions": ("t", 2),
    "create_shaped_topic": ("u", 1),
    "create_topic": ("u",),
    "delete": ("/a",),
    "delete_topic": ("t",),
    "drop": (0.5,),
    "create_topics": (["u"],),
    "elect_leaders": ("preferred",),
    "expire_session": (1,),
    "restore": (1,),
    "shift_clock": (1000,),
    "set_clock_rate": (1.02,),
    "end_session": (1, "broker-1"),
    "get": ("/brokers",),
    "group": ("g",),
    "hold": (lambda delivery: False,),
    "inject": ("Produce", "NOT_CONTROLLER"),
    "injection": (1,),
    "isolate": (1,),
    "latency": (1,),
    "log_bytes": ("t", 0, 1),
    "move_replica": ("t", 0, "log-1"),
    "move_to": (1,),
    "observe": (print,),
    "partition_state": ("t", 0),
    "produce": ("t", "value"),
    "reassign_partitions": ({("t", 0): [1]},),
    "records": ("t", 0),
    "replica_state": ("t", 0, 1),
    "save": ("kept.fktrace",),
    "server": (1,),
    "set": ("/a", "data"),
    "stat": ("/brokers",),
    "wait_for_group": ("g",),
    "wait_for_in_sync": ("t",),
    "wait_for_leader": ("t",),
    "wait_for_records": ("t", 1),
    "wait_until": (lambda: True,),
}
"""Arguments for the methods that require some."""

_READABLE = {
    Cluster: {
        "behaviour",
        "bootstrap_servers",  # for clients that the child creates
        "bootstrap_servers_of",
        "broker",
        "broker_ids",
        "controller",
        "failures",
        "kafka_version",
        "memory",
        "usual_latency",
        "network",
        "processes",
        "running",
        "runtime",
        "security",  # certificates and passwords, for clients too
        "stop",  # has no effect
        "zookeeper",
        "zookeepers",
    },
    BrokerHandle: {"id", "name", "port", "ports"},
    ControllerHandle: set(),
    ZooKeeperHandle: {"server"},
    ZooKeeperServerHandle: set(),
    NetworkHandle: set(),
}
"""Attributes that work in a child: constants, and handles whose own uses are refused."""


def _uses(of: object) -> dict[str, Callable[[], object]]:
    """Return, per public attribute of an object, a function that uses the attribute."""
    uses: dict[str, Callable[[], object]] = {}
    for name in dir(type(of)):
        if name.startswith("_") or name in _READABLE[type(of)]:
            continue

        def use(name: str = name) -> object:
            found = getattr(of, name)
            if not callable(found):
                return found
            if name == "partition":
                arguments = ([1], ["zk-1"]) if isinstance(of, NetworkHandle) else ("t", 0)
            else:
                arguments = _SOME.get(name, ())
            return found(*arguments)

        uses[f"{type(of).__name__}.{name}"] = use
    return uses


def _in_child(function: Callable[[], str]) -> str:
    """Return the result of a function called in a forked child."""
    readable, writable = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about forking with threads
        child = os.fork()
    if child == 0:
        try:
            os.write(writable, function().encode())
        finally:
            os._exit(0)
    os.close(writable)
    with open(readable, "rb") as pipe:
        told = pipe.read().decode()
    os.waitpid(child, 0)
    return told


@pytest.mark.parametrize("runtime", ["live", "threaded"])
def test_every_call_of_a_cluster_and_its_handles_is_refused(runtime: str) -> None:
    """In a forked child only addresses can be read, for its clients; ``stop`` has no effect."""
    with Cluster(brokers=1, topics={"t": 1}, runtime=runtime) as cluster:
        handles: list[Any] = [cluster, cluster.broker(1), cluster.controller]
        handles += [cluster.zookeeper, cluster.zookeeper.server(1), cluster.network]
        injected = cluster.inject("CreateTopics", "NOT_CONTROLLER")
        end = cluster.observe(lambda delivery: None)
        servers = cluster.bootstrap_servers

        def child() -> str:
            wrong = []
            uses = {name: use for of in handles for name, use in _uses(of).items()}
            for name, use in {**uses, "cancel": injected.cancel, "end": end}.items():
                try:
                    wrong.append(f"{name} gave {use()!r}")
                except UsageError as error:
                    if CHILD_OF not in str(error):
                        wrong.append(f"{name}: {error}")
                except BaseException as error:
                    wrong.append(f"{name}: {error!r}")
            if cluster.bootstrap_servers != servers:
                wrong.append("other addresses")
            cluster.stop()
            return "\n".join(wrong) or "all refused"

        assert _in_child(child) == "all refused"
        assert cluster.produce("t", "value") == 0
        assert cluster.topics() == ["t"]


def test_a_forked_simulation_runs_identically_in_child_and_parent() -> None:
    """A forked simulation runs identically in child and parent, as it has no threads to lose."""
    with Simulation(1, topics={"t": 1}, seed=3) as simulation:

        def run_on() -> str:
            simulation.produce("t", "value")
            simulation.run_for(1000)
            return simulation.fingerprint

        assert _in_child(run_on) == run_on()
