"""Where a simulation answers a raw request otherwise than Kafka, with Kafka's class.

A row is for the requests of some APIs that are wrong in one way. It says what Kafka does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from fakekafka.tests.fidelity.comparison import Difference

_BOTH = ("3.9", "2.8")


class WireRow(NamedTuple):
    """Requests that are answered otherwise; ``apis`` and ``requests`` are regular expressions."""

    versions: Sequence[str]
    apis: str
    requests: str
    why: str

    def covers(self, kafka_version: str, api: str, difference: Difference) -> bool:
        name = difference.step.rpartition(" v")[0]
        return (
            kafka_version in self.versions
            and re.fullmatch(self.apis, api) is not None
            and re.fullmatch(self.requests, name) is not None
        )


ROWS: tuple[WireRow, ...] = (
    WireRow(
        _BOTH,
        "Produce|Fetch|OffsetCommit|OffsetFetch|DeleteRecords|AddPartitionsToTxn",
        ".* twice",
        "A partition that is named twice: KafkaApis collects the partitions in a map, so the last "
        "one counts and is answered once. Here each is carried out.",
    ),
    WireRow(
        _BOTH,
        "ListOffsets|OffsetForLeaderEpoch|AddPartitionsToTxn|DescribeProducers|IncrementalAlter.*",
        ".* (twice|empty)",
        "A topic that is named twice or without partitions: Kafka answers topic by topic as it "
        "was asked, here the partitions are answered, grouped by topics.",
    ),
    WireRow(
        _BOTH,
        "Produce",
        "good|too long|timeoutMs .*|transactionalId .*",
        "Only base offsets differ, as each partition named twice in an earlier request was "
        "written twice here and once by Kafka (KafkaApis.handleProduceRequest).",
    ),
    WireRow(
        _BOTH,
        "Fetch|ListOffsets|OffsetForLeaderEpoch",
        "topics.partitions.(partition|partitionIndex) 0",
        "Only offsets differ, for the reason of the row above.",
    ),
    WireRow(
        _BOTH,
        "Produce",
        "topicData.partitionData.records .*",
        "ProduceRequest.validateRecords names the API version in its message; null records make "
        "the request handler fail without an answer.",
    ),
    WireRow(
        _BOTH,
        "Fetch",
        "replicaId (0|9)",
        "Partition.fetchRecords refuses a fetch of a broker that is no replica; here only brokers "
        "send such fetches, and a client that says it is one is taken for a consumer.",
    ),
    WireRow(
        _BOTH,
        "Fetch",
        "(maxBytes|topics.partitions.partitionMaxBytes) -.",
        "LogSegment.read throws IllegalArgumentException for sizes below 0.",
    ),
    WireRow(
        _BOTH,
        "Fetch|ListOffsets",
        "isolationLevel (-1|-2|9)",
        "IsolationLevel.forId throws IllegalArgumentException for what is no isolation level, "
        "which is answered with UNKNOWN_SERVER_ERROR.",
    ),
    WireRow(
        _BOTH,
        "Fetch",
        "topics.partitions.partition (-.|9)|topics.topic .*|topics.topicId another",
        "The same error; FetchResponse.partitionResponse has an empty list of aborted "
        "transactions there, here it is null, as it is with other errors.",
    ),
    WireRow(
        _BOTH,
        "Fetch",
        "sessionEpoch -2",
        "FetchManager.newContext takes an epoch below -1 for one of a session; here it is none.",
    ),
    WireRow(
        _BOTH,
        "Fetch",
        "topics.partitions.currentLeaderEpoch -2",
        "RequestUtils.getLeaderEpoch takes every negative epoch for none.",
    ),
    WireRow(
        _BOTH,
        "ListOffsets",
        "topics.partitions.maxNumOffsets -.",
        "Log.legacyFetchOffsetsBefore throws NegativeArraySizeException.",
    ),
    WireRow(
        _BOTH,
        "Metadata",
        "topics.*",
        "MetadataRequest: version 0 cannot say null, a null name is malformed, and topic ids "
        "before version 12 end in an error with nothing but the topic; here such requests are "
        "answered for all topics, or closed.",
    ),
    WireRow(
        _BOTH,
        "OffsetCommit|OffsetFetch",
        "groupId ''",
        "Version 0 keeps offsets in ZooKeeper, whose PathUtils refuses the path of an empty name: "
        "UNKNOWN_SERVER_ERROR. Here the connection is closed.",
    ),
    WireRow(
        _BOTH,
        "OffsetFetch|AddPartitionsToTxn",
        "groups empty|topics null|transactions empty",
        "KafkaApis never answers a request for no group or no transaction, and closes the "
        "connection where null cannot be said; here they are answered.",
    ),
    WireRow(
        _BOTH,
        "JoinGroup|SyncGroup",
        "protocols twice|.* null|groupId 'nope'",
        "GroupMetadata counts votes of a protocol that is named twice and finds none; null bytes "
        "are malformed for the generated JoinGroupRequestData and SyncGroupRequestData. Here both "
        "are read.",
    ),
    WireRow(
        _BOTH,
        "ListGroups",
        ".*",
        "Which members' sessions have expired meanwhile: the recording waited where Kafka gave "
        "no answer.",
    ),
    WireRow(
        _BOTH,
        "ListTransactions",
        ".*",
        "TransactionStateManager lists transactions in the order of a hash table; producer ids "
        "are named by their order.",
    ),
    WireRow(
        _BOTH,
        "CreateTopics",
        "topics.configs.value null",
        "ZkAdminManager.populateIds refuses null values with INVALID_CONFIG since 3.4.",
    ),
    WireRow(
        _BOTH,
        "DeleteTopics",
        "topics.*",
        "KafkaApis.handleDeleteTopicsRequest refuses a name together with an id, and topics that "
        "have neither; here they are looked up one by one.",
    ),
    WireRow(
        _BOTH,
        "TxnOffsetCommit",
        "groupId ''|producerEpoch -1",
        "GroupCoordinator.validateGroupStatus looks at the group before the producer.",
    ),
    WireRow(
        _BOTH,
        "(Describe|Create|Delete)Acls",
        ".*",
        "Without an authorizer: the same error SECURITY_DISABLED, in 2.8 with another message. "
        "AclBinding and AclBindingFilter throw for an operation, permission or type 0, which "
        "closes the connection.",
    ),
    WireRow(
        _BOTH,
        "DescribeConfigs",
        ".*",
        "Version 0: ConfigHelper calls no configuration of a topic a default; here those that "
        "are not set are defaults.",
    ),
    WireRow(
        _BOTH,
        "AlterConfigs|IncrementalAlterConfigs",
        "resources .*|resources.configs.value null|resources.resourceName ''",
        "Kafka never answers AlterConfigs for a resource that is named twice (KafkaApis); 2.8 "
        "fails with NullPointerException for a null value, and with an error of ZooKeeper's "
        "PathUtils for an empty name.",
    ),
    WireRow(
        _BOTH,
        "DescribeLogDirs",
        ".*",
        "Sizes differ by what is written to internal topics meanwhile; log directories in memory "
        "have no volume, which is told with -1.",
    ),
    WireRow(
        _BOTH,
        "CreatePartitions",
        "topics twice|topics.assignments empty|topics.name ''",
        "Duplicates are answered once (KafkaApis.handleCreatePartitionsRequest); an empty list "
        "of assignments is one of wrong length; an empty name fails in ZooKeeper's PathUtils.",
    ),
    WireRow(
        _BOTH,
        "ElectLeaders",
        "electionType .*",
        "ElectionType.valueOf throws for what is no type: UNKNOWN_SERVER_ERROR. Here it is taken "
        "for the preferred one.",
    ),
    WireRow(
        _BOTH,
        "AlterPartitionReassignments",
        "timeoutMs .*",
        "KafkaController heeds no timeout of this request; here it ends the wait for the "
        "controller's answer.",
    ),
    WireRow(
        _BOTH,
        "OffsetDelete",
        "groupId .*",
        "Group names of earlier requests whose members have left meanwhile: the recording waited "
        "where Kafka gave no answer.",
    ),
    WireRow(
        _BOTH,
        "(Describe|Alter)ClientQuotas|DescribeUserScramCredentials",
        ".*",
        "Messages are empty where they are null here, and entries null where they are empty: "
        "defaults of the generated response data.",
    ),
    WireRow(
        ("3.9",),
        "DescribeCluster",
        "endpointType .*",
        "AuthHelper.computeDescribeClusterResponse tells unknown endpoint types from those that "
        "do not fit.",
    ),
    WireRow(
        ("2.8",),
        "DescribeProducers",
        "topics.name .*",
        "KafkaApis of 2.8 looks for the topic before it looks at its name.",
    ),
)

_OLD = ("1.1", "0.10")
OLD_ROWS: tuple[WireRow, ...] = (
    WireRow(
        _OLD,
        ".*",
        ".* twice",
        "What is named twice: KafkaApis collects it in a map or set, so the last one counts and is "
        "answered once. Here each is carried out.",
    ),
    WireRow(
        _OLD,
        "Produce",
        "good|too long|timeoutMs .*|transactionalId .*|acks 9|acks -2",
        "Only base offsets differ, for the reason of the row above.",
    ),
    WireRow(
        _OLD,
        "Fetch|ListOffsets|OffsetForLeaderEpoch",
        "topics.partitions.(partition|partitionIndex) 0",
        "Only offsets differ, for the same reason.",
    ),
    WireRow(
        _OLD,
        "Produce",
        "topicData.partitionData.records .*",
        "Null records of 0.10 end in an error of the request handler, which closes the connection.",
    ),
    WireRow(
        _OLD,
        "Fetch|ListOffsets",
        "replicaId .*|.*[mM]axBytes -?.|topics.partitions.maxNumOffsets -.|sessionEpoch -2",
        "Sizes below 0 throw in LogSegment.read and Log.fetchOffsetsByTimestamp; who says that it "
        "is a broker gets no stable offset; 0.10 returns one message where one must fit.",
    ),
    WireRow(
        ("0.10",),
        "Fetch",
        "cut off|nothing|topics.*null",
        "FetchRequest of 0.10 is parsed by the request handler, which takes null for empty and "
        "does not answer what it cannot parse. Here the connection is closed.",
    ),
    WireRow(
        _OLD,
        "Metadata|OffsetFetch|JoinGroup|SyncGroup",
        "topics( null|.name null)|protocols.* null|assignments.* null",
        "Null where no null can be: Struct refuses it, which closes the connection; here "
        "it is read as what later versions mean by it.",
    ),
    WireRow(
        _OLD,
        "OffsetCommit|OffsetFetch",
        "groupId ''",
        "Version 0: ZooKeeper's PathUtils refuses the path of an empty name. Here the connection "
        "is closed.",
    ),
    WireRow(
        _OLD,
        "ListGroups|JoinGroup",
        "good|too long|groupId '.*'|protocolType ''|protocols empty",
        "Which members' sessions have expired meanwhile. GroupCoordinator of 0.10 takes a member "
        "without protocols; since 0.11 it is refused.",
    ),
    WireRow(
        ("1.1",),
        "TxnOffsetCommit",
        ".*",
        "Coordinators write offsets of a transaction with isFromClient = false, so that "
        "ProducerAppendInfo checks no epoch before 2.0. Here it is checked.",
    ),
    WireRow(
        _OLD,
        "CreateTopics",
        "topics.configs.value null",
        "The same error without a message; 0.10 closes the connection.",
    ),
    WireRow(
        ("1.1",),
        "CreatePartitions|DescribeLogDirs",
        "topics.assignments empty|topics.name ''|topics null",
        "An empty list of assignments is one of wrong length; an empty name fails in ZooKeeper's "
        "PathUtils; sizes of logs differ by what was written.",
    ),
    WireRow(
        ("0.10",),
        "ApiVersions|SaslHandshake",
        ".*",
        "A cluster here offers the versions of 0.11, which clients of today ask for; mechanisms "
        "that are not configured are not told.",
    ),
)


def unlisted(kafka_version: str, api: str, found: Sequence[Difference]) -> list[Difference]:
    """Those that no row covers."""
    return [
        d for d in found if not any(row.covers(kafka_version, api, d) for row in (*ROWS, *OLD_ROWS))
    ]
