"""Errors of programs that run in virtual time."""

from __future__ import annotations

from typing import NoReturn

from ..protocol.errors import FakeKafkaError, UsageError


class NotSimulated(UsageError, NotImplementedError):
    """A program asked for something that virtual time has not, such as a thread or a real socket.

    It is a ``NotImplementedError``, too: many programs expect one, of signal handlers for example.
    """


class ProgramError(FakeKafkaError, RuntimeError):
    """A program did what no program may: it never gave the loop back, or would not end."""


def refuse(program: str, what: str, instead: str) -> NoReturn:
    """Raise ``NotSimulated``: what a program asked for, and what to do instead."""
    raise NotSimulated(f"{program} {what}, which virtual time does not have; {instead}")
