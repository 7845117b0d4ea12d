"""The version of each API that a scenario speaks with a release."""

from __future__ import annotations

from fakekafka.protocol.api_versions import VersionRange, release_ranges
from fakekafka.tests.fidelity.protocol.encoding import KEYS

_MOST: dict[str, int] = {
    "Fetch": 12,  # later ones know topics by ids, which are drawn at random
    "DeleteTopics": 5,  # likewise
    "FindCoordinator": 3,  # later ones ask for many at once
    "OffsetFetch": 7,  # likewise
    "AddPartitionsToTxn": 3,  # later ones are for brokers
    "CreateTopics": 4,  # later ones describe each topic, which makes long recordings
    "ApiVersions": 3,
}
_OF_0_10: dict[str, int] = {
    "Produce": 2,
    "Fetch": 3,
    "ListOffsets": 1,
    "Metadata": 2,
    "OffsetCommit": 2,
    "OffsetFetch": 1,
    "FindCoordinator": 0,
    "JoinGroup": 1,
    "Heartbeat": 0,
    "LeaveGroup": 0,
    "SyncGroup": 0,
    "DescribeGroups": 0,
    "ListGroups": 0,
    "SaslHandshake": 0,
    "ApiVersions": 0,
    "CreateTopics": 0,
    "DeleteTopics": 0,
}
"""What a broker of 0.10.1 offers, where a cluster here offers more to today's clients."""


def broker_ranges(kafka_version: str) -> dict[int, VersionRange]:
    """The versions of each API that a broker of the release offers, by key."""
    offered = release_ranges(kafka_version)
    if kafka_version != "0.10":
        return offered
    most = {KEYS[api]: newest for api, newest in _OF_0_10.items()}
    return {key: VersionRange(low, most[key]) for key, (low, _) in offered.items() if key in most}


class NotOffered(Exception):
    """The release has no such API."""


def version_of(kafka_version: str, api: str) -> int:
    """The newest version that release and scenarios speak."""
    if kafka_version == "0.10":
        if api not in _OF_0_10:
            raise NotOffered(f"{api} in {kafka_version}")
        return _OF_0_10[api]
    key = KEYS[api]
    offered = release_ranges(kafka_version)
    if key not in offered:
        raise NotOffered(f"{api} in {kafka_version}")
    return min(offered[key][1], _MOST.get(api, 1 << 15))
