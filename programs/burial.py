"""What is left of a program that was killed: nothing of it may run any more.

Python closes a coroutine that is no longer needed: its ``finally`` would run, and so would the
``__del__`` of its objects, although their process is dead. So they are kept until this one ends.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

_kept: list[list[object]] = []
# For ever, and without being closed at the end of this process either.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_kept))


def bury(remains: Iterable[object]) -> None:
    """Keep objects so that no code of theirs runs."""
    _kept.append(list(remains))
