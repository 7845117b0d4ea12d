"""The controller's requests reach a broker in order, and are retried until they succeed."""

from __future__ import annotations

import pytest
from fakekafka.actors.delivery import Delivery
from fakekafka.protocol.admin import CreateTopicsRequest, NewTopic
from fakekafka.protocol.control import LeaderAndIsrRequest, UpdateMetadataRequest
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.tests.support.whole_clusters import cached_partition_state, running


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_a_lost_request_is_sent_again_after_the_request_timeout(version: str) -> None:
    """Each attempt lasts request.timeout.ms, and the next one follows 100 ms later
    (docs/kafka/control-requests.md#channels).
    """
    config = {"request.timeout.ms": 2000, "zookeeper.session.timeout.ms": 30_000}
    with running(2, version, config=config) as cluster:
        arrived: list[tuple[float, type]] = []

        def watch(delivery: Delivery) -> None:
            if delivery.target.name == "broker-2" and delivery.sender.name == "controller-1":
                arrived.append((cluster.now_ms, type(delivery.message)))

        cluster.observe(watch)
        cluster.network.drop(1.0, source=1, target=2)
        began_ms = cluster.now_ms
        topic = NewTopic("t", -1, -1, ((0, (2,)),))
        cluster.running.admin.ask("broker-1", CreateTopicsRequest((topic,)))
        cluster.run_for(3000)
        assert arrived == []
        cluster.network.heal()
        cluster.run_until(lambda: cached_partition_state(cluster, 2) is not None)
        times = [at for at, _ in arrived]
        assert times == sorted(times)
        assert 4200 <= times[0] - began_ms <= 4250
        kinds = [kind for _, kind in arrived]
        assert kinds[:2] == [LeaderAndIsrRequest, UpdateMetadataRequest]
