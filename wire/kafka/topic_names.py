"""Topic ids on the wire, topic names inside (KIP-516).

A topic id that the broker cannot resolve becomes a stand-in name that no topic can have. The
backend answers UNKNOWN_TOPIC_OR_PARTITION for this name, and the encoder writes the id and
UNKNOWN_TOPIC_ID instead.
"""

from __future__ import annotations

from typing import Protocol

from ...protocol.errors import ErrorCode
from ...protocol.values import ZERO_UUID, uuid_bytes, uuid_text

_STAND_IN_PREFIX = "<topic id "
_STAND_IN_SUFFIX = ">"
NULL_NAME = "<null>"
"""Stand-in for a null name in a request to 0.10; no topic can have this name."""


class TopicNames(Protocol):
    """Topic names and ids as one broker knows them."""

    def topic_id(self, topic: str) -> bytes | None:
        """Return the 16 bytes of a topic's id; None if the topic is unknown."""
        ...

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the name of the topic with this id of 16 bytes; None if the id is unknown."""
        ...


class NoTopicNames:
    """Names of no topic, for brokers without topic ids and for tests of other messages."""

    __slots__ = ()

    def topic_id(self, topic: str) -> bytes | None:
        return None

    def topic_name(self, topic_id: bytes) -> str | None:
        return None


NO_TOPIC_NAMES: TopicNames = NoTopicNames()


def resolved_name(names: TopicNames, topic_id: bytes) -> str:
    """Return the topic's name, or a stand-in that no topic can have."""
    name = names.topic_name(topic_id)
    if name is None:
        return f"{_STAND_IN_PREFIX}{uuid_text(topic_id)}{_STAND_IN_SUFFIX}"
    return name


def is_stand_in(topic: str) -> bool:
    """Return whether a name stands for an id that could not be resolved."""
    return topic.startswith(_STAND_IN_PREFIX)


def id_for_response(names: TopicNames, topic: str) -> bytes:
    """Return the id to write for a topic of a response; zero if the topic has been deleted."""
    if is_stand_in(topic):
        return uuid_bytes(topic[len(_STAND_IN_PREFIX) : -len(_STAND_IN_SUFFIX)])
    return names.topic_id(topic) or ZERO_UUID


def error_for_response(topic: str, error: ErrorCode) -> ErrorCode:
    """Return the error to write: UNKNOWN_TOPIC_ID instead of any error of a stand-in name."""
    if is_stand_in(topic) and error is not ErrorCode.NONE:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return error
