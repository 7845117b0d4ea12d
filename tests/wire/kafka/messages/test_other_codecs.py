"""Two independent codecs, kio and kafka-python, agree with the table in every version they know.

Random trees are drawn from the table, written, read and written again by the other codec, and read
back. kafka-python judges the versions that Kafka 4 has dropped (KIP-896), and kio with it.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import importlib
import io
import pkgutil
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import pytest
from fakekafka.tests.support.examples import examples
from fakekafka.tests.support.random_trees import RandomTrees
from fakekafka.tests.support.wire_trees import read, written
from fakekafka.wire.kafka.messages.table import Direction, Field, includes, message
from fakekafka.wire.kafka.registry import CODEC_RANGES
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer

DIRECTIONS: tuple[Direction, ...] = ("request", "response")
Fields = Sequence[Field]


def spoken_by_kio(key: int) -> list[int]:
    low, high = CODEC_RANGES[key]
    return [v for v in range(low, high + 1) if v in schema_name_map[api_key_map[key]]]


def assert_same(entity: Any, tree: Any, fields: Fields, version: int) -> None:
    """Assert that kio's entity has the tree's values in the order of the table."""
    present = [field for field in fields if includes(field.versions, version)]
    for field, other in zip(present, dataclasses.fields(entity), strict=True):
        found, expected = getattr(entity, other.name), tree.get(field.name)
        if field.name not in tree:
            assert includes(field.tagged, version)
        elif not field.children or found is None:
            assert plain(found, other) == expected, field.name
        elif field.is_array:
            for one, inner in zip(found, expected, strict=True):
                assert_same(one, inner, field.children, version)
        else:
            assert_same(found, expected, field.children, version)


def plain(value: Any, field: Any) -> Any:
    """Return a value of kio as numbers, strings and bytes."""
    kind = field.metadata.get("kafka_type")
    if isinstance(value, tuple):
        return [plain(one, field) for one in value]
    if value is None:
        return {"uuid": bytes(16), "datetime_i64": -1}.get(kind)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.datetime):
        return round(value.timestamp() * 1000)
    return value.bytes if isinstance(value, uuid.UUID) else value


@pytest.mark.hypothesis
@pytest.mark.parametrize("key", CODEC_RANGES)
def test_kio_reads_and_writes_the_same(key: int) -> None:
    """Requests and responses agree in all versions that kio knows."""

    @settings(max_examples=examples(2), database=None, deadline=None)
    @given(st.integers(0, 2**32))
    def compare(seed: int) -> None:
        random = Random(seed)
        for version in spoken_by_kio(key):
            assert_kio_agrees(random, load_request_schema(key, version), "request", version)
            assert_kio_agrees(random, load_response_schema(key, version), "response", version)

    compare()


def assert_kio_agrees(random: Random, schema: Any, direction: Direction, version: int) -> None:
    found = message(schema.__api_key__, direction)
    tree = RandomTrees(random).tree(found.fields, version)
    raw = written(found, version, tree)
    entity, size = entity_reader(schema)(raw, 0)
    assert size == len(raw)
    assert_same(entity, tree, found.fields, version)
    buffer = io.BytesIO()
    entity_writer(schema)(buffer, entity)
    assert buffer.getvalue() == raw
    assert read(found, version, raw) == (tree, len(raw))


@functools.cache
def kafka_python_classes() -> dict[tuple[int, str], Any]:
    """Return kafka-python's classes of messages, which come from Kafka's definitions."""
    import kafka.protocol
    from kafka.protocol.api_message import ApiMessage

    for module in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
        if ".old" not in module.name and "generate" not in module.name:
            importlib.import_module(module.name)
    return {(c.json["apiKey"], c.json["type"]): c for c in _subclasses(ApiMessage) if c.json}


def _subclasses(cls: Any) -> Iterator[Any]:
    for one in cls.__subclasses__():
        if one.__module__.startswith("kafka.protocol.") and one._class_version is None:
            yield one
        yield from _subclasses(one)


def built(cls: Any, tree: Mapping[str, Any], fields: Fields, version: int) -> Any:
    """Return an object of kafka-python with its inner structures."""
    values: dict[str, Any] = {}
    for field in fields:
        if field.name not in tree:
            continue
        name, value = re.sub(r"(?=[A-Z])", "_", field.name).lower(), tree[field.name]
        if field.children and value is not None:
            inner = cls._struct.fields[name].data_class
            values[name] = (
                [built(inner, one, field.children, version) for one in value]
                if field.is_array
                else built(inner, value, field.children, version)
            )
        else:
            values[name] = uuid.UUID(bytes=value) if field.kind == "uuid" else value
    return cls(version=version, **values)


DROPPED = [
    (key, version)
    for key, (low, high) in CODEC_RANGES.items()
    for version in range(low, high + 1)
    if version not in spoken_by_kio(key)
]
UNKNOWN_TO_BOTH = (38, 39, 40, 41, 56)
"""Keys of delegation tokens and AlterPartition, which kafka-python does not have."""


@pytest.mark.hypothesis
@pytest.mark.parametrize(
    ("key", "version"), [one for one in DROPPED if one[0] not in UNKNOWN_TO_BOTH]
)
def test_kafka_python_writes_the_same_bytes_for_dropped_versions(
    kafka_python: Any, key: int, version: int
) -> None:
    """kafka-python and the table write requests and responses equally, byte for byte."""

    @settings(max_examples=examples(4), database=None, deadline=None)
    @given(st.integers(0, 2**32))
    def compare(seed: int) -> None:
        for direction in DIRECTIONS:
            found = message(key, direction)
            tree = RandomTrees(Random(seed)).tree(found.fields, version)
            raw = written(found, version, tree)
            cls = kafka_python_classes()[key, direction]
            assert bytes(built(cls, tree, found.fields, version).encode()) == raw
            assert read(found, version, raw) == (tree, len(raw))

    compare()


def test_all_but_a_few_old_versions_are_judged() -> None:
    """Version 0 of the delegation tokens' APIs has the layout of version 1, which kio knows."""
    assert [one for one in DROPPED if one[0] in UNKNOWN_TO_BOTH] == [
        (38, 0), (39, 0), (40, 0), (41, 0), (56, 0), (56, 1),
    ]  # fmt: skip
