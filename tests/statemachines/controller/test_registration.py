"""A broker's own registration."""

from __future__ import annotations

from fakekafka.protocol.awaiting import run_now
from fakekafka.tests.support.controller_cluster import ControllerCluster


def test_registering_again_in_the_same_session_changes_nothing() -> None:
    """CP-81."""
    cluster = ControllerCluster([1])
    controller = cluster.active
    epoch, data = controller.broker_epoch, cluster.zookeeper.get("/brokers/ids/1")
    cluster.host.advance(50)
    run_now(controller.registration.register_again())
    assert controller.broker_epoch == epoch
    assert cluster.zookeeper.get("/brokers/ids/1") == data
