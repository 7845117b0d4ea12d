"""API keys and the version ranges that each emulated release advertises.

The ranges are those of the release's own ApiVersions answer in ZooKeeper mode
(docs/kafka/clients.md#versions-of-requests, docs/kafka/clients.md). What this package offers is the
part of them that has a codec (``wire.kafka.registry``).

Deviations, all for the sake of today's clients:

- ``0.10`` takes the maxima of 0.11 for the APIs that 0.10.1 had. Stored batches have format v2,
  which Produce 3 and Fetch 4 introduced, and Java admin clients need Metadata 4. So clients that
  guess a release from the ranges see 0.11. InitProducerId is in it too: some of those clients are
  idempotent by default then and do not go on without (kafka-python 3, Java since 3.0).

The other releases advertise exactly what their brokers do, once every API has a codec. ``3.9``
advertises groups of the new protocol (68, 69, KIP-848), which its coordinator with ZooKeeper
refuses. Nothing of KRaft or telemetry (71, 72) is offered by any release.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from .errors import UsageError
from .versions import KAFKA_VERSIONS


class VersionRange(NamedTuple):
    """Versions of one API, both ends included; ``minimum <= maximum``."""

    minimum: int
    maximum: int


API_NAMES: Mapping[int, str] = MappingProxyType(
    {
        0: "Produce",
        1: "Fetch",
        2: "ListOffsets",
        3: "Metadata",
        4: "LeaderAndIsr",
        5: "StopReplica",
        6: "UpdateMetadata",
        7: "ControlledShutdown",
        8: "OffsetCommit",
        9: "OffsetFetch",
        10: "FindCoordinator",
        11: "JoinGroup",
        12: "Heartbeat",
        13: "LeaveGroup",
        14: "SyncGroup",
        15: "DescribeGroups",
        16: "ListGroups",
        17: "SaslHandshake",
        18: "ApiVersions",
        19: "CreateTopics",
        20: "DeleteTopics",
        21: "DeleteRecords",
        22: "InitProducerId",
        23: "OffsetForLeaderEpoch",
        24: "AddPartitionsToTxn",
        25: "AddOffsetsToTxn",
        26: "EndTxn",
        27: "WriteTxnMarkers",
        28: "TxnOffsetCommit",
        29: "DescribeAcls",
        30: "CreateAcls",
        31: "DeleteAcls",
        32: "DescribeConfigs",
        33: "AlterConfigs",
        34: "AlterReplicaLogDirs",
        35: "DescribeLogDirs",
        36: "SaslAuthenticate",
        37: "CreatePartitions",
        38: "CreateDelegationToken",
        39: "RenewDelegationToken",
        40: "ExpireDelegationToken",
        41: "DescribeDelegationToken",
        42: "DeleteGroups",
        43: "ElectLeaders",
        44: "IncrementalAlterConfigs",
        45: "AlterPartitionReassignments",
        46: "ListPartitionReassignments",
        47: "OffsetDelete",
        48: "DescribeClientQuotas",
        49: "AlterClientQuotas",
        50: "DescribeUserScramCredentials",
        51: "AlterUserScramCredentials",
        56: "AlterPartition",
        57: "UpdateFeatures",
        58: "Envelope",
        60: "DescribeCluster",
        61: "DescribeProducers",
        65: "DescribeTransactions",
        66: "ListTransactions",
        67: "AllocateProducerIds",
        68: "ConsumerGroupHeartbeat",
        69: "ConsumerGroupDescribe",
    }
)

ADVERTISED_ONLY = (4, 5, 6, 7, 58)
"""Keys between brokers that a ZooKeeper-era broker advertises and no client sends.

