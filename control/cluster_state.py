"""The state of the whole cluster as JSON, which the page shows.

The state is read in slices, between which the cluster keeps running, so that even with many
partitions no slice holds it up for long.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..protocol.values import TopicPartition
from .fault_operations import faults

if TYPE_CHECKING:
    from ..actors.broker.broker import Broker
    from ..testing.cluster import Cluster
    from ..testing.running import RunningCluster
    from .operation import ServedCluster

_SLICE = 500
"""Number of partitions in a slice."""


class Leadership(NamedTuple):
    """Leader and replicas of a partition, as decided by the controller."""

    leader: int
    """Broker id of the leader; -1 if there is none."""
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


def _slices(keys: list[TopicPartition]) -> Iterator[list[TopicPartition]]:
    for start in range(0, len(keys), _SLICE):
        yield keys[start : start + _SLICE]


def _partitions_of_controller(running: RunningCluster) -> dict[TopicPartition, Leadership]:
    """Return the partitions of the active controller; empty if there is none, or if it is still
    loading."""
    controller = running.active_controller()
    if controller is None:
        return {}
    process = running.processes[controller.broker_id].process
    topics = controller.context.topics

    def read(keys: list[TopicPartition]) -> list[tuple[TopicPartition, Leadership]]:
        found = []
        for key in keys:
            decided = topics.partition_leadership_info(key)
            assigned = topics.partition_full_replica_assignment(key)
            if assigned.replicas:
                state = None if decided is None else decided.leader_and_isr
                found.append(
                    (
                        key,
                        Leadership(
                            -1 if state is None else state.leader,
                            -1 if state is None else state.leader_epoch,
                            () if state is None else state.isr,
                            -1 if state is None else state.zk_version,
                            assigned.replicas,
                            assigned.adding,
                            assigned.removing,
                        ),
                    )
                )
        return found

    keys = running.in_process(process, lambda: list(topics.all_partitions()))
    known: dict[TopicPartition, Leadership] = {}
    for part in _slices(keys):
        known.update(running.in_process(process, functools.partial(read, part)))
    return known


def _partitions_of_metadata(running: RunningCluster) -> dict[TopicPartition, Leadership]:
    """Return the partitions in the metadata of live brokers, the newest state of each."""
    known: dict[TopicPartition, Leadership] = {}
    for broker in running.living_brokers():
        cache = broker.metadata_cache

        def read(cache: Any = cache) -> list[tuple[TopicPartition, Leadership]]:
            return [
                (key, Leadership(s.leader, s.leader_epoch, s.isr, s.zk_version, s.replicas))
                for topic in cache.topics()
                for key in (TopicPartition(topic, n) for n in range(cache.partition_count(topic)))
                if (s := cache.partition_state(key)) is not None
            ]

        for key, heard in running.in_process(broker.process, read):
            if key not in known or known[key].leader_epoch < heard.leader_epoch:
                known[key] = heard
    return known


def partitions(cluster: Cluster) -> dict[TopicPartition, Leadership]:
    """Return every partition with its leader and replicas, sorted by name."""
    running = cluster.running
    known = _partitions_of_controller(running) or _partitions_of_metadata(running)
    return {key: known[key] for key in sorted(known)}


def replica_offsets(cluster: Cluster) -> dict[int, dict[TopicPartition, tuple[int, int]]]:
    """Return high watermark and log end offset of every online replica, by broker."""
    running = cluster.running
    found: dict[int, dict[TopicPartition, tuple[int, int]]] = {}
    for broker in running.living_brokers():
        offsets = found[broker.broker_id] = {}
        process = broker.process
        for part in _slices(running.in_process(process, functools.partial(_hosted, broker))):
            read = functools.partial(_offsets, broker, part)
            offsets.update(running.in_process(process, read))
    return found


def _offsets(
    broker: Broker, part: list[TopicPartition]
) -> list[tuple[TopicPartition, tuple[int, int]]]:
    hosted = broker.replica_manager.hosted.by_name
    logs = ((key, hosted[key].log) for key in part if key in hosted)
    return [(k, (log.high_watermark, log.log_end_offset)) for k, log in logs if log is not None]


def _hosted(broker: Broker) -> list[TopicPartition]:
    return list(broker.replica_manager.hosted.by_name)


def brokers(cluster: Cluster) -> list[dict[str, Any]]:
    """Return every broker with its state."""
    handles = [cluster.broker(broker_id) for broker_id in cluster.broker_ids]
    processes = cluster.running.processes
    return [
        {
            "id": handle.id,
            "name": handle.name,
            "state": handle.state,
            "is_alive": handle.is_alive,
            "is_paused": handle.is_paused,
            "clock_shift_ms": handle.clock_shift_ms,
            "clock_rate": handle.clock_rate,
            "port": handle.port,
            "offline_log_dirs": list(processes[handle.id].spec.disk.offline_dirs),
        }
        for handle in handles
    ]


def zookeepers(cluster: Cluster) -> list[dict[str, Any]]:
    """Return every ZooKeeper server with its state."""
    return [
        {
            "id": server_id,
            "name": process.name,
            "is_alive": process.is_alive,
            "is_serving": process.is_alive and bool(process.server.is_serving),
            "clock_rate": cluster.zookeeper.server(server_id).clock_rate,
        }
        for server_id, process in cluster.running.zookeepers.items()
    ]


def controller(cluster: Cluster) -> dict[str, Any]:
    """Return id and epoch of the active controller; None for both if there is none."""
    active = cluster.running.active_controller()
    return {
        "id": None if active is None else active.broker_id,
        "epoch": None if active is None else active.epoch,
    }


def memory(cluster: Cluster) -> dict[str, int] | None:
    """Return the memory that records use and may use, in bytes; None without a bound."""
    bound = cluster.memory
    if bound is None:
        return None
    return {
        "kept_bytes": bound.kept_bytes,
        "bytes_max": bound.bytes_max,
        "deleted_bytes": bound.deleted_bytes,
    }


def overview(cluster: Cluster) -> dict[str, Any]:
    """Return the state of the cluster without its topics."""
    return {
        "kafka_version": cluster.kafka_version,
        "bootstrap_servers": cluster.bootstrap_servers,
        "is_settled": cluster.running.is_settled,
        "controller": controller(cluster),
        "brokers": brokers(cluster),
        "zookeepers": zookeepers(cluster),
        "memory": memory(cluster),
        "failures": [f"{name}: {error!r}" for name, error in cluster.failures],
    }


def whole_state(served: ServedCluster) -> dict[str, Any]:
    """Return the overview, the active faults, and every partition with its replicas' offsets."""
    cluster = served.cluster
    offsets = replica_offsets(cluster)
    topics: dict[str, list[dict[str, Any]]] = {}
    for key, known in partitions(cluster).items():
        topics.setdefault(key.topic, []).append(
            {
                "partition": key.partition,
                "leader": None if known.leader < 0 else known.leader,
                "leader_epoch": known.leader_epoch,
                "replicas": known.replicas,
                "isr": known.isr,
                "adding": known.adding,
                "removing": known.removing,
                "offsets": {
                    broker: offsets[broker][key]
                    for broker in known.replicas
                    if key in offsets.get(broker, {})
                },
            }
        )
    return {**overview(cluster), "faults": faults(served), "topics": topics}
