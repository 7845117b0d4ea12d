"""The raw requests that a simulation answers otherwise than Kafka, with Kafka's class.

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
        "ListOffsets|OffsetForLeaderEpoch|AddPartitionsToTxn|DescribeProducers",
        ".* (twice|empty)",
        "A topic that is named twice or without partitions: Kafka answers topic by topic as it "
        "was asked, here the partitions are answered, grouped by topics.",
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
        ("3.9",),
        "DescribeLogDirs",
        ".*",
        "Log directories in memory have no volume, which is told with -1.",
    ),
    WireRow(
        _BOTH,
        "AlterClientQuotas",
        "entries.entity twice",
        "An entity whose type is named twice is written once: AlterClientQuotasRequest keeps its "
        "types in a map.",
    ),
)

OLD_ROWS: tuple[WireRow, ...] = (
    WireRow(
        ("0.10",),
        "Fetch",
        "topics.partitions.partition 0|.*[mM]axBytes .",
        "How many records fit: messages of 0.10 stand alone and are counted one by one, here what "
        "was produced together is one batch of the later format.",
    ),
    WireRow(
        ("1.1",),
        "Fetch",
        "replicaId .*",
        "KafkaApis tells who says that it is a broker no stable offset.",
    ),
    WireRow(
        ("1.1",), "CreateTopics", "topics.configs.value null", "The same error without a message."
    ),
    WireRow(
        ("1.1",),
        "CreatePartitions|DescribeLogDirs",
        "topics.name ''|topics null",
        "An empty name fails in ZooKeeper's PathUtils, whose message Kafka tells; sizes of logs "
        "differ by what was written to internal topics.",
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
    """The differences that no row covers."""
    return [
        d for d in found if not any(row.covers(kafka_version, api, d) for row in (*ROWS, *OLD_ROWS))
    ]


def in_codes(found: Sequence[Difference]) -> list[Difference]:
    """The differences in an error code, or in whether there is an answer."""
    return [d for d in found if not any(_codes(d.key, k) == _codes(d.key, d.here) for k in d.kafka)]


def _codes(key: str, line: str) -> list[str]:
    if key == "is" or key.endswith("rrorCode"):
        return [line]
    return re.findall(r'[eE]rrorCode": *"?([^",}]+)', line)
