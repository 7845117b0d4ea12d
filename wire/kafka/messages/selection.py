"""Selections: the fields that an API takes of a message, and its names for them.

A selection is a text of words, one for each field by Kafka's name::

    errorCode=error members(memberId groupInstanceId=instance_id) topics[name errorCode]

What stands in parentheses is selected from the objects of an array or a structure, or from one.
``field=attribute`` tells the attribute, which may be one of another (``topic_partition.topic``).
Without it the attribute is called as the field, in snake case.

What stands in brackets are the parts of a tuple, in this order. ``field=attribute`` tells an
attribute of the part.

Where messages are read a selection has no attributes, and structures become tuples.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_WORD = re.compile(r"(\w+)(?:=([\w.]+))?([(\[]?)|[)\]]")
_CAPITAL = re.compile(r"(?=[A-Z])")


class Selected(NamedTuple):
    """A field that is taken."""

    field: str
    attribute: str
    """Empty where none is told."""
    is_tuple: bool
    """Whether it holds tuples, or else objects."""
    inner: list[Selected]
    """What is taken of what it holds."""


def selection(text: str) -> list[Selected]:
    """The fields that a text selects."""
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
    """``groupId`` is ``group_id``."""
    return _CAPITAL.sub("_", name).lower()
