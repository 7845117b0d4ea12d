"""Number of modules that a process loads before its first cluster serves; rooms load at
first use.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

OWN_MODULES_MAX = 198
"""Maximum number of own modules; each takes a third of a millisecond. Raise it only with a reason,
and lower it when fewer are loaded.
"""
OWN_MODULES_OF_RECORDS_MAX = 268
"""Maximum number of own modules after creating a topic, and writing and reading a record with the
cluster's own calls.
"""
LIBRARIES = {
    "cramjam", "cryptography", "datetime", "decimal", "difflib", "hmac", "msgpack", "pytest",
    "rich", "tempfile", "tomllib", "typer", "zstandard",
}  # fmt: skip
"""Libraries not needed to start: compression, certificates, suggestions of names,
scenario files.
"""
ROOMS = (
    "fakekafka.coordinators",
    "fakekafka.election.assignment",
    "fakekafka.protocol.admin",
    "fakekafka.protocol.groups",
    "fakekafka.protocol.records",
    "fakekafka.protocol.transactions",
    "fakekafka.replication.log.log",
    "fakekafka.replication.partition.partition",
    "fakekafka.statemachines.security",
    "fakekafka.testing.handles.",
    "fakekafka.tracing",
    "fakekafka.wire.kafka.connection",
    "fakekafka.wire.kafka.messages",
    "fakekafka.wire.kafka.security.sasl",
    "fakekafka.wire.zookeeper",
)

PROGRAM = """
import sys
from fakekafka import Cluster
with Cluster(brokers=3) as cluster:
    {work}
    print(*sorted(sys.modules))
"""


def modules_after(work: str) -> set[str]:
    """Return the modules of a fresh process that started a cluster."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(work=work)],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def own(modules: set[str]) -> set[str]:
    return {name for name in modules if name.startswith("fakekafka.")}


@pytest.fixture(scope="module")
def started() -> set[str]:
    return modules_after("cluster.bootstrap_servers")


def test_a_started_cluster_has_loaded_few_modules(started: set[str]) -> None:
    """An import at the top of a module that is only needed later raises the number."""
    assert len(own(started)) <= OWN_MODULES_MAX


def test_a_started_cluster_has_loaded_no_unneeded_room(started: set[str]) -> None:
    """Groups, transactions, logs, connections, users and handles are loaded at first use."""
    assert [name for name in sorted(started) if name.startswith(ROOMS)] == []


def test_a_started_cluster_needs_few_libraries(started: set[str]) -> None:
    """No library for compression, encryption, suggestions of names or scenario files is loaded."""
    assert started & LIBRARIES == set()


def test_records_need_neither_groups_nor_transactions() -> None:
    """A topic with records loads logs and partitions, and no coordinator."""
    work = "cluster.create_topic('orders'); cluster.produce('orders', b'1'); "
    modules = own(modules_after(work + "cluster.consume('orders')"))
    assert "fakekafka.replication.log.log" in modules
    assert len(modules) <= OWN_MODULES_OF_RECORDS_MAX
    assert [name for name in modules if name.startswith("fakekafka.coordinators")] == []
