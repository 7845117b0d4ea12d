"""The releases of Kafka that can be emulated, and the question whether one has a change yet."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TypeVar

from ..errors import UsageError

T = TypeVar("T")

_EXACTLY: Mapping[str, str] = {
    "0.10": "0.10.1.1",
    "0.10.2": "0.10.2.2",
    "0.11.0": "0.11.0.3",
    "1.0": "1.0.2",
    "1.1": "1.1.1",
    "2.0": "2.0.1",
    "2.1": "2.1.1",
    "2.2": "2.2.2",
    "2.3": "2.3.1",
    "2.4": "2.4.1",
    "2.5": "2.5.1",
    "2.6": "2.6.3",
    "2.7": "2.7.2",
    "2.8": "2.8.2",
    "3.0": "3.0.2",
    "3.1": "3.1.2",
    "3.2": "3.2.3",
    "3.3": "3.3.2",
    "3.4": "3.4.1",
    "3.5": "3.5.2",
    "3.6": "3.6.2",
    "3.7": "3.7.2",
    "3.8": "3.8.1",
    "3.9": "3.9.1",
}
"""The name of a release to the release itself: the last one with bug fixes."""
_OTHER_NAMES: Mapping[str, str] = {"0.10.1": "0.10", "0.11": "0.11.0"}

KAFKA_VERSIONS = tuple(_EXACTLY)
"""All releases that can be emulated, oldest first."""
JUDGED_VERSIONS = ("0.10", "1.1", "2.8", "3.9")
"""Those that are compared with real brokers. What the others do follows from the release of each
flag, and from what their brokers advertise and declare."""
DEFAULT_KAFKA_VERSION = "3.9"


class Release:
    """A release. It is asked for each change that Kafka made: does it have that one yet?

    Releases are given as in ``"2.4"`` or, where a bug fix brought the change, ``"2.0.1"``. What
    follows them is where the change comes from: a KIP, an issue (``KAFKA-6082``) or a pull request
    (``PR 10550``) of Kafka. It is for readers and for the documents.
    """

    __slots__ = ("_number", "exactly", "name")

    def __init__(self, kafka_version: str) -> None:
        """Raises ``UsageError`` for a version that is not emulated."""
        name = _OTHER_NAMES.get(kafka_version, kafka_version)
        exactly = _EXACTLY.get(name)
        if exactly is None:
            raise UsageError(
                f"kafka_version {kafka_version!r} is not emulated; use {_right(kafka_version)}"
            )
        self.name: str = name
        self.exactly: str = exactly
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


def _right(kafka_version: str) -> str:
    """Say what to write instead of a version that is not emulated."""
    for name, exactly in _EXACTLY.items():
        is_of_line = kafka_version.startswith(exactly.rpartition(".")[0] + ".")
        if is_of_line:
            return f"{name!r}, which stands for {exactly}"
    return "one of " + ", ".join(map(repr, KAFKA_VERSIONS))


@cache
def _number(release: str) -> tuple[int, ...]:
    return tuple([int(part) for part in release.split(".")])
