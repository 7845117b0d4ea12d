"""What a response must show to a client: trees of values by kio's field names, per API.

A tree has the fields of all versions; a version shows those it has. Error codes are as a client of
the version must see them.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from fakekafka.protocol import admin, data
from fakekafka.protocol.values import uuid_bytes
from fakekafka.tests.support import (
    broker_parity,
    response_trees_groups,
    response_trees_transactions,
    security_parity,
)

NOT_ASKED = -(2**31)


class TopicIds:
    """Ids made from names."""

    def topic_id(self, topic: str) -> bytes:
        return topic.encode().ljust(16, b".")[:16]

    def topic_name(self, topic_id: bytes) -> str | None:
        return None


def grouped(results: Any, tree: Any, inner: str, version: int) -> Any:
    """Results of partitions under their topics."""
    groups: dict[str, list[Any]] = {}
    for item in results:
        partition = item[0] if isinstance(item, tuple) else item.topic_partition
        groups.setdefault(partition.topic, []).append(tree(item, version))
    return [
        {"name": topic, "topic": topic, "topic_id": TopicIds().topic_id(topic), inner: trees}
        for topic, trees in groups.items()
    ]


def endpoint_trees(brokers: Any) -> Any:
    return [
        {"node_id": b.id, "broker_id": b.id, "host": e.host, "port": e.port, "rack": b.rack}
        for b in brokers
        for e in b.endpoints
    ]


def leader_tree(leader: Any) -> Any:
    return dict(zip(("leader_id", "leader_epoch"), leader or (-1, -1), strict=True))


def produce_partition(p: Any, version: int) -> Any:
    error = 6 if p.error == 56 and version <= 3 else p.error
    return {
        "index": p.topic_partition.partition,
        "error_code": 47 if error == 90 else error,
        "base_offset": p.base_offset,
        "log_append_time": p.log_append_time_ms,
        "log_start_offset": p.log_start_offset,
        "record_errors": [
            {"batch_index": index, "batch_index_error_message": text}
            for index, text in p.record_errors
        ],
        "error_message": p.error_message,
        "current_leader": leader_tree(p.current_leader),
    }


def produce(r: Any, version: int) -> Any:
    plain = [
        p
        if p.error or p.record_errors or version < 8
        else dataclasses.replace(p, error_message=None, current_leader=None)
        for p in r.partitions
    ]
    return {
        "responses": grouped(plain, produce_partition, "partition_responses", version),
        "throttle_time": r.throttle_time_ms,
        "node_endpoints": endpoint_trees(r.node_endpoints),
    }


def fetch_partition(p: Any, version: int) -> Any:
    diverging = p.diverging_epoch or data.EpochEndOffset(-1, -1)
    aborted = p.aborted_transactions
    return {
        "partition_index": p.topic_partition.partition,
        "error_code": 6 if p.error == 56 and version <= 5 else p.error,
        "high_watermark": p.high_watermark,
        "last_stable_offset": p.last_stable_offset,
        "log_start_offset": p.log_start_offset,
        "aborted_transactions": aborted
        if aborted is None
        else [{"producer_id": a.producer_id, "first_offset": a.first_offset} for a in aborted],
        "preferred_read_replica": p.preferred_read_replica,
        "records": b"".join(batch.data for batch in p.records),
        "diverging_epoch": {
            "epoch": diverging.leader_epoch,
            "end_offset": diverging.end_offset,
        },
        "current_leader": leader_tree(p.current_leader),
        "snapshot_id": {"end_offset": -1, "epoch": -1},
    }


def fetch(r: Any, version: int) -> Any:
    return {
        "throttle_time": r.throttle_time_ms,
        "error_code": r.error,
        "session_id": r.session_id,
        "responses": grouped(r.partitions, fetch_partition, "partitions", version),
        "node_endpoints": endpoint_trees(r.node_endpoints),
    }


def list_offsets_partition(p: Any, version: int) -> Any:
    return {
        "partition_index": p.topic_partition.partition,
        "error_code": 5 if p.error == 78 and version < 5 else p.error,
        "timestamp": p.timestamp,
        "offset": p.offset,
        "leader_epoch": p.leader_epoch,
    }


def list_offsets(r: Any, version: int) -> Any:
    trees = grouped(r.partitions, list_offsets_partition, "partitions", version)
    return {"throttle_time": 0, "topics": trees}


def metadata_partition(p: Any, version: int, living: set[int]) -> Any:
    alive = [[node for node in nodes if version or node in living] for nodes in (p.replicas, p.isr)]
    error = p.error
    if version < 6 and error == 72:
        error = 5
    if (
        version == 0
        and error == 0
        and (len(alive[0]), len(alive[1]))
        != (
            len(p.replicas),
            len(p.isr),
        )
    ):
        error = 9
    return {
        "error_code": error,
        "partition_index": p.partition,
        "leader_id": p.leader,
        "leader_epoch": p.leader_epoch,
        "replica_nodes": alive[0],
        "isr_nodes": alive[1],
        "offline_replicas": list(p.offline_replicas),
    }


def metadata(r: Any, version: int) -> Any:
    living = {broker.id for broker in r.brokers}
    return {
        "throttle_time": 0,
        "brokers": endpoint_trees(r.brokers),
        "cluster_id": r.cluster_id or None,
        "controller_id": r.controller_id,
        "topics": [
            {
                "error_code": t.error,
                "name": t.name,
                "topic_id": uuid_bytes(t.topic_id),
                "is_internal": t.is_internal,
                "partitions": [metadata_partition(p, version, living) for p in t.partitions],
                "topic_authorized_operations": NOT_ASKED,
            }
            for t in r.topics
        ],
        "cluster_authorized_operations": NOT_ASKED,
        "error_code": 0,
        "error_message": None,
        "endpoint_type": 1,
    }


def offset_commit(r: Any, version: int) -> Any:
    trees = grouped(
        r.partitions,
        lambda p, _: {"partition_index": p[0].partition, "error_code": p[1]},
        "partitions",
        version,
    )
    return {"throttle_time": 0, "topics": trees}


def committed(p: Any, version: int) -> Any:
    return {
        "partition_index": p.topic_partition.partition,
        "committed_offset": p.offset,
        "committed_leader_epoch": p.leader_epoch,
        "metadata": p.metadata,
        "error_code": p.error,
    }


def offset_fetch(r: Any, version: int) -> Any:
    def tree(response: Any) -> Any:
        return grouped(response.partitions, committed, "partitions", version)

    if isinstance(r, tuple):
        groups = [
            {"group_id": f"group-{n}", "topics": tree(g), "error_code": g.error}
            for n, g in enumerate(r)
        ]
        return {"throttle_time": 0, "groups": groups}
    return {"throttle_time": 0, "topics": tree(r), "error_code": r.error}


def topic_result(t: Any, version: int) -> Any:
    entries = t.config_entries or [admin.ConfigEntry(name, value, 1) for name, value in t.config]
    return {
        "name": t.name,
        "topic_id": uuid_bytes(t.topic_id),
        "error_code": t.error,
        "error_message": t.error_message,
        "num_partitions": t.partitions,
        "replication_factor": t.replication_factor,
        "configs": [
            {
                "name": c.name,
                "value": c.value,
                "read_only": c.read_only,
                "config_source": c.source,
                "is_sensitive": c.is_sensitive,
            }
            for c in entries
        ],
        "topic_config_error_code": 0,
    }


def topic_results_tree(r: Any, version: int) -> Any:
    trees = [topic_result(t, version) for t in r.topics]
    return {"throttle_time": 0, "topics": trees, "results": trees}


def delete_topics(r: Any, version: int) -> Any:
    trees = [topic_result(t, version) for t in r.topics]
    for tree in trees:
        if version < 3 and tree["error_code"] == 73:
            tree["error_code"] = 42
    return {"throttle_time": 0, "responses": trees}


def delete_records(r: Any, version: int) -> Any:
    trees = grouped(
        r.partitions,
        lambda p, _: {
            "partition_index": p[0].partition,
            "low_watermark": p[2],
            "error_code": p[1],
        },
        "partitions",
        version,
    )
    return {"throttle_time": 0, "topics": trees}


def init_producer_id(r: Any, version: int) -> Any:
    return {
        "throttle_time": 0,
        "error_code": 47 if r.error == 90 and version < 4 else r.error,
        "producer_id": r.producer_id,
        "producer_epoch": r.producer_epoch,
    }


def offset_for_leader_epoch(r: Any, version: int) -> Any:
    trees = grouped(
        r.partitions,
        lambda p, _: {
            "error_code": p.error,
            "partition": p.topic_partition.partition,
            "leader_epoch": p.leader_epoch,
            "end_offset": p.end_offset,
        },
        "partitions",
        version,
    )
    return {"throttle_time": 0, "topics": trees}


def resource_tree(resource: Any, error: Any, message: Any) -> Any:
    return {
        "error_code": error,
        "error_message": message,
        "resource_type": resource.type,
        "resource_name": resource.name,
    }


def describe_configs(r: Any, version: int) -> Any:
    def entry(c: Any) -> Any:
        return {
            "name": c.name,
            "value": None if c.is_sensitive else c.value,
            "read_only": c.read_only,
            "config_source": c.source,
            "is_sensitive": c.is_sensitive,
            "synonyms": [
                {"name": name, "value": None if c.is_sensitive else value, "source": source}
                for name, value, source in c.synonyms
            ],
            "config_type": c.config_type,
            "documentation": c.documentation,
        }

    trees = [
        {
            **resource_tree(result.resource, result.error, result.error_message),
            "configs": [entry(c) for c in result.entries],
        }
        for result in r.results
    ]
    return {"throttle_time": 0, "results": trees}


def alter_configs(r: Any, version: int) -> Any:
    return {"throttle_time": 0, "responses": [resource_tree(*x) for x in r.results]}


def partition_error(p: Any, version: int) -> Any:
    return {
        "partition_id": p[0].partition,
        "partition_index": p[0].partition,
        "error_code": p[1],
        "error_message": p[2],
    }


def partition_errors(r: Any, version: int) -> Any:
    """ElectLeaders and AlterPartitionReassignments differ in names only."""
    return {
        "throttle_time": 0,
        "error_code": r.error,
        "error_message": getattr(r, "error_message", None),
        "replica_election_results": grouped(
            r.partitions, partition_error, "partition_result", version
        ),
        "responses": grouped(r.partitions, partition_error, "partitions", version),
    }


def list_reassignments(r: Any, version: int) -> Any:
    trees = grouped(
        r.reassignments,
        lambda o, _: {
            "partition_index": o.topic_partition.partition,
            "replicas": list(o.replicas),
            "adding_replicas": list(o.adding),
            "removing_replicas": list(o.removing),
        },
        "partitions",
        version,
    )
    return {
        "throttle_time": 0,
        "error_code": r.error,
        "error_message": r.error_message,
        "topics": trees,
    }


TREES: dict[int, Any] = {
    **response_trees_groups.TREES,
    **response_trees_transactions.TREES,
    **security_parity.TREES,
    **broker_parity.TREES,
    0: produce,
    1: fetch,
    2: list_offsets,
    3: metadata,
    8: offset_commit,
    9: offset_fetch,
    19: topic_results_tree,
    20: delete_topics,
    21: delete_records,
    22: init_producer_id,
    23: offset_for_leader_epoch,
    32: describe_configs,
    33: alter_configs,
    37: topic_results_tree,
    43: partition_errors,
    44: alter_configs,
    45: partition_errors,
    46: list_reassignments,
    60: lambda r, version: {**metadata(r, version), "cluster_id": r.cluster_id},
}
