"""The version of each API that scenarios use with a release."""

from __future__ import annotations

from fakekafka.protocol.api_versions import VersionRange, release_ranges
from fakekafka.tests.fidelity.protocol.encoding import KEYS

_MOST: dict[str, int] = {
    "Fetch": 12,  # later versions name topics by random ids
    "DeleteTopics": 5,  # likewise
    "FindCoordinator": 3,  # later versions name many keys
    "OffsetFetch": 7,  # likewise
    "AddPartitionsToTxn": 3,  # later versions are for brokers
    "CreateTopics": 4,  # later versions describe each topic, which makes recordings long
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
"""Highest versions of a broker of 0.10.1, where this project offers more to today's clients."""


def broker_ranges(kafka_version: str) -> dict[int, VersionRange]:
    """Return the versions of each API that a broker of the release offers, by key."""
    offered = release_ranges(kafka_version)
    if kafka_version != "0.10":
        return offered
    most = {KEYS[api]: newest for api, newest in _OF_0_10.items()}
    return {key: VersionRange(low, most[key]) for key, (low, _) in offered.items() if key in most}


class NotOffered(Exception):
    """The release does not have the API."""


def version_of(kafka_version: str, api: str) -> int:
    """Return the newest version of an API that both release and scenarios support."""
    if kafka_version == "0.10":
        if api not in _OF_0_10:
            raise NotOffered(f"{api} in {kafka_version}")
        return _OF_0_10[api]
    key = KEYS[api]
    offered = release_ranges(kafka_version)
    if key not in offered:
        raise NotOffered(f"{api} in {kafka_version}")
    return min(offered[key][1], _MOST.get(api, 1 << 15))
