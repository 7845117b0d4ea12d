"""Emptying a cluster between two tests."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from ..protocol.admin import BROKER_RESOURCE, AlterConfigsRequest, ConfigResource
from ..protocol.errors import UsageError
from ..protocol.names import broker_name
from ..protocol.znode_payloads import decode_topic

if TYPE_CHECKING:
    from .cluster import Cluster
    from .handles import BrokerHandle

_TIMEOUT_S = 30
_CONFIG_TIMEOUT_MS = 10000


def reset(cluster: Cluster) -> None:
    """What ``Cluster.reset`` promises."""
    cluster._require_waiting()
    _end_interventions(cluster)
    for server_id, process in cluster.zookeepers.items():
        if not process.is_alive:
            cluster.zookeeper.server(server_id).start()
    for broker_id in cluster.broker_ids:
        _revive(cluster.broker(broker_id))
    cluster.wait_until(cluster._is_settled, _TIMEOUT_S)
    _forget_dynamic_configs(cluster)
    _require_deletable(cluster)
    for topic in cluster.topics():
        cluster.delete_topic(topic)

    def every_topic_is_deleted() -> bool:
        controller = cluster.controller._active()
        return controller is not None and not controller.context.topics_to_be_deleted

    # What was being deleted before is no topic any more, but still has to go.
    cluster.wait_until(every_topic_is_deleted, _TIMEOUT_S)


def _end_interventions(cluster: Cluster) -> None:
    network = cluster.runtime.network
    cluster._in_process(None, network.forget_watchers)
    cluster.network.heal()
    cluster.network.release()
    cluster._in_process(None, network.forget_link_latencies)
    cluster.network.latency(0)


def _revive(handle: BrokerHandle) -> None:
    if handle._process.process.paused:
        handle.resume()
    disk = handle._process.spec.disk
    if disk.offline_dirs:  # what was in them stays offline until the broker restarts
        if handle.is_alive:
            handle.shutdown()
        for index in range(len(disk.directories)):
            handle.repair_log_dir(index)
    if not handle.is_alive:
        handle.start()


def _forget_dynamic_configs(cluster: Cluster) -> None:
    """Take back what was set for brokers, at each one and for all."""

    def configured() -> list[int]:
        brokers = [process.broker for process in cluster.processes.values()]
        return [b.broker_id for b in brokers if b is not None and b.config.dynamic]

    for broker_id in configured():
        resources = [ConfigResource(BROKER_RESOURCE, name) for name in (str(broker_id), "")]
        nothing = AlterConfigsRequest(tuple((r, ()) for r in resources), incremental=False)

        def ask(broker_id: int = broker_id, request: Any = nothing) -> Coroutine[Any, Any, Any]:
            return _ask(cluster, broker_id, request)

        cluster.call(ask, _CONFIG_TIMEOUT_MS)

    def no_broker_has_dynamic_configs() -> bool:
        return not configured()

    cluster.wait_until(no_broker_has_dynamic_configs)


async def _ask(cluster: Cluster, broker_id: int, request: Any) -> Any:
    return await cluster._admin.ask(broker_name(broker_id), request, _CONFIG_TIMEOUT_MS)


def _require_deletable(cluster: Cluster) -> None:
    """Raise ``UsageError`` for replicas at brokers that can never come."""
    for topic in cluster.zookeeper.children("/brokers/topics"):
        stored = decode_topic(cluster.zookeeper.get(f"/brokers/topics/{topic}"))
        for partition, assigned in stored.assignment:
            strange = [b for b in assigned.replicas if b not in cluster.broker_ids]
            if strange:
                raise UsageError(
                    f"reset cannot delete {topic!r}: partition {partition} has replicas at "
                    f"{strange}, and brokers are {list(cluster.broker_ids)}; start a new cluster"
                )
