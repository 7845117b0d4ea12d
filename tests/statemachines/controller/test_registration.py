"""A broker's own registration."""

from __future__ import annotations

import pytest
from fakekafka.protocol.errors import KafkaError
from fakekafka.protocol.values import BrokerInfo
from fakekafka.tests.support.controller_cluster import ControllerCluster, Process
from fakekafka.tests.support.run_now import run_now


def test_registering_again_in_the_same_session_changes_nothing() -> None:
    """CP-81."""
    cluster = ControllerCluster([1])
    controller = cluster.active
    epoch, data = controller.broker_epoch, cluster.zookeeper.get("/brokers/ids/1")
    cluster.host.advance(50)
    run_now(controller.registration.register_again())
    assert controller.broker_epoch == epoch
    assert cluster.zookeeper.get("/brokers/ids/1") == data


def test_another_broker_with_the_same_id_is_refused() -> None:
    """CP-81, CP-195: the first registration stays; the second start fails."""
    cluster = ControllerCluster([1])
    before = cluster.zookeeper.get("/brokers/ids/1")
    with pytest.raises(KafkaError, match="NodeExists"):
        cluster.start(1)
    assert cluster.zookeeper.get("/brokers/ids/1") == before


def test_a_shared_address_is_refused() -> None:
    """CP-195: two brokers cannot advertise the same host and port."""
    cluster = ControllerCluster([1])

    process = Process(cluster, 2, None)
    process.info = BrokerInfo(2, cluster.processes[1].info.endpoints)
    with pytest.raises(KafkaError, match="already registered by broker 1"):
        run_now(process.controller.registration.register())
    assert "/brokers/ids/2" not in cluster.zookeeper.tree.nodes
