"""Kafka's fields and the attributes they become, found by altering each field in turn.

``names_of_fields.txt`` has a line for each message. A pair ``topics.name=topic`` says that the
field becomes the attribute, or is made of it; ``-`` stands for nothing. A pair is left out where
the attribute has the field's name in snake case.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from fakekafka.protocol.api_versions import API_NAMES
from fakekafka.protocol.groups import OffsetFetchRequest
from fakekafka.tests.support.drawn_messages import RESPONSES, alterations, distinct
from fakekafka.tests.support.wire_trees import decoded_request, decoded_response
from fakekafka.wire.kafka.api import SplitRequest
from fakekafka.wire.kafka.messages.table import Field, includes, message
from fakekafka.wire.kafka.registry import CODEC_RANGES

API_VERSIONS = 18
OFFSET_FETCH = 9
NAMES: dict[str, str] = dict(
    line.split(": ", 1)
    for line in Path(__file__)
    .with_name("names_of_fields.txt")
    .read_text(encoding="utf-8")
    .splitlines()
)
Pair = tuple[str, str]


def versions(key: int) -> range:
    low, high = CODEC_RANGES[key]
    return range(low, high + 1)


def snake_case(name: str) -> str:
    return re.sub(r"(?=[A-Z])", "_", name).lower()


def differing_names(pairs: Iterator[Pair]) -> str:
    """Return the pairs whose names differ as text; a field that is sometimes used is not unused."""
    found = dict.fromkeys(pairs)
    seen = [{pair[side] for pair in found if "-" not in pair} for side in (0, 1)]
    return " ".join(
        f"{field}={attribute}"
        for field, attribute in found
        if snake_case(field.rpartition(".")[2]) != attribute
        and not (attribute == "-" and field in seen[0])
        and not (field == "-" and attribute in seen[1])
    )


# -- requests ------------------------------------------------------------------------------------


def sample(fields: Sequence[Field], version: int, numbers: Iterator[int]) -> dict[str, Any]:
    """Return a tree with all fields of the version, in which all texts differ."""
    return {
        field.name: _sample(field, field.kind, version, numbers)
        for field in fields
        if includes(field.versions, version)
    }


def _sample(field: Field, kind: str, version: int, numbers: Iterator[int]) -> Any:
    if kind.startswith("[]"):
        return [_sample(field, kind[2:] or "{}", version, numbers)]
    if kind == "{}":
        return sample(field.children, version, numbers)
    number = next(numbers)
    if kind == "string":
        return f"text{number}"
    if kind == "uuid":
        return number.to_bytes(16, "big")
    if kind in ("bytes", "records"):
        return number.to_bytes(2, "big")
    if kind == "bool":
        return False
    return 3 if field.name.startswith(_ENUMERATED) else 1


_ENUMERATED = ("resourceType", "patternType", "resourcePatternType", "operation", "permission")
"""Prefixes of fields with numbers of ACLs, whose smallest numbers are refused."""


def altered_trees(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield the tree with one leaf altered, for each leaf."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for step, value in items:
        if isinstance(value, dict | list):
            for name, altered in altered_trees(value, (*path, step)):
                yield name, _with(tree, step, altered)
        else:
            name = ".".join(part for part in (*path, step) if isinstance(part, str))
            yield name, _with(tree, step, _altered(value))


def _with(tree: Any, step: Any, value: Any) -> Any:
    changed = copy.copy(tree)
    changed[step] = value
    return changed


def _altered(value: Any) -> Any:
    """Return another value; numbers become smaller, since small ones are valid everywhere."""
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:]
    return not value if isinstance(value, bool) else value - 1


def differing_attributes(one: Any, other: Any, name: str = "") -> Iterator[str]:
    """Yield the innermost attributes, or positions in tuples, in which two messages differ."""
    if type(one) is not type(other):
        yield name or "another message"
    elif dataclasses.is_dataclass(one) or hasattr(one, "_fields"):
        parts = getattr(one, "_fields", None) or [f.name for f in dataclasses.fields(one)]
        for part in parts:
            yield from differing_attributes(getattr(one, part), getattr(other, part), part)
    elif isinstance(one, tuple) and len(one) == len(other):
        for at, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from differing_attributes(left, right, f"{name}.{at}")
    elif one != other:
        yield name


@pytest.mark.parametrize("key", CODEC_RANGES)
def test_a_field_of_a_request_becomes_the_attribute_of_its_name(key: int) -> None:
    """A field maps to its attribute in every version; brokers with ZooKeeper ignore the others."""

    def pairs() -> Iterator[Pair]:
        for version in versions(key):
            tree = sample(message(key, "request").fields, version, itertools.count(1))
            whole = decoded_request(key, version, **tree)
            for field, altered in altered_trees(tree):
                found = list(differing_attributes(whole, decoded_request(key, version, **altered)))
                yield from ((field, attribute) for attribute in found or "-")

    assert differing_names(pairs()) == NAMES.get(message(key, "request").name, "")


# -- responses -----------------------------------------------------------------------------------


def differing_fields(one: Any, other: Any, name: str = "") -> Iterator[str]:
    """Yield the fields in which two trees differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for part in one.keys() | other.keys():
            path = f"{name}.{part}".removeprefix(".")
            yield from differing_fields(one.get(part), other.get(part), path)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for left, right in zip(one, other, strict=True):
            yield from differing_fields(left, right, name)
    elif one != other:
        yield name


@pytest.mark.parametrize("key", [key for key in CODEC_RANGES if key != API_VERSIONS])
def test_an_attribute_of_a_response_becomes_the_field_of_its_name(key: int) -> None:
    """An attribute maps to its field in every version that has it; others are never sent."""
    api = API_NAMES[key]
    response = distinct(RESPONSES[api])

    def tree(altered: Any, version: int) -> Any:
        if key == OFFSET_FETCH and version >= 8:
            asked_for_one = SplitRequest((OffsetFetchRequest("g", None),))
            return decoded_response(key, version, (altered,), asked_for_one)
        return decoded_response(key, version, altered)

    def pairs() -> Iterator[Pair]:
        for version in versions(key):
            whole = tree(response, version)
            for attribute, altered in alterations(response):
                found = sorted(differing_fields(whole, tree(altered, version)))
                yield from ((field, attribute) for field in found or "-")

    assert differing_names(pairs()) == NAMES.get(f"{api}Response", "")
