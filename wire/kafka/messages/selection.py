"""Selections: the fields that an API uses of a message, and its names for them.

A selection is a text with a word for each field, by Kafka's name::

    errorCode=error members(memberId groupInstanceId=instance_id) topics[name errorCode]

Parentheses enclose the fields of the objects in an array, or of the object of a structure.
``field=attribute`` names the attribute of the object, which may be nested
(``topic_partition.topic``). Otherwise the attribute has the field's name in snake case.

Brackets enclose the parts of a tuple, in order. There, ``field=attribute`` names an attribute of
the part.

A selection for a reader has no attributes, and all structures become tuples.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_WORD = re.compile(r"(\w+)(?:=([\w.]+))?([(\[]?)|[)\]]")
_CAPITAL = re.compile(r"(?=[A-Z])")


class Selected(NamedTuple):
    """A selected field."""

    field: str
    attribute: str
    """Attribute given for the field; empty if none is."""
    is_tuple: bool
    """True if the field holds tuples, False if it holds objects or no structure."""
    inner: list[Selected]
    """Fields selected from the structures in this field."""


def selection(text: str) -> list[Selected]:
    """Parse a selection."""
    levels: list[list[Selected]] = [[]]
    for field, attribute, opening in _WORD.findall(text):
        if not field:
            levels.pop()
            continue
        found = Selected(field, attribute, opening == "[", [])
        levels[-1].append(found)
        if opening:
            levels.append(found.inner)
    return levels[0]


def snake_case(name: str) -> str:
    """Return a name in snake case: ``group_id`` for ``groupId``."""
    return _CAPITAL.sub("_", name).lower()
