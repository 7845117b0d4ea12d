"""Emptying a cluster between two tests."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..protocol.errors import NotThereYet, UsageError
from ..protocol.znode_payloads import decode_topic
from .handles.admin import AdminClient
from .handles.broker import BrokerHandle
from .handles.network import NetworkHandle
from .handles.partitions import Partitions
from .handles.zookeeper import ZooKeeperHandle

if TYPE_CHECKING:
    from ..actors.broker.process import BrokerProcess
    from .running import RunningCluster

_TIMEOUT_S = 30


def reset(running: RunningCluster) -> None:
    """Empty the cluster as ``Cluster.reset`` describes."""
    running.require_waiting()
    _end_interventions(running)
    for server_id, zookeeper in running.zookeepers.items():
        if not zookeeper.is_alive:
            ZooKeeperHandle(running).server(server_id).start()
    for process in running.processes.values():
        _revive(running, process)

    def is_settled() -> bool:
        return running.is_settled

    running.wait_until(is_settled, _TIMEOUT_S)
    _forget_dynamic_configs(running)
    _require_deletable(running)
    admin = AdminClient(running)
    topics = Partitions(running).topics()
    if topics:
        admin.delete_topics(topics)

    def every_topic_is_deleted() -> bool:
        controller = running.active_controller()
        return controller is not None and not controller.context.topics.topics_to_be_deleted

    # What was being deleted before is no topic any more, but still has to go.
    running.wait_until(every_topic_is_deleted, _TIMEOUT_S)


def _end_interventions(running: RunningCluster) -> None:
    network, handle = running.runtime.network, NetworkHandle(running)
    running.in_process(None, network.forget_watchers)
    handle.heal()
    handle.release()
    running.in_process(None, network.forget_link_latencies)
    running.in_process(None, network.forget_bandwidths)
    handle.latency(0)


def _revive(running: RunningCluster, process: BrokerProcess) -> None:
    handle = BrokerHandle(running, process)
    if handle.is_paused:
        handle.resume()
    broker, disk = process.broker, process.spec.disk
    has_offline_replicas = broker is not None and broker.replica_manager.offline_count > 0
    if disk.offline_dirs or has_offline_replicas:  # offline until the broker restarts
        if handle.is_alive:
            handle.shutdown()
        for index in range(len(disk.directories)):
            handle.repair_log_dir(index)
    if not handle.is_alive:
        handle.start()


def _forget_dynamic_configs(running: RunningCluster) -> None:
    """Undo dynamic configurations, those of single brokers and the cluster-wide ones."""
    for process in running.processes.values():
        running.in_process(process.process, partial(_begin_to_forget, process))

    def no_broker_has_dynamic_configs() -> bool:
        return not any(
            broker.config.dynamic_of_broker or broker.config.dynamic_default
            for broker in running.living_brokers()
        )

    running.wait_until(no_broker_has_dynamic_configs)


def _begin_to_forget(process: BrokerProcess) -> None:
    broker = process.broker
    if broker is not None:
        broker.replica_manager.quotas.forget()
    if broker is not None and (broker.config.dynamic_of_broker or broker.config.dynamic_default):
        broker.start_task(broker.dynamic_config.forget_all())


def _require_deletable(running: RunningCluster) -> None:
    """Raise ``UsageError`` for replicas at brokers that can never come."""
    zookeeper, broker_ids = ZooKeeperHandle(running), list(running.processes)
    for topic in zookeeper.children("/brokers/topics"):
        try:
            stored = decode_topic(zookeeper.get(f"/brokers/topics/{topic}"))
        except NotThereYet:
            continue  # its deletion came to its end just now
        for partition, assigned in stored.assignment:
            strange = [b for b in assigned.replicas if b not in broker_ids]
            if strange:
                raise UsageError(
                    f"reset cannot delete {topic!r}: partition {partition} has replicas at "
                    f"{strange}, and brokers are {broker_ids}; start a new cluster"
                )
