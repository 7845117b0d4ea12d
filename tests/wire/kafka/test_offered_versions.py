"""The answer to ApiVersions, per emulated release (docs/kafka/clients.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakekafka.protocol.api_versions import (
    ADVERTISED_ONLY,
    API_NAMES,
    VersionRange,
    offered_ranges,
    release_ranges,
)
from fakekafka.protocol.errors import UsageError
from fakekafka.protocol.versions import KAFKA_VERSIONS
from fakekafka.tests.support.kafka_listener import Wire, parse_response
from fakekafka.wire.kafka.codec import Codec
from fakekafka.wire.kafka.registry import CODEC_RANGES

KAFKAJS_MINIMUMS_MAX = {0: 7, 1: 11, 3: 6, 10: 2, 8: 5, 9: 4, 19: 3, 20: 1, 32: 2, 33: 1}


@pytest.mark.parametrize("kafka_version", KAFKA_VERSIONS)
def test_every_range_offered_is_sane_and_has_a_codec(kafka_version: str) -> None:
    """Each range has min <= max, as aiokafka asserts, and the codec has each offered version."""
    ranges = Codec(kafka_version).ranges
    for key, (minimum, maximum) in ranges.items():
        assert 0 <= minimum <= maximum
        if key not in ADVERTISED_ONLY:
            spoken = CODEC_RANGES[key]
            assert spoken.minimum <= minimum <= maximum <= spoken.maximum
    assert list(ranges) == sorted(ranges)


@pytest.mark.parametrize("kafka_version", KAFKA_VERSIONS)
def test_minimums_stay_low_for_clients_that_do_not_check_them(kafka_version: str) -> None:
    """kafkajs never looks at the broker's minimum (docs/kafka/clients.md#what-they-rely-on)."""
    ranges = Codec(kafka_version).ranges
    for key, minimum in KAFKAJS_MINIMUMS_MAX.items():
        assert key not in ranges or ranges[key].minimum <= minimum


@pytest.mark.parametrize("kafka_version", KAFKA_VERSIONS)
def test_every_release_takes_batches_of_format_v2_and_older_formats(kafka_version: str) -> None:
    """Produce 3 and Fetch 4 are offered even where the release was older, and so are the versions
    of clients before 0.11 (docs/kafka/log.md#batches).
    """
    ranges = Codec(kafka_version).ranges
    assert ranges[0].minimum == ranges[1].minimum == 0
    assert ranges[0].maximum >= 3
    assert ranges[1].maximum >= 4
    assert ranges[3].maximum >= 4
    assert ranges[18].minimum == 0


def test_3_9_offers_the_versions_of_a_zookeeper_broker_of_that_release() -> None:
    """Fetch 17, LeaderAndIsr 7, DescribeCluster 1 and the new group protocol are advertised; the
    latter is refused.
    """
    ranges = Codec("3.9").ranges
    expected = {0: 11, 1: 17, 2: 9, 3: 12, 4: 7, 18: 4, 60: 1}
    assert {key: ranges[key].maximum for key in expected} == expected
    assert {68, 69} <= set(ranges)
    assert not {71, 72} & set(ranges)


def test_2_8_offers_the_maxima_of_the_reference() -> None:
    """DP 16.3: DescribeCluster is offered in its first version (KIP-700)."""
    ranges = Codec("2.8").ranges
    expected = {
        0: 9,
        1: 12,
        2: 6,
        3: 11,
        8: 8,
        9: 7,
        10: 3,
        18: 3,
        19: 7,
        20: 6,
        22: 4,
        43: 2,
        60: 0,
    }
    assert {key: ranges[key].maximum for key in expected} == expected


@pytest.mark.parametrize(
    ("kafka_version", "inferred"),
    [
        ("0.10", (0, 11)),
        ("0.10.2", (0, 11)),
        ("0.11.0", (0, 11)),
        ("1.0", (1, 0)),
        ("1.1", (1, 1)),
        ("2.0", (2, 0)),
        ("2.8", (2, 8)),
        ("3.9", (3, 9)),
    ],
)
def test_kafka_python_infers_the_release_from_the_ranges(
    kafka_python: Any, kafka_version: str, inferred: tuple[int, ...]
) -> None:
    """Wire 3: the client looks for the highest key and version that it knows."""
    infer = kafka_python.protocol.broker_version_data.infer_broker_version_from_api_versions
    assert infer(Codec(kafka_version).ranges) == inferred


