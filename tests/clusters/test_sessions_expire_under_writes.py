"""Writes to ZooKeeper in a session that has expired meanwhile."""

from __future__ import annotations

import pytest
from fakekafka import Simulation
from fakekafka.replication.partition.isr_updaters import ZooKeeperIsrManager
from fakekafka.testing.checks import fully_replicated, replicas_identical
from fakekafka.tests.support.present import present


@pytest.mark.parametrize("kafka_version", ["0.10", "1.1"])
def test_an_isolated_leader_becomes_a_follower_when_its_network_heals(kafka_version: str) -> None:
    """Its write fails in the expired session; another replica took over, and the old leader joins
    the new one's ISR.
    """
    with Simulation(3, seed=1, kafka_version=kafka_version, trace=False) as simulation:
        simulation.create_topic("orders", 1, 3)
        simulation.produce("orders", [b"before"])
        old = present(simulation.partition("orders", 0).leader)
        simulation.network.isolate(old)
        simulation.run_for(60_000)
        after = simulation.partition("orders", 0)
        assert after.leader not in (old, None)
        assert old not in after.isr
        simulation.network.heal()
        simulation.run_until(lambda: fully_replicated(simulation, ["orders"]), every_ms=100)
        assert simulation.partition("orders", 0).leader == after.leader
        assert replicas_identical(simulation, ["orders"])
        assert simulation.failures == []


def test_isr_changes_unpublished_in_an_expired_session_are_published_in_the_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """CP-189: the notification fails in the expired session, but the changes are kept."""
    with Simulation(3, seed=1, kafka_version="1.1", trace=False) as simulation:
        simulation.create_topic("orders", 1, 3)
        leader = present(simulation.partition("orders", 0).leader)
        other = next(
            b for b in simulation.broker_ids if b not in (leader, simulation.controller.id)
        )
        simulation.network.partition([other], [leader])
        updater = present(simulation.processes[leader].broker).replica_manager.isr_updater
        assert isinstance(updater, ZooKeeperIsrManager)
        simulation.run_until(lambda: updater._changed)
        simulation.zookeeper.expire_session(leader)
        updater._publish(tuple(updater._changed))
        updater._changed.clear()
        simulation.run_until(lambda: updater._changed)
        assert "ISR changes not published" in caplog.text
        assert [str(partition) for partition in updater._changed] == ["orders-0"]
        simulation.run_for(10_000)
        assert updater._changed == {}
        assert simulation.failures == []


def test_a_resignation_holds_if_the_session_expires_meanwhile() -> None:
    """The controller's znode is deleted with the session, and the other brokers elect."""
    with Simulation(3, seed=1, trace=False) as simulation:
        old = simulation.controller
        old_id, old_epoch = old.id, old.epoch
        simulation.zookeeper.expire_session(present(old_id))
        old.resign()
        assert simulation.controller.epoch > old_epoch
        assert simulation.failures == []
