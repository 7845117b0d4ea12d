"""Legal names of topics, and names that get in each other's way (Kafka's ``Topic``)."""

from __future__ import annotations

from collections.abc import Iterable

from .errors import ErrorCode, KafkaError
from .versions import Behaviour

LENGTH_MAX = 249
_NEEDED = 2
"""Of topics that collide with each other: one of them is not the name asked for."""
_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def validate_topic_name(name: str, behaviour: Behaviour) -> None:
    """Raises ``KafkaError`` (INVALID_TOPIC_EXCEPTION) in the release's own words."""
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
    """Metric names replace '.' by '_': names that differ only there collide."""
    return "." in name or "_" in name


def unified(name: str) -> str:
    """The same for all names that collide."""
    return name.replace(".", "_")


class TakenNames:
    """Topics that others may collide with."""

    def __init__(self, topics: Iterable[str]) -> None:
        self._topics = topics
        self._by_key: dict[str, list[str]] | None = None
        """The first two that are unified to a name; None until it is asked for."""

    def add(self, name: str) -> None:
        """A topic that is about to be created."""
        if has_collision_characters(name):
            same = self._keys().setdefault(unified(name), [])
            if len(same) < _NEEDED:
                same.append(name)

    def colliding(self, name: str) -> str | None:
        """The first of the topics that collides with a name."""
        if not has_collision_characters(name):
            return None
        return next((o for o in self._keys().get(unified(name), ()) if o != name), None)

    def _keys(self) -> dict[str, list[str]]:
        if self._by_key is None:
            self._by_key = {}
            for name in self._topics:
                if has_collision_characters(name):
                    same = self._by_key.setdefault(unified(name), [])
                    if len(same) < _NEEDED:
                        same.append(name)
        return self._by_key
