"""The fields of every message of Kafka by ``messages.txt``; this project's codec has no part in it.

A line without a dot begins a message: key, name, request or response, versions, flexible versions
(KIP-482). A line with dots is a field: name, type, versions, and what else there is to say. Its
dots tell how deep it lies; fields below an array ``[]`` or a struct ``{}`` are those of its
elements.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_TABLE = Path(__file__).with_name("messages.txt")
_NO_VERSIONS = (1, 0)
_LAST = 1 << 15

Versions = tuple[int, int]


@dataclass(slots=True)
class Field:
    """One field of a message."""

    name: str
    kind: str
    versions: Versions
    nullable: Versions = _NO_VERSIONS
    tag: int = -1
    tagged: Versions = _NO_VERSIONS
    default_text: str | None = None
    children: list[Field] = field(default_factory=list)

    @property
    def is_array(self) -> bool:
        return self.kind.startswith("[]")

    def default(self) -> Any:
        """Its value where nobody gives one."""
        text = self.default_text
        if self.is_array:
            return None if text == "null" else []
        if self.kind == "{}":
            return None if text == "null" else {}
        if text == "null":
            return None
        if self.kind == "string":
            return text or ""
        if self.kind == "bool":
            return text == "true"
        if self.kind == "float64":
            return float(text or 0)
        if self.kind in ("bytes", "records"):
            return b""
        if self.kind == "uuid":
            return "0" * 32
        return int(text or "0", 0)


@dataclass(slots=True)
class Message:
    """A request or a response of an API."""

    key: int
    api: str
    kind: str
    versions: Versions
    flexible: Versions
    fields: list[Field] = field(default_factory=list)


def includes(versions: Versions, version: int) -> bool:
    return versions[0] <= version <= versions[1]


def _versions(text: str) -> Versions:
    if text == "none":
        return _NO_VERSIONS
    if text.endswith("+"):
        return int(text[:-1]), _LAST
    low, _, high = text.partition("-")
    return int(low), int(high or low)


def _field(words: list[str]) -> Field:
    name, kind, versions, *others = words
    found = Field(name, kind, _versions(versions))
    for other in others:
        what, _, value = other.partition("=")
        if what == "null":
            found.nullable = _versions(value)
        elif what == "tag":
            number, _, tagged = value.partition(":")
            found.tag, found.tagged = int(number), _versions(tagged)
        else:
            found.default_text = value
    return found


def _read(text: str) -> Iterator[Message]:
    message: Message | None = None
    levels: list[list[Field]] = []
    for line in text.splitlines():
        words = line.split(" ")
        depth = len(words[0]) - len(words[0].lstrip("."))
        if not depth:
            if message is not None:
                yield message
            key, api, kind, versions, flexible = words
            message = Message(int(key), api, kind, _versions(versions), _versions(flexible))
            levels = [message.fields]
            continue
        words[0] = words[0].lstrip(".")
        found = _field(words)
        del levels[depth:]
        levels[depth - 1].append(found)
        levels.append(found.children)
    assert message is not None
    yield message


@functools.cache
def messages() -> dict[tuple[int, str], Message]:
    """All of them by key and by ``request`` or ``response``."""
    return {(m.key, m.kind): m for m in _read(_TABLE.read_text(encoding="utf-8"))}


@functools.cache
def api_keys() -> dict[str, int]:
    """Keys by the names of APIs."""
    return {message.api: message.key for message in messages().values()}
