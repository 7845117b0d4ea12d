"""Clusters used inside asyncio programs."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from fakekafka import Cluster, Simulation, UsageError, WaitTimeout
from fakekafka.testing.emulated_cluster import EmulatedCluster


@pytest.fixture(scope="module", params=["live", "simulation"])
def cluster(request: pytest.FixtureRequest) -> Any:
    with Cluster(brokers=1) if request.param == "live" else Simulation(1) as made:
        yield made


async def _use_async_cluster() -> Any:
    async with Cluster(brokers=1) as cluster:
        return cluster.bootstrap_servers


def test_a_cluster_is_an_async_context_manager_too() -> None:
    assert asyncio.run(_use_async_cluster()).startswith("127.0.0.1:")


async def _use_cluster_in_coroutine(runtime: str) -> Any:
    with Cluster(brokers=1, topics={"orders": 1}, runtime=runtime) as cluster:
        cluster.produce("orders", "value")
        cluster.wait_until(lambda: cluster.partition("orders", 0).leader == 1)
        with pytest.raises(WaitTimeout, match=r"event loop was blocked .* asyncio\.to_thread\("):
            cluster.wait_until(lambda: False, timeout_s=0)
        return [record.value for record in cluster.records("orders", 0)]


@pytest.mark.parametrize("runtime", ["live", "threaded"])
def test_a_cluster_can_be_used_inside_a_running_event_loop(
    runtime: str, recwarn: pytest.WarningsRecorder
) -> None:
    """A cluster in a running event loop leaves no unawaited coroutine behind."""
    assert asyncio.run(_use_cluster_in_coroutine(runtime)) == [b"value"]
    gc.collect()
    assert [str(warning.message) for warning in recwarn] == []


async def _coroutine(*_: Any) -> Any:
    return True


@pytest.mark.parametrize(
    "use",
    [
        lambda cluster: cluster.wait_until(_coroutine),
        lambda cluster: cluster.observe(_coroutine),
        lambda cluster: cluster.network.hold(_coroutine),
    ],
)
def test_a_coroutine_function_is_refused_as_a_callback(cluster: EmulatedCluster, use: Any) -> None:
    """A coroutine function is refused as a callback: as a condition it would always be true."""
    with pytest.raises(UsageError, match="must be a function that is not a coroutine function"):
        use(cluster)
