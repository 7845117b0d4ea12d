"""Expired delegation tokens are deleted from ZooKeeper (KIP-48)."""

from __future__ import annotations

from fakekafka import Simulation
from fakekafka.protocol.security.delegation_tokens import CreateDelegationTokenRequest

CONFIG = {
    "delegation.token.secret.key": "key",
    "delegation.token.expiry.time.ms": 60_000,
    "delegation.token.expiry.check.interval.ms": 10_000,
}


def test_the_controller_deletes_expired_tokens_and_every_broker_forgets_them() -> None:
    """As in ``DelegationTokenManagerZk.expireTokens``, which the controller schedules."""
    with Simulation(3, config=CONFIG) as simulation:
        brokers = [simulation.processes[i].broker for i in simulation.broker_ids]
        assert None not in brokers
        maker = next(b for b in brokers if b is not None and not b.controller.is_active)
        request = CreateDelegationTokenRequest(())
        maker.start_task(maker.security.tokens.create(request, "User:alice"))
        simulation.run_for(5000)
        path = "/delegation_token/tokens"
        assert len(simulation.zookeeper.children(path)) == 1
        assert [len(b.security.tokens.all()) for b in brokers if b is not None] == [1, 1, 1]
        simulation.run_for(50_000)
        assert len(simulation.zookeeper.children(path)) == 1
        simulation.run_for(20_000)
        assert simulation.zookeeper.children(path) == []
        assert [b.security.tokens.all() for b in brokers if b is not None] == [(), (), ()]
        assert simulation.failures == []
