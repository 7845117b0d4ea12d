"""The releases of Kafka that can be emulated, and whether a release includes a given change."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TypeVar

from ..declaring.native import checks_arguments
from ..errors import UsageError

T = TypeVar("T")

_EXACT_VERSIONS: Mapping[str, str] = {
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
"""Name of a version -> the release that it stands for, the last bug-fix release of its line."""
_ALIASES: Mapping[str, str] = {"0.10.1": "0.10", "0.11": "0.11.0"}

KAFKA_VERSIONS = tuple(_EXACT_VERSIONS)
"""All releases that can be emulated, oldest first."""
JUDGED_VERSIONS = ("0.10", "1.1", "2.8", "3.9")
"""Versions whose behaviour is compared with real brokers. The behaviour of the others is derived
from the release of each flag, and from the APIs and configurations that their brokers report."""
DEFAULT_KAFKA_VERSION = "3.9"


class Release:
    """A release of Kafka, which can tell for each change whether the release includes it.

    The release of a change is given as ``"2.4"`` or, if it is a bug-fix release, as ``"2.0.1"``.
    The arguments after it are the sources of the change: KIPs, issues (``KAFKA-6082``) or pull
    requests (``PR 10550``) of Kafka. Sources are for readers and for the documents only.
    """

    __slots__ = ("_number", "exact_version", "name")

    @checks_arguments
    def __init__(self, kafka_version: str) -> None:
        """Raise ``UsageError`` if the version is not emulated."""
        name = _ALIASES.get(kafka_version, kafka_version)
        exact_version = _EXACT_VERSIONS.get(name)
        if exact_version is None:
            raise UsageError(
                f"kafka_version {kafka_version!r} is not emulated; use {_suggestion(kafka_version)}"
            )
        self.name: str = name
        self.exact_version: str = exact_version
        self._number = _number(exact_version)

    def since(self, first: str, *_sources: str) -> bool:
        """Return True if this release is ``first``, the first release with a change, or later."""
        return self._number >= _number(first)

    def before(self, first: str, *_sources: str) -> bool:
        """Return True if this release is older than ``first``, the first release with a change."""
        return self._number < _number(first)

    def steps(self, initial: T, later: Mapping[str, T], *_sources: str) -> T:
        """Return this release's value of something that changed in several releases.

        ``later`` maps the releases with a change, oldest first, to their values.
        """
        value = initial
        for first, changed in later.items():
            if self._number >= _number(first):
                value = changed
        return value


def _suggestion(kafka_version: str) -> str:
    """Return the part of an error message that names valid versions."""
    for name, exact_version in _EXACT_VERSIONS.items():
        is_same_line = kafka_version.startswith(exact_version.rpartition(".")[0] + ".")
        if is_same_line:
            return f"{name!r}, which stands for {exact_version}"
    return "one of " + ", ".join(map(repr, KAFKA_VERSIONS))


@cache
def _number(release: str) -> tuple[int, ...]:
    return tuple([int(part) for part in release.split(".")])
