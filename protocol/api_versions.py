"""API keys and the version ranges that each emulated release advertises.

``releases/apis.tsv`` records the ApiVersions responses of a ZooKeeper-based broker of each release
(docs/kafka/clients.md#versions-of-requests): for each API, the first release with each version
range. This package offers the subset that has a codec (``wire.kafka.registry``).

There is one deviation, for the sake of today's clients: ``0.10`` and ``0.10.2`` advertise the
maximum versions of 0.11 for the APIs that they had, because stored batches have format v2, which
Produce 3 and Fetch 4 introduced, and Java admin clients need Metadata 4. Clients that guess the
release from the ranges therefore see 0.11. InitProducerId is advertised too, as some of these
clients are then idempotent by default and fail without it (kafka-python 3, Java since 3.0).

The other releases advertise exactly what their brokers do, once every API has a codec. ``3.9``
advertises the APIs of the new group protocol (68, 69, KIP-848), whose requests a coordinator with
ZooKeeper refuses. No release offers the APIs of KRaft or telemetry (71, 72).
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from .declaring.native import checks_arguments
from .releases.release import Release


class VersionRange(NamedTuple):
    """Versions of one API, both ends included; ``minimum <= maximum``."""

    minimum: int
    maximum: int


def _read_table() -> Iterator[tuple[int, str, str]]:
    """Yield the key, the name and the version ranges of each API."""
    # Read through the import system, as the package may be in a zip file, as on a Spark worker.
    table = pkgutil.get_data(__package__, "releases/apis.tsv")
    assert table is not None
    for line in table.decode().splitlines()[1:]:
        key, name, steps = line.split("\t")
        yield int(key), name, steps


_TABLE = tuple(_read_table())

API_NAMES: Mapping[int, str] = MappingProxyType({key: name for key, name, _ in _TABLE})

ADVERTISED_ONLY = (4, 5, 6, 7, 58)
"""Keys of inter-broker APIs that a ZooKeeper-era broker advertises, but that clients do not send.

They are listed without a codec because some clients infer the release from them (kafka-python takes
LeaderAndIsr 7 for 3.4). A client that sends such a request is disconnected, as Kafka does for
Envelope (58).
"""

_OLDEST_FOR_CURRENT_CLIENTS = "0.11.0"
"""Oldest release whose API versions suffice for today's clients."""
_INIT_PRODUCER_ID = 22


def _advertised_by_kafka(kafka_version: str) -> dict[int, VersionRange]:
    """Return the version ranges in the ApiVersions response of a release's brokers, by API key."""
    release = Release(kafka_version)
    ranges = {}
    for key, _, steps in _TABLE:
        by_release = dict(pair.split(" ") for pair in steps.split(", "))
        if versions := release.steps("", by_release):
            minimum, maximum = versions.split("-")
            ranges[key] = VersionRange(int(minimum), int(maximum))
    return ranges


@checks_arguments
def release_ranges(kafka_version: str) -> dict[int, VersionRange]:
    """Return the versions that the emulated release advertises, by API key in ascending order.

    Raises ``UsageError`` for a version that is not emulated.
    """
    ranges = _advertised_by_kafka(kafka_version)
    if Release(kafka_version).before(_OLDEST_FOR_CURRENT_CLIENTS):
        later = _advertised_by_kafka(_OLDEST_FOR_CURRENT_CLIENTS)
        for key, (minimum, _) in ranges.items():
            if key not in ADVERTISED_ONLY:
                ranges[key] = VersionRange(minimum, later[key].maximum)
        ranges[_INIT_PRODUCER_ID] = later[_INIT_PRODUCER_ID]
    return ranges


@checks_arguments
def offered_ranges(
    kafka_version: str, implemented: Mapping[int, VersionRange]
) -> dict[int, VersionRange]:
    """Return the version ranges that a broker advertises, by API key in ascending order.

    They are the release's ranges, limited to the implemented versions. An API with no version left
    is not offered.
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
