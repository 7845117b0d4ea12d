"""The releases of Kafka that can be emulated, and the question whether one has a change yet."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TypeVar

from ..errors import UsageError

T = TypeVar("T")

_EXACTLY: Mapping[str, str] = {
    "0.10": "0.10.1.1",
    "1.1": "1.1.1",
    "2.8": "2.8.2",
    "3.9": "3.9.1",
}
"""The name of a release to the release itself: the last one with bug fixes."""

KAFKA_VERSIONS = tuple(_EXACTLY)
DEFAULT_KAFKA_VERSION = "3.9"


class Release:
    """One release. It is asked for each change that Kafka made: does it have that one yet?

    Releases are given as in ``"2.4"`` or, where a bug fix brought the change, ``"2.0.1"``. What
    follows them is where the change comes from: a KIP, an issue (``KAFKA-6082``) or a pull request
    (``PR 10550``) of Kafka. It is for readers and for the documents.
    """

    __slots__ = ("_number", "exactly", "name")

    def __init__(self, kafka_version: str) -> None:
        """Raises ``UsageError`` for a version that is not emulated."""
        exactly = _EXACTLY.get(kafka_version)
        if exactly is None:
            raise UsageError(
                f"kafka_version {kafka_version!r} is not emulated; use one of "
                + ", ".join(map(repr, KAFKA_VERSIONS))
            )
        self.name = kafka_version
        self.exactly = exactly
        self._number = _number(exactly)

    def since(self, first: str, *_sources: str) -> bool:
        """Return True for the first release with a change and for all later ones."""
        return self._number >= _number(first)

    def before(self, first: str, *_sources: str) -> bool:
        """Return True for releases older than the first one with a change."""
        return self._number < _number(first)

    def steps(self, at_first: T, later: Mapping[str, T], *_sources: str) -> T:
        """Return a value that changed in some releases; ``later`` has them, oldest first."""
        value = at_first
        for first, changed in later.items():
            if self._number >= _number(first):
                value = changed
        return value


@cache
def _number(release: str) -> tuple[int, ...]:
    return tuple([int(part) for part in release.split(".")])
