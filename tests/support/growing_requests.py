"""Requests of any size, described by trees whose arrays grow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fakekafka.tests.support.wire_trees import frame

PARTITION_KINDS = ("topics", "partitions", "same partition", "same topic")
NAMES: dict[str, Callable[[int], str]] = {
    "names with dots": lambda index: f"t.{index}",
    "names with underscores": lambda index: f"a_b_{index}",
    "same name": lambda index: "same",
}
INDEX = object()
"""Placeholder for the number of the element."""


class Many(NamedTuple):
    """An array whose elements are numbered: ``{i}`` in a text is the number, ``{name}`` a name."""

    element: Any
    odd: Any = None
    """Element for odd numbers, if different."""
    most: int = 1_000_000


def text(letter: str) -> Callable[[int], str]:
    """Return a function from a size to a text of that size, or of the maximum size of a text."""
    return lambda size: letter * min(size, 30_000)


def grown(tree: Any, size: int, name: Callable[[int], str] = str, index: int = 0) -> Any:
    """Return the tree with ``size`` elements in its arrays; functions are called with the size."""
    if isinstance(tree, Many):
        elements = (tree.element, tree.odd or tree.element)
        count = min(size, tree.most)
        return [grown(elements[at % 2], size, name, at) for at in range(count)]
    if isinstance(tree, dict):
        return {field: grown(value, size, name, index) for field, value in tree.items()}
    if isinstance(tree, list):
        return [grown(value, size, name, index) for value in tree]
    if isinstance(tree, str):
        return tree.format(i=index, name=name(index), size=size) if "{" in tree else tree
    if tree is INDEX:
        return index
    return tree(size) if callable(tree) else tree


class Shape(NamedTuple):
    """A request that grows with a size."""

    title: str
    key: int
    version: int
    tree: Any
    kind: str = ""
    """One of ``PARTITION_KINDS`` or ``NAMES``."""
    has_tags: bool = False
    """True if the request grows by tagged fields that are unknown to brokers."""

    @property
    def name(self) -> str:
        return f"{self.title}: {self.kind}" if self.kind else self.title

    def fields(self, size: int) -> Any:
        """Return the fields of the request for a size."""
        return grown(self.tree, size, NAMES.get(self.kind, str))

    def frame(self, size: int) -> bytes:
        """Return the whole request, with size and header."""
        tags = size if self.has_tags else 0
        return frame(self.key, self.version, self.fields(size), unknown_tags=tags)


def partitions(
    kind: str, entry: Any = INDEX, *, name: str = "name", array: str = "partitions"
) -> Any:
    """Return topics with partitions, under the field names that the request uses."""
    first = grown(entry, 0)
    if kind in ("topics", "same topic"):
        return Many({name: "t_{i}" if kind == "topics" else "x", array: [first]})
    return [{name: "x", array: Many(entry if kind == "partitions" else first)}]
