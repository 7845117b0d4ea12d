"""Errors inside the controller, and the type of its log."""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.errors import FakeKafkaError


class ControllerMoved(FakeKafkaError):
    """Another controller took over, so that this one must resign (``ControllerMovedException``)."""


class IllegalState(FakeKafkaError):
    """The request batch is in an illegal state (``IllegalStateException``)."""


Log = Callable[[str, str], object]
"""Called with a level (``"error"``, ``"warn"``, ``"info"``) and a line of text."""


def ignore_log(_level: str, _text: str) -> None:
    """Log nothing."""
