"""What a module of ``wire.kafka.apis`` is made of: its versions, its decoder and its encoder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...protocol.api_versions import VersionRange
from ...protocol.values import frozen
from .primitives import Reader, Writer


@frozen
class Api:
    """One API key: its versions and how its messages are read and written.

    ``decode(reader, version)`` returns the message for the backend, a ``SplitRequest`` or a
    ``CodecAnswer``.
    ``encode(writer, version, response, request)`` writes the body for the backend's response.
    """

    key: int
    name: str
    min_version: int
    max_version: int
    flexible_from: int
    """First version in the compact encoding with request header v2 (KIP-482)."""
    decode: Callable[[Reader, int], Any]
    encode: Callable[[Writer, int, Any, Any], None]

    @property
    def versions(self) -> VersionRange:
        return VersionRange(self.min_version, self.max_version)


@frozen
class SplitRequest:
    """One client request that stands for several of the backend's.

    ``encode`` is called with the tuple of responses, in the order of the requests.
    """

    requests: tuple[Any, ...]
    whole: Any = None
    """What they are parts of, if it has a message of its own: the parts are handed out one by one,
    so that others are served in between, and ``encode`` is called with what ``join`` gives."""
    join: Callable[[tuple[Any, ...]], Any] | None = None


class UnknownElement(Exception):
    """A value that is called unknown, the number 0, stands in a request about ACLs."""

    def __init__(self, request: Any) -> None:
        super().__init__("an element is of the unknown kind")
        self.request = request
        """What was read, for releases that take it."""


@frozen
class CodecAnswer:
    """A request that the codec answers itself; the backend never sees it."""

    response: Any


class Dropped:
    """A request that is not answered; those after it are."""

    __slots__ = ()


DROPPED = Dropped()
