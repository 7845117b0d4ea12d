"""The check that a cluster started on the data of an earlier one serves its topics again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..protocol.values import TopicPartition
    from .running import RunningCluster


def is_restored(running: RunningCluster) -> bool:
    """Return whether ZooKeeper's state was restored from a data directory."""
    return any(zookeeper.is_restored for zookeeper in running.zookeepers.values())


def has_topic_leaders(running: RunningCluster) -> bool:
    """Return whether every partition that can have a leader has one, and all brokers know it."""
    from .handles.zookeeper import ZooKeeperHandle  # here, as most clusters start without data

    controller = running.active_controller()
    if controller is None:
        return False
    topics = ZooKeeperHandle(running).children("/brokers/topics")
    process = running.processes[controller.broker_id].process
    leaders = running.in_process(process, lambda: _leaders(controller.context, topics))
    if leaders is None:
        return False
    for broker in running.living_brokers():
        cache = broker.metadata_cache
        for key, leader in leaders.items():
            known = cache.partition_state(key)
            if known is None or known.leader != leader:
                return False
    return True


def _leaders(context: Any, topics: list[str]) -> dict[TopicPartition, int] | None:
    """Return the leader of every partition that has one; None if some are still to be elected."""
    from ..statemachines.machines.transitions import PartitionState

    if list(context.topics.all_topics) != topics:
        return None
    leaders: dict[TopicPartition, int] = {}
    for key in context.topics.all_partitions():
        if key.topic in context.topics.topics_to_be_deleted:
            continue
        info = context.topics.partition_leadership_info(key)
        if context.states.partition_state(key) is PartitionState.ONLINE:
            leaders[key] = info.leader_and_isr.leader
            continue
        assigned = context.topics.partition_replica_assignment(key)
        candidates = assigned if info is None else info.leader_and_isr.isr
        if any(context.brokers.is_replica_online(broker_id, key) for broker_id in candidates):
            return None
    return leaders
