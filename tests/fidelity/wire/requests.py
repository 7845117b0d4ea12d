"""Valid requests, one for each API that clients use, for a cluster of one broker.

The encoder leaves out fields that a version does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fakekafka.tests.fidelity.protocol import records

TOPIC = "c"
PARTITIONS = 2
GROUP = "g"
NO_ID = "0" * 32

LEFT_OUT: Mapping[int, str] = {
    4: "LeaderAndIsr is the controller's; see the limitations",
    5: "StopReplica is the controller's",
    6: "UpdateMetadata is the controller's",
    7: "ControlledShutdown would end the broker",
    27: "WriteTxnMarkers is a coordinator's, and would end transactions of nobody",
    56: "AlterPartition is a leader's",
    58: "Envelope is a broker's, and needs a listener of its own",
    67: "AllocateProducerIds is a broker's",
}
"""APIs that no client uses."""


class Surroundings(NamedTuple):
    """The facts of a cluster that requests need."""

    version: int
    number: int
    """Number of the request, which makes names unique."""
    now_ms: int
    topic_id: str


Maker = Callable[[Surroundings], dict[str, Any]]


def good(api: str, about: Surroundings) -> dict[str, Any]:
    """Return the fields of a request that is valid, even if the broker refuses it."""
    maker = _DATA.get(api) or _GROUPS.get(api) or _ADMIN.get(api) or _TRANSACTIONS.get(api)
    if maker is None:
        return dict(_FIXED.get(api, {}))
    return dict(maker(about))


def _partition(**fields: Any) -> list[dict[str, Any]]:
    return [fields]


def _produce(about: Surroundings) -> dict[str, Any]:
    data = records.record_set(["a"], about.version, about.now_ms)
    return {
        "acks": -1,
        "timeoutMs": 1000,
        "topicData": [{"name": TOPIC, "partitionData": _partition(index=0, records=data)}],
    }


def _fetch(about: Surroundings) -> dict[str, Any]:
    partition = _partition(partition=1, fetchOffset=0, partitionMaxBytes=1000)
    return {
        "replicaId": -1,
        "maxWaitMs": 1,
        "minBytes": 0,
        "maxBytes": 10_000,
        "topics": [{"topic": TOPIC, "topicId": about.topic_id, "partitions": partition}],
    }


_DATA: dict[str, Maker] = {
    "Produce": _produce,
    "Fetch": _fetch,
    "ListOffsets": lambda about: {
        "replicaId": -1,
        "isolationLevel": 0,
        "topics": [{"name": TOPIC, "partitions": _partition(partitionIndex=1, timestamp=-1)}],
    },
    "Metadata": lambda about: {
        "topics": [{"name": TOPIC, "topicId": NO_ID}],
        "allowAutoTopicCreation": False,
    },
    "DeleteRecords": lambda about: {
        "topics": [{"name": TOPIC, "partitions": _partition(partitionIndex=1, offset=0)}],
        "timeoutMs": 1000,
    },
    "OffsetForLeaderEpoch": lambda about: {
        "replicaId": -1,
        "topics": [{"topic": TOPIC, "partitions": _partition(partition=1, leaderEpoch=0)}],
    },
    "DescribeProducers": lambda about: {"topics": [{"name": TOPIC, "partitionIndexes": [1]}]},
}

_GROUPS: dict[str, Maker] = {
    "OffsetCommit": lambda about: {
        "groupId": GROUP,
        "generationIdOrMemberEpoch": -1,
        "memberId": "",
        "retentionTimeMs": -1,
        "topics": [
            {
                "name": TOPIC,
                "partitions": _partition(
                    partitionIndex=1, committedOffset=1, committedMetadata="", commitTimestamp=-1
                ),
            }
        ],
    },
    "OffsetFetch": lambda about: {
        "groupId": GROUP,
        "topics": [{"name": TOPIC, "partitionIndexes": [1]}],
        "groups": [{"groupId": GROUP, "topics": [{"name": TOPIC, "partitionIndexes": [1]}]}],
    },
    "FindCoordinator": lambda about: {"key": GROUP, "keyType": 0, "coordinatorKeys": [GROUP]},
    "JoinGroup": lambda about: {
        "groupId": f"join-{about.number}",
        "sessionTimeoutMs": 10_000,
        "rebalanceTimeoutMs": 10_000,
        "memberId": "",
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": b"m"}],
    },
    "Heartbeat": lambda about: {"groupId": GROUP, "generationId": 1, "memberId": "m"},
    "LeaveGroup": lambda about: {"groupId": GROUP, "memberId": "m", "members": [{"memberId": "m"}]},
    "SyncGroup": lambda about: {
        "groupId": GROUP,
        "generationId": 1,
        "memberId": "m",
        "protocolType": "consumer",
        "protocolName": "range",
        "assignments": [{"memberId": "m", "assignment": b"a"}],
    },
    "DescribeGroups": lambda about: {"groups": [GROUP]},
    "DeleteGroups": lambda about: {"groupsNames": ["nobody"]},
    "OffsetDelete": lambda about: {
        "groupId": GROUP,
        "topics": [{"name": TOPIC, "partitions": _partition(partitionIndex=0)}],
    },
    "ConsumerGroupHeartbeat": lambda about: {
        "groupId": GROUP,
        "memberId": "m",
        "memberEpoch": 0,
        "rebalanceTimeoutMs": 1000,
        "subscribedTopicNames": [TOPIC],
        "topicPartitions": [],
    },
    "ConsumerGroupDescribe": lambda about: {"groupIds": [GROUP]},
}

_TRANSACTIONS: dict[str, Maker] = {
    "InitProducerId": lambda about: {"transactionalId": None, "transactionTimeoutMs": 1000},
    "AddPartitionsToTxn": lambda about: {
        "v3AndBelowTransactionalId": "nobody",
        "v3AndBelowProducerId": 5,
        "v3AndBelowProducerEpoch": 0,
        "v3AndBelowTopics": [{"name": TOPIC, "partitions": [1]}],
        "transactions": [
            {
                "transactionalId": "nobody",
                "producerId": 5,
                "producerEpoch": 0,
                "verifyOnly": False,
                "topics": [{"name": TOPIC, "partitions": [1]}],
            }
        ],
    },
    "AddOffsetsToTxn": lambda about: {
        "transactionalId": "nobody",
        "producerId": 5,
        "producerEpoch": 0,
        "groupId": GROUP,
    },
    "EndTxn": lambda about: {
        "transactionalId": "nobody",
        "producerId": 5,
        "producerEpoch": 0,
        "committed": True,
    },
    "TxnOffsetCommit": lambda about: {
        "transactionalId": "nobody",
        "groupId": "txn-group",
        "producerId": 5,
        "producerEpoch": 0,
        "generationId": -1,
        "topics": [
            {
                "name": TOPIC,
                "partitions": _partition(partitionIndex=1, committedOffset=1, committedMetadata=""),
            }
        ],
    },
    "DescribeTransactions": lambda about: {"transactionalIds": ["nobody"]},
    "ListTransactions": lambda about: {"stateFilters": [], "producerIdFilters": []},
}


def _acl_filter(about: Surroundings) -> dict[str, Any]:
    return {
        "resourceTypeFilter": 2,
        "resourceNameFilter": TOPIC,
        "patternTypeFilter": 3,
        "principalFilter": "User:a",
        "hostFilter": "*",
        "operation": 3,
        "permissionType": 3,
    }


def _configs(value: dict[str, Any]) -> dict[str, Any]:
    configs = [{"name": "retention.ms", **value}]
    resource = {"resourceType": 2, "resourceName": TOPIC, "configs": configs}
    return {"resources": [resource], "validateOnly": True}


_ADMIN: dict[str, Maker] = {
    "CreateTopics": lambda about: {
        "topics": [
            {
                "name": f"new-{about.number}",
                "numPartitions": 1,
                "replicationFactor": 1,
                "assignments": [],
                "configs": [{"name": "retention.ms", "value": "1"}],
            }
        ],
        "timeoutMs": 2000,
        "validateOnly": True,
    },
    "DeleteTopics": lambda about: {
        "topicNames": ["nope"],
        "topics": [{"name": "nope", "topicId": NO_ID}],
        "timeoutMs": 1000,
    },
    "DescribeAcls": _acl_filter,
    "CreateAcls": lambda about: {
        "creations": [
            {
                "resourceType": 2,
                "resourceName": TOPIC,
                "resourcePatternType": 3,
                "principal": "User:a",
                "host": "*",
                "operation": 3,
                "permissionType": 3,
            }
        ]
    },
    "DeleteAcls": lambda about: {"filters": [_acl_filter(about)]},
    "DescribeConfigs": lambda about: {
        "resources": [
            {"resourceType": 2, "resourceName": TOPIC, "configurationKeys": ["retention.ms"]}
        ],
        "includeSynonyms": True,
    },
    "AlterConfigs": lambda about: _configs({"value": "5"}),
    "IncrementalAlterConfigs": lambda about: _configs({"configOperation": 0, "value": "5"}),
    "AlterReplicaLogDirs": lambda about: {
        "dirs": [{"path": "/nowhere", "topics": [{"name": TOPIC, "partitions": [1]}]}]
    },
    "DescribeLogDirs": lambda about: {"topics": [{"topic": TOPIC, "partitions": [1]}]},
    "CreatePartitions": lambda about: {
        "topics": [{"name": TOPIC, "count": 3, "assignments": [{"brokerIds": [1]}]}],
        "timeoutMs": 1000,
        "validateOnly": True,
    },
    "CreateDelegationToken": lambda about: {
        "renewers": [{"principalType": "User", "principalName": "a"}],
        "maxLifetimeMs": 1000,
    },
    "RenewDelegationToken": lambda about: {"hmac": b"h", "renewPeriodMs": 1000},
    "ExpireDelegationToken": lambda about: {"hmac": b"h", "expiryTimePeriodMs": 1000},
    "DescribeDelegationToken": lambda about: {
        "owners": [{"principalType": "User", "principalName": "a"}]
    },
    "ElectLeaders": lambda about: {
        "electionType": 0,
        "topicPartitions": [{"topic": TOPIC, "partitions": [1]}],
        "timeoutMs": 1000,
    },
    "AlterPartitionReassignments": lambda about: {
        "timeoutMs": 1000,
        "topics": [{"name": TOPIC, "partitions": _partition(partitionIndex=1, replicas=[1])}],
    },
    "ListPartitionReassignments": lambda about: {
        "timeoutMs": 1000,
        "topics": [{"name": TOPIC, "partitionIndexes": [1]}],
    },
    "DescribeClientQuotas": lambda about: {
        "components": [{"entityType": "user", "matchType": 0, "match": "a"}],
        "strict": False,
    },
    "AlterClientQuotas": lambda about: {
        "entries": [
            {
                "entity": [{"entityType": "user", "entityName": "a"}],
                "ops": [{"key": "producer_byte_rate", "value": 1000.0, "remove": False}],
            }
        ],
        "validateOnly": True,
    },
    "DescribeUserScramCredentials": lambda about: {"users": [{"name": "a"}]},
    "AlterUserScramCredentials": lambda about: {
        "deletions": [{"name": "a", "mechanism": 1}],
        "upsertions": [],
    },
    "UpdateFeatures": lambda about: {
        "timeoutMs": 1000,
        "featureUpdates": [{"feature": "none", "maxVersionLevel": 1, "upgradeType": 1}],
    },
}

_FIXED: Mapping[str, dict[str, Any]] = {
    "SaslHandshake": {"mechanism": "PLAIN"},
    "SaslAuthenticate": {"authBytes": b"x"},
    "ApiVersions": {"clientSoftwareName": "judge", "clientSoftwareVersion": "1"},
    "DescribeCluster": {"includeClusterAuthorizedOperations": False},
}
