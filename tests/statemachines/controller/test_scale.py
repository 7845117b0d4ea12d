"""Work grows with the number of partitions, round trips do not."""

from __future__ import annotations

from collections.abc import Sequence

from fakekafka.protocol.values import ReplicaAssignment
from fakekafka.tests.support.controller_cluster import ControllerCluster
from fakekafka.tests.support.local_zookeeper import LocalZooKeeperClient
from fakekafka.tests.support.run_now import run_now
from fakekafka.zkfake.messages import Request, ZkResponse


def cost(partitions: int) -> dict[str, tuple[int, int, int]]:
    """Return (ZooKeeper batches, ZooKeeper requests, control requests) that events cause."""
    counts = [0, 0]

    class CountingClient(LocalZooKeeperClient):
        async def send_once(self, requests: Sequence[Request]) -> list[ZkResponse]:
            counts[0] += 1
            counts[1] += len(requests)
            return await super().send_once(requests)

    class CountingCluster(ControllerCluster):
        client_class = CountingClient

    cluster = CountingCluster([1, 2, 3])

    def measured(name: str) -> None:
        results[name] = (counts[0], counts[1], len(cluster.sent))
        counts[:] = [0, 0]
        cluster.sent.clear()

    results: dict[str, tuple[int, int, int]] = {}
    replicas = {p: ReplicaAssignment(((p % 3) + 1, (p + 1) % 3 + 1)) for p in range(partitions)}
    run_now(cluster.zk.topics.create_topic_assignment("t", replicas, "id"))
    cluster.sent.clear()
    counts[:] = [0, 0]
    cluster.settle()
    measured("create")
    cluster.kill(3)
    measured("broker failure")
    cluster.kill(1)
    measured("controller failover")
    run_now(cluster.zk.admin.create_delete_topic_path("t"))
    cluster.settle()
    measured("deletion")
    return results


def test_round_trips_do_not_grow_with_partitions() -> None:
    """KAFKA-5642: every step is one batch, whatever its size; requests per partition are few."""
    small, large = cost(30), cost(300)
    for name in small:
        batches, requests, control = large[name]
        assert (batches, control) == (small[name][0], small[name][2]), name
        assert requests <= 12 * 300, name
