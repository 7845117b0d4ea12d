"""Topic ids on the wire, topic names inside (KIP-516).

A client's id that this broker cannot resolve becomes a stand-in name that no topic can have. The
backend answers UNKNOWN_TOPIC_OR_PARTITION for it, and the encoder turns that back into the id and
UNKNOWN_TOPIC_ID.
"""

from __future__ import annotations

from typing import Protocol

from ...protocol.errors import ErrorCode
from ...protocol.values import ZERO_UUID, uuid_bytes, uuid_text

_STAND_IN_PREFIX = "<topic id "
_STAND_IN_SUFFIX = ">"
NULL_NAME = "<null>"
"""What 0.10 reads where a name is null; no topic can have it."""


class TopicNames(Protocol):
    """Topic names and ids as one broker knows them."""

    def topic_id(self, topic: str) -> bytes | None:
        """The 16 bytes of a topic's id, None where the topic is unknown."""
        ...

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id of 16 bytes, None where it is unknown."""
        ...


class NoTopicNames:
    """Knows no topic; for brokers without topic ids and for tests of other messages."""

    __slots__ = ()

    def topic_id(self, topic: str) -> bytes | None:
        return None

    def topic_name(self, topic_id: bytes) -> str | None:
        return None


NO_TOPIC_NAMES: TopicNames = NoTopicNames()


def resolved_name(names: TopicNames, topic_id: bytes) -> str:
    """The topic's name, or a stand-in that no topic can have."""
    name = names.topic_name(topic_id)
    if name is None:
        return f"{_STAND_IN_PREFIX}{uuid_text(topic_id)}{_STAND_IN_SUFFIX}"
    return name


def is_stand_in(topic: str) -> bool:
    """Return whether a name stands for an id that could not be resolved."""
    return topic.startswith(_STAND_IN_PREFIX)


def id_to_answer(names: TopicNames, topic: str) -> bytes:
    """The id to write for a topic of a response; zero where the topic has gone meanwhile."""
    if is_stand_in(topic):
        return uuid_bytes(topic[len(_STAND_IN_PREFIX) : -len(_STAND_IN_SUFFIX)])
    return names.topic_id(topic) or ZERO_UUID


def error_to_answer(topic: str, error: ErrorCode) -> ErrorCode:
    """UNKNOWN_TOPIC_ID instead of the backend's error for a stand-in name."""
    if is_stand_in(topic) and error is not ErrorCode.NONE:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return error
