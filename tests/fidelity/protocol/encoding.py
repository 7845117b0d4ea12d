"""Encodes trees of values and decodes them, by the table of Kafka's messages.

The brokers of this project use the same table: its content is Kafka's own, and the codecs compiled
from it are tested against kio and kafka-python. The fidelity tests check the brokers' behaviour.

A tree is a dict of fields by Kafka's names; uuids are hexadecimal digits. Fields that a request
leaves out have their defaults; a response must be read to its last byte.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fakekafka.protocol.api_versions import API_NAMES
from fakekafka.protocol.errors import ClientError
from fakekafka.tests.support.wire_trees import read, written
from fakekafka.wire.kafka.messages.table import Field, includes, message, with_nulls
from fakekafka.wire.kafka.messages.varints import tagged_fields

KEYS: Mapping[str, int] = {name: key for key, name in API_NAMES.items()}
"""API keys by name."""
_API_VERSIONS = 18


class Malformed(ValueError):
    """The bytes are not a valid response."""


def encode(key: int, version: int, tree: Mapping[str, Any]) -> bytes:
    """Return the encoded body of a request."""
    found = message(key, "request")
    return written(found, version, _with_uuids(found.fields, tree, bytes.fromhex))


def decode(key: int, version: int, data: bytes) -> dict[str, Any]:
    """Return the tree of a response, given without its size and correlation id."""
    found = with_nulls(message(key, "response"))
    at = 0
    try:
        if includes(found.flexible, version) and key != _API_VERSIONS:
            tags, at = tagged_fields(data, 0)
            if tags:
                raise Malformed("tagged fields in the header")
        tree, size = read(found, version, data[at:])
    except (ClientError, struct.error) as error:
        raise Malformed(str(error)) from None
    if size != len(data) - at:
        raise Malformed(f"{len(data) - at - size} bytes are left over")
    return _with_uuids(found.fields, tree, bytes.hex)


def _with_uuids(
    fields: Sequence[Field], tree: Mapping[str, Any], convert: Callable[[Any], Any]
) -> dict[str, Any]:
    changed = dict(tree)
    for field in fields:
        value = tree.get(field.name)
        if value is None:
            continue
        if field.children:
            changed[field.name] = (
                [_with_uuids(field.children, one, convert) for one in value]
                if field.is_array
                else _with_uuids(field.children, value, convert)
            )
        elif field.kind == "uuid":
            changed[field.name] = convert(value)
    return changed
