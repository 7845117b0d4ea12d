"""Requests that grow with a number: trees in which arrays have as many elements as wanted."""

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
"""Where it stands, the number of the element is put."""


class Many(NamedTuple):
    """An array of elements of which each has a number: in texts as ``{i}`` or, as a name,
    ``{name}``."""

    element: Any
    odd: Any = None
    """What elements with odd numbers are, if they are another."""
    most: int = 1_000_000


def text(letter: str) -> Callable[[int], str]:
    """A text of the size, or as long as texts may be."""
    return lambda size: letter * min(size, 30_000)


def grown(tree: Any, size: int, name: Callable[[int], str] = str, index: int = 0) -> Any:
    """The tree with so many elements in its arrays; functions are called with the size."""
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
    """A request that grows."""

    title: str
    key: int
    version: int
    tree: Any
    kind: str = ""
    """One of ``PARTITION_KINDS`` or ``NAMES``."""
    has_tags: bool = False
    """Whether it grows by tagged fields, which nobody knows."""

    @property
    def name(self) -> str:
        return f"{self.title}: {self.kind}" if self.kind else self.title

    def fields(self, size: int) -> Any:
        """The tree of the request."""
        return grown(self.tree, size, NAMES.get(self.kind, str))

    def frame(self, size: int) -> bytes:
        """The whole request, with size and header."""
        tags = size if self.has_tags else 0
        return frame(self.key, self.version, self.fields(size), unknown_tags=tags)


def partitions(
    kind: str, entry: Any = INDEX, *, name: str = "name", array: str = "partitions"
) -> Any:
    """Topics with partitions, which Kafka calls by various names."""
    first = grown(entry, 0)
    if kind in ("topics", "same topic"):
        return Many({name: "t_{i}" if kind == "topics" else "x", array: [first]})
    return [{name: "x", array: Many(entry if kind == "partitions" else first)}]
