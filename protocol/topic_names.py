"""Validation of topic names, and collisions between them (Kafka's ``Topic``)."""

from __future__ import annotations

from collections.abc import Iterable

from .errors import ErrorCode, KafkaError
from .versions import Behaviour

LENGTH_MAX = 249
_KEPT_PER_KEY = 2
"""Number of colliding topics kept; of two, at least one differs from the name looked up."""
_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def validate_topic_name(name: str, behaviour: Behaviour) -> None:
    """Validate a topic name.

    Raises ``KafkaError`` (INVALID_TOPIC_EXCEPTION) with the message of the release.
    """
    find_problem = _invalid if behaviour.topic_names_called_invalid else _illegal
    problem = find_problem(name)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)


def _invalid(name: str) -> str | None:
    if not name:
        problem = "the empty string is not allowed"
    elif name in (".", ".."):
        problem = f"'{name}' is not allowed"
    elif len(name) > LENGTH_MAX:
        problem = f"the length of '{name}' is longer than the max allowed length {LENGTH_MAX}"
    elif not _CHARACTERS.issuperset(name):
        problem = (
            f"'{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    else:
        return None
    return f"Topic name is invalid: {problem}"


def _illegal(name: str) -> str | None:
    if not name:
        return "Topic name is illegal, it can't be empty"
    if name in (".", ".."):
        return 'Topic name cannot be "." or ".."'
    if len(name) > LENGTH_MAX:
        return (
            f"Topic name is illegal, it can't be longer than {LENGTH_MAX} characters, "
            f"topic name: {name}"
        )
    if not _CHARACTERS.issuperset(name):
        return (
            f'Topic name "{name}" is illegal, it contains a character other than '
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


def has_collision_characters(name: str) -> bool:
    """Return True if the name can collide with another one.

    Metric names have '_' for '.', so that topic names that differ only there collide.
    """
    return "." in name or "_" in name


def unified(name: str) -> str:
    """Return the form that colliding names have in common."""
    return name.replace(".", "_")


class TakenNames:
    """Existing topic names that a new topic may collide with."""

    def __init__(self, topics: Iterable[str]) -> None:
        self._topics = topics
        self._by_key: dict[str, list[str]] | None = None
        """Up to two topic names for each unified name; None until first needed."""

    def add(self, name: str) -> None:
        """Add a topic that is about to be created."""
        if has_collision_characters(name):
            colliding_names = self._keys().setdefault(unified(name), [])
            if len(colliding_names) < _KEPT_PER_KEY:
                colliding_names.append(name)

    def colliding(self, name: str) -> str | None:
        """Return the first topic that collides with a name; None if there is none."""
        if not has_collision_characters(name):
            return None
        return next((other for other in self._keys().get(unified(name), ()) if other != name), None)

    def _keys(self) -> dict[str, list[str]]:
        if self._by_key is None:
            self._by_key = {}
            for name in self._topics:
                if has_collision_characters(name):
                    colliding_names = self._by_key.setdefault(unified(name), [])
                    if len(colliding_names) < _KEPT_PER_KEY:
                        colliding_names.append(name)
        return self._by_key
