"""A real ZooKeeper client reads what the brokers write."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from fakekafka import Cluster, UsageError


@pytest.mark.clients
def test_kazoo_reads_kafkas_znodes() -> None:
    from kazoo.client import KazooClient

    with Cluster(brokers=2, zookeepers=3) as cluster:
        cluster.create_topic("orders", partitions=2, replication_factor=2)
        client = KazooClient(hosts=cluster.zookeeper_connect)
        client.start(timeout=20)
        try:
            assert sorted(client.get_children("/brokers/ids")) == ["1", "2"]
            controller = json.loads(client.get("/controller")[0])
            assert controller["brokerid"] == cluster.controller.id
            state, _ = client.get("/brokers/topics/orders/partitions/0/state")
            assert json.loads(state)["leader"] == cluster.partition("orders", 0).leader
        finally:
            client.stop()
            client.close()
        assert cluster.failures == []


def test_zookeeper_ports_must_fit_the_servers() -> None:
    with pytest.raises(UsageError, match="zookeeper_ports names 1 ports for 3 servers"):
        Cluster(zookeepers=3, zookeeper_ports=[2181])


def test_a_cluster_imports_zookeepers_wire_format_only_for_a_client() -> None:
    """ZooKeeper's wire format is imported only for a client, which speeds up most tests."""
    script = (
        "import sys\n"
        "from fakekafka import Cluster\n"
        "name = 'fakekafka.wire.zookeeper.gateway'\n"
        "with Cluster(1) as cluster:\n"
        "    loaded = name in sys.modules\n"
        "    print(loaded, cluster.zookeeper_connect.count(':'), name in sys.modules)\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["False", "1", "True"]
