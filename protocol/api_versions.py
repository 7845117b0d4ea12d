"""API keys and the version ranges that each emulated release advertises.

``releases/apis.tsv`` has what a broker of each release with ZooKeeper answered to ApiVersions
(docs/kafka/clients.md#versions-of-requests): of each API its versions, after the first release
that had them. What this package offers is the part that has a codec (``wire.kafka.registry``).

Deviations, all for the sake of today's clients:

- ``0.10`` and ``0.10.2`` take the maxima of 0.11 for the APIs that they had. Stored batches have
  format v2, which Produce 3 and Fetch 4 introduced, and Java admin clients need Metadata 4. So
  clients that guess a release from the ranges see 0.11. InitProducerId is in it too: some of those
  clients are idempotent by default then and do not go on without (kafka-python 3, Java since 3.0).

The other releases advertise exactly what their brokers do, once every API has a codec. ``3.9``
advertises groups of the new protocol (68, 69, KIP-848), which its coordinator with ZooKeeper
refuses. Nothing of KRaft or telemetry (71, 72) is offered by any release.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from .releases.release import Release


class VersionRange(NamedTuple):
    """Versions of one API, both ends included; ``minimum <= maximum``."""

    minimum: int
    maximum: int


def _read_table() -> Iterator[tuple[int, str, str]]:
    """Yield key, name and versions of each API."""
    # Through the import system: the package may be in a zip, as on a worker of Spark.
    table = pkgutil.get_data(__package__, "releases/apis.tsv")
    assert table is not None
    for line in table.decode().splitlines()[1:]:
        key, name, steps = line.split("\t")
        yield int(key), name, steps


_TABLE = tuple(_read_table())

API_NAMES: Mapping[int, str] = MappingProxyType({key: name for key, name, _ in _TABLE})

ADVERTISED_ONLY = (4, 5, 6, 7, 58)
"""Keys between brokers that a ZooKeeper-era broker advertises and no client sends.

They tell some clients the release (kafka-python takes LeaderAndIsr 7 for 3.4), so they are listed
without a codec; a client that sends one is disconnected, as Kafka does with Envelope (58).
"""

_OF_TODAY = "0.11.0"
"""The oldest release whose versions clients of today can do with."""
_INIT_PRODUCER_ID = 22


def _told(kafka_version: str) -> dict[int, VersionRange]:
    """Return what brokers of a release told in their ApiVersions answer."""
    release = Release(kafka_version)
    ranges = {}
    for key, _, steps in _TABLE:
        by_release = dict(pair.split(" ") for pair in steps.split(", "))
        if versions := release.steps("", by_release):
            minimum, maximum = versions.split("-")
            ranges[key] = VersionRange(int(minimum), int(maximum))
    return ranges


def release_ranges(kafka_version: str) -> dict[int, VersionRange]:
    """API key -> versions that the emulated release advertises, in key order.

    Raises ``UsageError`` for a version that is not emulated.
    """
    ranges = _told(kafka_version)
    if Release(kafka_version).before(_OF_TODAY):
        later = _told(_OF_TODAY)
        for key, (minimum, _) in ranges.items():
            if key not in ADVERTISED_ONLY:
                ranges[key] = VersionRange(minimum, later[key].maximum)
        ranges[_INIT_PRODUCER_ID] = later[_INIT_PRODUCER_ID]
    return ranges


def offered_ranges(
    kafka_version: str, implemented: Mapping[int, VersionRange]
) -> dict[int, VersionRange]:
    """Return what a broker advertises: the release's ranges cut to what is implemented, in key
    order.

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
