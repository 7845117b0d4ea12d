"""Errors inside the controller."""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.errors import FakeKafkaError


class ControllerMoved(FakeKafkaError):
    """Another controller took over: this one must resign (``ControllerMovedException``)."""


class IllegalState(FakeKafkaError):
    """A request batch is in a state it must not be in (``IllegalStateException``)."""


Log = Callable[[str, str], object]
"""Takes a level (``"error"``, ``"warn"``, ``"info"``) and a line of text."""


def ignore_log(_level: str, _text: str) -> None:
    """The logger of those who want none."""