They tell some clients the release (kafka-python takes LeaderAndIsr 7 for 3.4), so they are listed
without a codec; a client that sends one is disconnected, as Kafka does with Envelope (58).
"""

# fmt: off
_MAXIMA: dict[str, dict[int, int]] = {
    "0.10": {
        0: 3, 1: 5, 2: 2, 3: 4, 4: 0, 5: 0, 6: 2, 7: 1, 8: 3, 9: 3, 10: 1, 11: 2, 12: 1, 13: 1,
        14: 1, 15: 1, 16: 1, 17: 0, 18: 1, 19: 2, 20: 1, 22: 0,
    },
    "1.1": {
        0: 5, 1: 7, 2: 2, 3: 5, 4: 1, 5: 0, 6: 4, 7: 1, 8: 3, 9: 3, 10: 1, 11: 2, 12: 1, 13: 1,
        14: 1, 15: 1, 16: 1, 17: 1, 18: 1, 19: 2, 20: 1, 21: 0, 22: 0, 23: 0, 24: 0, 25: 0, 26: 0,
        27: 0, 28: 0, 29: 0, 30: 0, 31: 0, 32: 1, 33: 0, 34: 0, 35: 0, 36: 0, 37: 0, 38: 0, 39: 0,
        40: 0, 41: 0, 42: 0,
    },
    "2.8": {
        0: 9, 1: 12, 2: 6, 3: 11, 4: 5, 5: 3, 6: 7, 7: 3, 8: 8, 9: 7, 10: 3, 11: 7, 12: 4, 13: 4,
        14: 5, 15: 5, 16: 4, 17: 1, 18: 3, 19: 7, 20: 6, 21: 2, 22: 4, 23: 4, 24: 3, 25: 3, 26: 3,
        27: 1, 28: 3, 29: 2, 30: 2, 31: 2, 32: 4, 33: 2, 34: 2, 35: 2, 36: 2, 37: 3, 38: 2, 39: 2,
        40: 2, 41: 2, 42: 2, 43: 2, 44: 1, 45: 0, 46: 0, 47: 0, 48: 1, 49: 1, 50: 0, 51: 0, 56: 0,
        57: 0, 60: 0, 61: 0,
    },
    "3.9": {
        0: 11, 1: 17, 2: 9, 3: 12, 4: 7, 5: 4, 6: 8, 7: 3, 8: 9, 9: 9, 10: 6, 11: 9, 12: 4, 13: 5,
        14: 5, 15: 5, 16: 5, 17: 1, 18: 4, 19: 7, 20: 6, 21: 2, 22: 5, 23: 4, 24: 5, 25: 4, 26: 4,
        27: 1, 28: 4, 29: 3, 30: 3, 31: 3, 32: 4, 33: 2, 34: 2, 35: 4, 36: 2, 37: 3, 38: 3, 39: 2,
        40: 2, 41: 3, 42: 2, 43: 2, 44: 1, 45: 0, 46: 0, 47: 0, 48: 1, 49: 1, 50: 0, 51: 0, 56: 3,
        57: 1, 58: 0, 60: 1, 61: 0, 65: 0, 66: 1, 67: 0, 68: 0, 69: 0,
    },
}
# fmt: on
_MINIMA: dict[str, dict[int, int]] = {"0.10": {7: 1}}
"""Where the first version is gone."""


def release_ranges(kafka_version: str) -> dict[int, VersionRange]:
    """API key -> versions that the emulated release advertises, in key order.

    Raises ``UsageError`` for a version that is not emulated.
    """
    maxima = _MAXIMA.get(kafka_version)
    if maxima is None:
        raise UsageError(
            f"kafka_version {kafka_version!r} is not emulated; use one of "
            + ", ".join(repr(version) for version in KAFKA_VERSIONS)
        )
    minima = _MINIMA.get(kafka_version, {})
    return {key: VersionRange(minima.get(key, 0), maximum) for key, maximum in maxima.items()}


def offered_ranges(
    kafka_version: str, implemented: Mapping[int, VersionRange]
) -> dict[int, VersionRange]:
    """What a broker advertises: the release's ranges cut to what is implemented, in key order.

    An API none of whose versions is left is not offered, so no range is ever empty.
    Raises ``UsageError`` for a version that is not emulated.
    """
    offered: dict[int, VersionRange] = {}
    for key, (minimum, maximum) in release_ranges(kafka_version).items():
        if key in ADVERTISED_ONLY:
            offered[key] = VersionRange(minimum, maximum)
        elif key in implemented:
            low = max(minimum, implemented[key].minimum)
            high = min(maximum, implemented[key].maximum)
            if low <= high:
                offered[key] = VersionRange(low, high)
    return offered
