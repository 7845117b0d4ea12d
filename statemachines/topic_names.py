"""Which topic names are legal, and which get in each other's way (Kafka's ``Topic``)."""

from __future__ import annotations

from collections.abc import Iterable

from ..protocol.errors import ErrorCode, KafkaError

LENGTH_MAX = 249
_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def validate_topic_name(name: str) -> None:
    """Raises ``KafkaError`` (INVALID_TOPIC_EXCEPTION) that says what is wrong."""
    if not name:
        problem = "it is empty"
    elif name in (".", ".."):
        problem = "it cannot be '.' or '..'"
    elif len(name) > LENGTH_MAX:
        problem = f"it is longer than {LENGTH_MAX} characters"
    elif not _CHARACTERS.issuperset(name):
        problem = "it contains other characters than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return
    raise KafkaError(
        ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name '{name}' is invalid: {problem}"
    )


def has_collision_characters(name: str) -> bool:
    """Metric names replace '.' by '_': names that differ only there collide."""
    return "." in name or "_" in name


def unified(name: str) -> str:
    """The same for all names that collide."""
    return name.replace(".", "_")


def colliding_topic(name: str, others: Iterable[str]) -> str | None:
    """The first of other topics that collides with a name."""
    key = unified(name)
    return next((other for other in others if other != name and unified(other) == key), None)
