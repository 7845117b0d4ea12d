"""The raw requests that a simulation answers differently from Kafka.

A row covers requests of some APIs that are invalid in the same way, and says what Kafka does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from fakekafka.tests.fidelity.comparison import Difference

_BOTH = ("3.9", "2.8")


class WireRow(NamedTuple):
    """Requests answered differently; ``apis`` and ``requests`` are regular expressions."""

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
        "If a topic is named twice or without partitions, Kafka answers with one entry per entry "
        "of the request; this project answers for each partition, grouped by topic.",
    ),
    WireRow(
        ("3.9",),
        "Fetch",
        "isolationLevel (-1|-2|9)",
        "The error code is equal. FetchResponse.partitionResponse returns an empty array of "
        "aborted transactions, this project null, as 2.8 does.",
    ),
    WireRow(
        ("3.9",),
        "Fetch",
        "topics.partitions.partition (-.|9)|topics.topic .*|topics.topicId another",
        "The error code is equal. FetchResponse.partitionResponse returns an empty array of "
        "aborted transactions, this project null, as for other errors.",
    ),
    WireRow(
        ("3.9",),
        "ListTransactions",
        ".*",
        "TransactionStateManager lists transactions in the order of a hash table, and the "
        "comparison names producer ids in the order of their appearance.",
    ),
    WireRow(
        _BOTH,
        "DescribeConfigs",
        ".*",
        "In version 0, ConfigHelper marks no configuration of a topic as a default; this project "
        "marks those that are not set.",
    ),
    WireRow(
        ("3.9",),
        "DescribeLogDirs",
        ".*",
        "Kafka returns the size of the volume; log directories in memory have none, so the sizes "
        "are -1.",
    ),
    WireRow(
        _BOTH,
        "AlterClientQuotas",
        "entries.entity twice",
        "If an entity type is named twice in an entity, Kafka returns it once, because "
        "AlterClientQuotasRequest keeps the types in a map.",
    ),
)

OLD_ROWS: tuple[WireRow, ...] = (
    WireRow(
        ("0.10",),
        "Fetch",
        "topics.partitions.partition 0|.*[mM]axBytes .",
        "The number of records that fit differs: messages of 0.10 are counted one by one, while "
        "records produced together are here one batch of the later format.",
    ),
    WireRow(
        ("1.1",),
        "Fetch",
        "replicaId .*",
        "KafkaApis returns no last stable offset to a client that sends the id of a replica.",
    ),
    WireRow(
        ("1.1",),
        "CreateTopics",
        "topics.configs.value null",
        "The error code is equal, but Kafka sends no message.",
    ),
    WireRow(
        ("1.1",),
        "CreatePartitions|DescribeLogDirs",
        "topics.name ''|topics null",
        "An empty name fails in ZooKeeper's PathUtils, whose message Kafka passes on. Sizes of "
        "logs differ with the records of internal topics.",
    ),
    WireRow(
        ("0.10",),
        "ApiVersions|SaslHandshake",
        ".*",
        "This project offers the API versions of 0.11, which today's clients need, and does not "
        "list SASL mechanisms that are not configured.",
    ),
)


def unlisted(kafka_version: str, api: str, found: Sequence[Difference]) -> list[Difference]:
    """Return the differences that no row covers."""
    return [
        d for d in found if not any(row.covers(kafka_version, api, d) for row in (*ROWS, *OLD_ROWS))
    ]


def in_codes(found: Sequence[Difference]) -> list[Difference]:
    """Return the differences in an error code, or in whether there is a response."""
    return [d for d in found if not any(_codes(d.key, k) == _codes(d.key, d.here) for k in d.kafka)]


def _codes(key: str, line: str) -> list[str]:
    if key == "is" or key.endswith("rrorCode"):
        return [line]
    return re.findall(r'[eE]rrorCode": *"?([^",}]+)', line)