def test_an_api_of_which_no_version_is_left_is_not_offered() -> None:
    """An API without a common version is not offered, as a range is never empty."""
    implemented = {0: VersionRange(12, 13), 1: VersionRange(4, 17)}
    assert 0 not in offered_ranges("3.9", implemented)
    assert offered_ranges("3.9", implemented)[1] == (4, 17)


@pytest.mark.parametrize("kafka_version", KAFKA_VERSIONS)
def test_every_offered_api_existed_in_the_release(kafka_version: str) -> None:
    """The release had every offered API, and each API of the release has a name."""
    release = release_ranges(kafka_version)
    assert set(Codec(kafka_version).ranges) <= set(release) <= set(API_NAMES)


def test_an_unknown_release_is_refused_with_the_ones_there_are() -> None:
    """The error lists the emulated releases, or names the right one."""
    with pytest.raises(UsageError, match=r"'2\.9' is not emulated; use one of '0\.10', '0\.10\.2'"):
        Codec("2.9")
    with pytest.raises(UsageError, match=r"use '2\.4', which stands for 2\.4\.1"):
        Codec("2.4.0")


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
async def test_api_versions_is_answered_with_header_v0_at_any_version(
    wire: Wire, version: int
) -> None:
    """KIP-511: the response header never has tagged fields, and the table is the codec's."""
    client = await wire.connect()
    fields = {"client_software_name": "raw", "client_software_version": "1.0"}
    client.request(18, version, 3, **(fields if version >= 3 else {}))
    correlation_id, response = await client.response(18, version)
    assert (correlation_id, response.error_code.value) == (3, 0)
    table = {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}
    assert table == wire.service.codec.ranges
    assert wire.backend.requests == []


@pytest.mark.parametrize("version", [5, 9, 32767, -1])
async def test_an_unknown_api_versions_version_is_answered_in_the_v0_layout(
    wire: Wire, version: int
) -> None:
    """KIP-511: the answer is error 35 with ApiVersions' own range; the connection stays usable."""
    import struct

    client = await wire.connect()
    body = struct.pack(">hhih", 18, version, 8, 3) + b"new\0\x05abcd"
    client.send(struct.pack(">i", len(body)) + body)
    correlation_id, response = parse_response(18, 0, await client.frame())
    assert (correlation_id, response.error_code.value) == (8, 35)
    (row,) = response.api_keys
    assert (row.api_key, row.min_version, row.max_version) == (18, 0, 4)
    client.request(18, 0, 9)
    correlation_id, response = await client.response(18, 0)
    assert (correlation_id, response.error_code.value) == (9, 0)


@pytest.mark.parametrize("name", ["", "-x", "a b", "x-"])
async def test_a_bad_software_name_is_an_invalid_request(wire: Wire, name: str) -> None:
    """DP 16.3: v3 with invalid characters gives INVALID_REQUEST (42) and no table."""
    client = await wire.connect()
    client.request(18, 3, 1, client_software_name=name, client_software_version="1")
    _, response = await client.response(18, 3)
    assert (response.error_code.value, response.api_keys) == (42, ())


RECORDED = json.loads(
    Path(__file__).with_name("recorded_api_versions.json").read_text(encoding="utf-8")
)
"""Answers to ApiVersions of brokers of 1.1.1, 2.8.2 and 3.9.1 with ZooKeeper, as hex by release and
version of the request. 0.10 differs on purpose.
"""


@pytest.mark.parametrize(
    ("kafka_version", "version"),
    [(release, int(version)) for release in RECORDED for version in RECORDED[release]],
)
def test_api_versions_answers_byte_by_byte_as_the_real_broker(
    kafka_version: str, version: int
) -> None:
    """Versions that are not offered, and the epoch of finalized features, are equal, too."""
    codec = Codec(kafka_version)
    codec.ranges = release_ranges(kafka_version)
    request = codec.decode(18, version, memoryview(b"\x02a\x02b\0" if version >= 3 else b""))
    answer = b"".join(codec.encode(18, version, request.response))
    assert answer.hex() == RECORDED[kafka_version][str(version)]


@pytest.mark.parametrize("kafka_version", RECORDED)
def test_every_api_of_the_release_is_offered(kafka_version: str) -> None:
    """The codec offers exactly the APIs that a real broker advertises."""
    still_open = {38, 39, 40, 41, 48, 49}
    ranges = release_ranges(kafka_version)
    offered = Codec(kafka_version).ranges
    assert {key: offered[key] for key in offered if key not in still_open} == {
        key: ranges[key] for key in ranges if key not in still_open
    }
