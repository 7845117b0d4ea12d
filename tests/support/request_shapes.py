"""Requests of every served API, of any size.

They have arrays of every kind: many topics, many partitions of one topic, repeated partitions and
topics, names that collide, configurations, nested lists. Requests to coordinators are in
``coordinator_shapes``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fakekafka.tests.support.coordinator_shapes import coordinator_shapes
from fakekafka.tests.support.growing_requests import (
    INDEX,
    NAMES,
    PARTITION_KINDS,
    Many,
    Shape,
    partitions,
    text,
)

# fmt: off
_BROKER = {"brokerId": 9, "brokerEpoch": 5}
_NAMED = {"name": "{name}"}
_NEW = {"name": "{name}", "numPartitions": 1, "replicationFactor": 1}
_DRY = {"timeoutMs": 0, "validateOnly": True}
_TOPIC = {"resourceType": 2, "resourceName": "{name}"}
_X = {"resourceType": 2, "resourceName": "x"}
_CONFIG = {"name": "{name}", "value": "1"}
_RETENTION = {"name": "retention.ms", "value": "1"}
_ANY_ACL = {
    "resourceTypeFilter": 1, "resourceNameFilter": None, "patternTypeFilter": 1,
    "principalFilter": None, "hostFilter": None, "operation": 1, "permissionType": 1,
}
_ACL = {
    "resourceType": 2, "resourceName": "t{i}", "principal": "User:a", "host": "*", "operation": 3,
    "permissionType": 3,
}
_PRINCIPALS = Many({"principalType": "User", "principalName": "u{i}"})


def shapes() -> Iterator[Shape]:
    """Yield all requests."""
    for kind in PARTITION_KINDS:
        for title, key, version, tree in _of_partitions(kind):
            yield Shape(title, key, version, tree, kind)
    for kind in NAMES:
        for title, key, version, tree in _OF_NAMES:
            yield Shape(title, key, version, tree, kind)
    for title, key, version, tree in _OTHERS:
        yield Shape(title, key, version, tree)
    tagged = {"acks": 1, "timeoutMs": 100}
    yield Shape("Produce with tagged fields", 0, 9, tagged, has_tags=True)
    yield from coordinator_shapes()


def _of_partitions(kind: str) -> Iterator[tuple[str, int, int, Any]]:
    def of(*names: str, **entry: Any) -> Any:
        name, array = names or ("name", "partitions")
        return partitions(kind, entry or INDEX, name=name, array=array)

    yield "Produce", 0, 3, {
        "acks": 1, "timeoutMs": 1000,
        "topicData": of("name", "partitionData", index=INDEX, records=b""),
    }
    entry: dict[str, Any] = {"partition": INDEX, "partitionMaxBytes": 100}
    limits = {"replicaId": -1, "minBytes": 1, "maxBytes": 1000}
    yield "Fetch", 1, 4, {**limits, "topics": of("topic", "partitions", **entry)}
    entry["logStartOffset"] = 0
    yield "Fetch in a session", 1, 7, {
        **limits, "sessionEpoch": 0, "topics": of("topic", "partitions", **entry),
    }
    at_end = {"partitionIndex": INDEX, "timestamp": -1}
    yield "ListOffsets", 2, 1, {"replicaId": -1, "topics": of(**at_end)}
    yield "ListOffsets v0", 2, 0, {"replicaId": -1, "topics": of(**at_end, maxNumOffsets=5)}
    yield "OffsetCommit", 8, 2, {
        "groupId": "g", "topics": of(partitionIndex=INDEX, committedOffset=5),
    }
    yield "OffsetFetch", 9, 1, {"groupId": "g", "topics": of("name", "partitionIndexes")}
    yield "DeleteRecords", 21, 0, {"timeoutMs": 100, "topics": of(partitionIndex=INDEX)}
    yield "OffsetForLeaderEpoch", 23, 2, {
        "topics": of("topic", "partitions", partition=INDEX, currentLeaderEpoch=0),
    }
    yield "ElectLeaders", 43, 0, {"timeoutMs": 200, "topicPartitions": of("topic", "partitions")}
    yield "DescribeLogDirs", 35, 1, {"topics": of("topic", "partitions")}
    yield "AlterReplicaLogDirs", 34, 1, {"dirs": [{"path": "/elsewhere", "topics": of()}]}
    yield "AlterPartition", 56, 1, {
        **_BROKER, "topics": of("topicName", "partitions", partitionIndex=INDEX, newIsr=[1]),
    }


_OF_NAMES: tuple[tuple[str, int, int, Any], ...] = (
    ("Metadata", 3, 4, {"topics": Many(_NAMED), "allowAutoTopicCreation": False}),
    ("Metadata of bad names", 3, 4, {"topics": Many({"name": "bad!{name}"})}),
    ("CreateTopics", 19, 1, {"topics": Many(_NEW), **_DRY}),
    ("CreateTopics with configs", 19, 1, {
        "topics": [{**_NEW, "name": "new", "configs": Many(_CONFIG)}], **_DRY,
    }),
    ("DeleteTopics", 20, 1, {"topicNames": Many("{name}")}),
    ("DescribeConfigs", 32, 0, {"resources": Many({**_TOPIC, "configurationKeys": None})}),
    ("DescribeConfigs by name", 32, 0, {
        "resources": [{**_X, "configurationKeys": Many("{name}")}],
    }),
    ("AlterConfigs", 33, 0, {
        "resources": Many({**_TOPIC, "configs": [_RETENTION]}), "validateOnly": True,
    }),
    ("AlterConfigs of one", 33, 0, {
        "resources": [{**_X, "configs": Many(_CONFIG)}], "validateOnly": True,
    }),
    ("IncrementalAlterConfigs", 44, 0, {
        "resources": Many({**_TOPIC, "configs": [_RETENTION]}), "validateOnly": True,
    }),
    ("IncrementalAlterConfigs of one", 44, 0, {
        "resources": [{**_X, "configs": Many(_CONFIG)}], "validateOnly": True,
    }),
    ("CreatePartitions", 37, 0, {
        "topics": Many({"name": "{name}", "count": 2, "assignments": None}), "validateOnly": True,
    }),
    ("UpdateFeatures", 57, 1, {
        "featureUpdates": Many({"feature": "{name}", "maxVersionLevel": 1}), "timeoutMs": 200,
        "validateOnly": True,
    }),
    ("FindCoordinator", 10, 4, {"coordinatorKeys": Many("{name}")}),
)
_OTHERS: tuple[tuple[str, int, int, Any], ...] = (
    ("ApiVersions", 18, 3, {"clientSoftwareName": text("x"), "clientSoftwareVersion": "1"}),
    ("DescribeCluster", 60, 0, {}),
    ("AllocateProducerIds", 67, 0, _BROKER),
    ("AlterPartition with a long ISR", 56, 1, {
        **_BROKER,
        "topics": [{
            "topicName": "t_0", "partitions": [{"partitionIndex": 0, "newIsr": Many(INDEX)}],
        }],
    }),
    ("AlterReplicaLogDirs to many directories", 34, 1, {
        "dirs": Many({"path": "/d{i}", "topics": [{"name": "x", "partitions": [0]}]}),
    }),
    ("CreateTopics with lists", 19, 1, {
        "topics": [{
            "name": "new", "numPartitions": -1, "replicationFactor": -1,
            "assignments": Many({"partitionIndex": INDEX, "brokerIds": [1]}),
        }],
        **_DRY,
    }),
    ("CreateTopics with replicas", 19, 1, {
        "topics": [{
            "name": "new", "numPartitions": -1, "replicationFactor": -1,
            "assignments": [{"partitionIndex": 0, "brokerIds": Many(INDEX)}],
        }],
        **_DRY,
    }),
    ("CreatePartitions with lists", 37, 0, {
        "topics": [{
            "name": "x", "count": lambda size: size + 4, "assignments": Many({"brokerIds": [1]}),
        }],
        "validateOnly": True,
    }),
    ("AlterPartitionReassignments", 45, 0, {
        "timeoutMs": 200,
        "topics": [{
            "name": "x", "partitions": [{"partitionIndex": 0, "replicas": Many(INDEX)}],
        }],
    }),
    ("ListPartitionReassignments", 46, 0, {
        "timeoutMs": 200, "topics": [{"name": "x", "partitionIndexes": Many(INDEX)}],
    }),
    ("OffsetFetch of many groups", 9, 8, {"groups": Many({"groupId": "g{i}", "topics": None})}),
    ("IncrementalAlterConfigs of a list", 44, 0, {
        "resources": [{
            **_X,
            "configs": [{
                "name": "leader.replication.throttled.replicas", "configOperation": 2,
                "value": lambda size: ",".join(map(str, range(min(size, 6000)))),
            }],
        }],
        "validateOnly": True,
    }),
    # A listener without SASL answers that the request is out of place.
    ("SaslHandshake", 17, 1, {"mechanism": text("x")}),
    ("SaslAuthenticate", 36, 0, {"authBytes": bytes}),
    ("DescribeUserScramCredentials", 50, 0, {"users": Many({"name": "u{i}"})}),
    ("AlterUserScramCredentials of nobody's", 51, 0, {
        "deletions": Many({"name": "u{i}", "mechanism": 3}),
    }),
    ("DescribeAcls", 29, 2, _ANY_ACL),
    ("CreateAcls", 30, 2, {"creations": Many(_ACL)}),
    ("DeleteAcls", 31, 2, {"filters": Many(_ANY_ACL)}),
    ("DescribeClientQuotas of nothing known", 48, 1, {
        "components": Many({"entityType": "k{i}", "matchType": 2, "match": None}),
    }),
    ("AlterClientQuotas, validated only", 49, 1, {
        "entries": Many({"entity": [{"entityType": "user", "entityName": "u"}]}, most=500),
        "validateOnly": True,
    }),
    ("CreateDelegationToken", 38, 2, {"renewers": _PRINCIPALS, "maxLifetimeMs": -1}),
    ("RenewDelegationToken", 39, 0, {"hmac": bytes, "renewPeriodMs": 1}),
    ("ExpireDelegationToken", 40, 0, {"hmac": bytes, "expiryTimePeriodMs": 1}),
    ("DescribeDelegationToken", 41, 2, {"owners": _PRINCIPALS}),
)
