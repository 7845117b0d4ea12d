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
        ("3.9",),
        "OffsetCommit",
        ".* twice",
        "Version 0 answers a partition that is named twice as often as it is named "
        "(GroupCoordinatorAdapter); here once, as in every other version.",
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
        "topicData.partitionData.records .*",
        "Null records: KafkaApis.handleProduceRequest ends in a NullPointerException. 3.9 does not "
        "answer, since ProduceRequest.getErrorResponse fails too. 2.8 closes the connection after "
        "or instead of an answer, which the request after it finds closed. Here they are refused.",
    ),
    WireRow(
        ("3.9",),
        "Fetch",
        "isolationLevel (-1|-2|9)",
        "The same error; FetchResponse.partitionResponse has an empty list of aborted "
        "transactions there, here it is null, as in 2.8.",
    ),
    WireRow(
        ("3.9",),
        "Fetch",
        "topics.partitions.partition (-.|9)|topics.topic .*|topics.topicId another",
        "The same error; FetchResponse.partitionResponse has an empty list of aborted "
        "transactions there, here it is null, as it is with other errors.",
    ),
    WireRow(
        ("3.9",),
        "OffsetFetch|AddPartitionsToTxn",
        "groups empty|transactions empty",
        "KafkaApis never answers a request for no group or no transaction; here it is answered.",
    ),
    WireRow(
        _BOTH,
        "JoinGroup",
        "protocols twice|groupId 'nope'",
        "GroupMetadata counts votes of a protocol that is named twice, finds none and does not "
        "answer, so the group of that name has a member less.",
    ),
    WireRow(
        _BOTH,
        "ListGroups",
        ".*",
        "Which members' sessions have expired meanwhile: the recording waited where Kafka gave "
        "no answer.",
    ),
    WireRow(
        ("3.9",),
        "ListTransactions",
        ".*",
        "TransactionStateManager lists transactions in the order of a hash table; producer ids "
        "are named by their order.",
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
        "AlterConfigs",
        "resources twice",
        "Kafka never answers: AlterConfigsResponse.errors, which RequestChannel.sendResponse calls "
        "for its metrics, throws for a resource that comes twice, be it refused or not. Here the "
        "refusal arrives.",
    ),
    WireRow(
        _BOTH,
        "DescribeLogDirs",
        ".*",
        "Sizes differ by what is written to internal topics meanwhile; log directories in memory "
        "have no volume, which is told with -1.",
    ),
    WireRow(
        ("3.9",),
        "OffsetDelete",
        "groupId .*",
        "Group names of earlier requests whose members have left meanwhile: the recording waited "
        "where Kafka gave no answer.",
    ),
    WireRow(
        _BOTH,
        "AlterClientQuotas",
        "entries.entity twice",
        "An entity whose type is named twice is written once: AlterClientQuotasRequest keeps its "
        "types in a map.",
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
