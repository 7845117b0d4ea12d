"""How much a process loads before its first cluster serves: rooms come with their first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

OWN_MODULES_MAX = 198
"""A module takes a third of a millisecond. More of them need a reason, fewer another number."""
OWN_MODULES_OF_RECORDS_MAX = 268
"""The same once a topic was created, and a record written and read by the cluster's own calls."""
LIBRARIES = {
    "cramjam", "cryptography", "datetime", "decimal", "difflib", "hmac", "msgpack", "pytest",
    "rich", "tempfile", "tomllib", "typer", "zstandard",
}  # fmt: skip
"""Not needed for a start: compression, certificates, help with misspelt names, scenario files."""
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
    """The modules of a fresh process with a started cluster."""
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
    """What is imported at the top of a module, and only used later, shows here."""
    assert len(own(started)) <= OWN_MODULES_MAX


def test_a_started_cluster_has_loaded_no_unneeded_room(started: set[str]) -> None:
    """Groups, transactions, logs, connections, users and handles wait for their first use."""
    assert [name for name in sorted(started) if name.startswith(ROOMS)] == []


def test_a_started_cluster_needs_few_libraries(started: set[str]) -> None:
    """None that compresses, encrypts, guesses names or reads files of scenarios."""
    assert started & LIBRARIES == set()


def test_records_need_neither_groups_nor_transactions() -> None:
    """A topic with records loads logs and partitions, and no coordinator."""
    work = "cluster.create_topic('orders'); cluster.produce('orders', b'1'); "
    modules = own(modules_after(work + "cluster.consume('orders')"))
    assert "fakekafka.replication.log.log" in modules
    assert len(modules) <= OWN_MODULES_OF_RECORDS_MAX
    assert [name for name in modules if name.startswith("fakekafka.coordinators")] == []
