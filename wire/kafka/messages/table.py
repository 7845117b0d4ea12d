"""The fields of Kafka's messages, as ``messages.tsv`` lists them for every API and version.

The table is derived from Kafka's own message definitions. Each message is a block of lines, with an
empty line between blocks. The first line has key, name, request or response, versions, and flexible
versions (KIP-482). Each other line is a field: name, type, versions, and optional ``null=``,
``tag=`` and ``default=``. The number of dots is the depth of the field: fields below an array
``[]`` or a structure ``{}`` belong to its elements.
"""

from __future__ import annotations

import functools
import os
from copy import copy
from typing import Any, Literal

from ....protocol.api_versions import VersionRange

Direction = Literal["request", "response"]
Versions = tuple[int, int]
NO_VERSIONS: Versions = (1, 0)
_NEWEST = 1 << 15


class Field:
    """A field of a message."""

    def __init__(self, name: str, kind: str, versions: Versions) -> None:
        self.name: str = name
        self.kind: str = kind
        """Kafka's name of the type, after ``[]`` for an array; ``{}`` for a structure, and ``[]``
        alone for an array of structures."""
        self.versions: Versions = versions
        self.nullable: Versions = NO_VERSIONS
        self.tag: int = -1
        self.tagged: Versions = NO_VERSIONS
        """Versions in which the field is tagged (KIP-482)."""
        self.default_text: str | None = None
        self.children: list[Field] = []

    @property
    def is_array(self) -> bool:
        return self.kind.startswith("[]")

    @property
    def has_records(self) -> bool:
        return self.kind == "records" or any(field.has_records for field in self.children)

    @property
    def default(self) -> Any:
        """Value of the field if none is given."""
        text, kind = self.default_text, self.kind
        if text == "null":
            return None
        if self.is_array:
            return ()
        if kind == "{}":
            return {}
        if kind == "string":
            return text or ""
        if kind == "bool":
            return text == "true"
        if kind == "float64":
            return float(text or 0)
        if kind in ("bytes", "records"):
            return b""
        if kind == "uuid":
            return bytes(16)
        return int(text or "0", 0)


class Message:
    """The request or the response of an API."""

    __slots__ = ("fields", "flexible", "name", "versions")

    def __init__(self, name: str, versions: Versions, flexible: Versions) -> None:
        self.name: str = name
        """Name such as ``FetchRequest``."""
        self.versions: Versions = versions
        self.flexible: Versions = flexible
        self.fields: list[Field] = []

    @property
    def has_records(self) -> bool:
        return any(field.has_records for field in self.fields)


def includes(versions: Versions, version: int) -> bool:
    return versions[0] <= version <= versions[1]


@functools.cache
def with_nulls(found: Message) -> Message:
    """Return a message in which every field may be null that is not a structure, as lax programs
    read it."""
    changed = Message(found.name, found.versions, found.flexible)
    changed.fields = [_with_nulls(field) for field in found.fields]
    return changed


def _with_nulls(field: Field) -> Field:
    changed = copy(field)
    if field.kind != "{}":
        changed.nullable = field.versions
    changed.children = [_with_nulls(child) for child in field.children]
    return changed


@functools.cache
def message(key: int, direction: Direction) -> Message:
    """Return the message of an API with its fields; raise ``KeyError`` if Kafka has none."""
    section = _sections()[key, direction]
    lines = section.splitlines()
    _, api, _, versions, flexible = lines[0].split("\t")
    found = Message(api + direction.title(), _versions(versions), _versions(flexible))
    levels = [found.fields]
    for line in lines[1:]:
        words = line.split("\t")
        name = words[0].lstrip(".")
        depth = len(words[0]) - len(name)
        field = _field(name, words)
        del levels[depth:]
        levels[depth - 1].append(field)
        levels.append(field.children)
    return found


def version_range(key: int) -> VersionRange:
    """Return the versions of an API in the table."""
    head = _sections()[key, "request"].split("\n", 1)[0]
    return VersionRange(*_versions(head.split("\t")[3]))


@functools.cache
def _sections() -> dict[tuple[int, str], str]:
    """Return the lines of each message by key and direction; most are never parsed."""
    loader: Any = __spec__.loader
    text: str = loader.get_data(os.path.join(os.path.dirname(__file__), "messages.tsv")).decode()
    found: dict[tuple[int, str], str] = {}
    for section in text.split("\n\n"):
        key, _, direction, _ = section.split("\t", 3)
        found[int(key), direction] = section
    return found


def _versions(text: str) -> Versions:
    if text == "none":
        return NO_VERSIONS
    if text.endswith("+"):
        return int(text[:-1]), _NEWEST
    low, _, high = text.partition("-")
    return int(low), int(high or low)


def _field(name: str, words: list[str]) -> Field:
    found = Field(name, words[1], _versions(words[2]))
    for other in words[3:]:
        what, _, value = other.partition("=")
        if what == "null":
            found.nullable = _versions(value)
        elif what == "tag":
            number, _, tagged = value.partition(":")
            found.tag, found.tagged = int(number), _versions(tagged)
        else:
            found.default_text = value
    return found
