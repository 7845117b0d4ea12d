"""Errors of programs that run in virtual time."""

from __future__ import annotations

from typing import NoReturn

from ..protocol.errors import FakeKafkaError, UsageError


class NotSimulated(UsageError, NotImplementedError):
    """A program used something that virtual time cannot offer, such as a thread or a real socket.

    The error is also a ``NotImplementedError``, which many programs expect, for example when
    they set a signal handler.
    """


class ProgramError(FakeKafkaError, RuntimeError):
    """A program blocked the loop, or did not end when it had to."""


def refuse(program: str, what: str, instead: str) -> NoReturn:
    """Raise ``NotSimulated`` with what a program did and what to do instead."""
    raise NotSimulated(f"{program} {what}, which virtual time does not have; {instead}")
