"""Disposes of the objects of a killed program without running any of its code.

Python closes an unreachable coroutine, which would run its ``finally``, and calls the ``__del__``
of objects, although their process is dead. But Python finalizes an object only once, even if the
object survives (PEP 442), and marks it as finalized. So all remaining objects of the program are
marked, and are then freed silently when they become unreachable.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import io
import logging
import sys
import sysconfig
import weakref
from collections.abc import Iterable
from types import (
    AsyncGeneratorType,
    CodeType,
    CoroutineType,
    FunctionType,
    GeneratorType,
    ModuleType,
)
from typing import Any

_kept: list[list[object]] = []
# Keep these objects permanently, so that they are not finalized at interpreter exit either.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_kept))

_Word = ctypes.c_size_t
_FINALIZED = 1
_HAS_HEADER = 1 << 14
"""Flag of types whose objects the garbage collector tracks: Py_TPFLAGS_HAVE_GC."""
_SUSPENDED = (CoroutineType, GeneratorType, AsyncGeneratorType, asyncio.Future)
_NOT_FOLLOWED = (ModuleType, type, CodeType, logging.Logger, logging.Handler)
_PACKAGE_PREFIX = "fakekafka."
_PROGRAMS_PREFIX = "fakekafka.programs."


def dispose(objects: Iterable[object]) -> None:
    """Prevent any code of these objects, and of all objects they refer to, from running."""
    roots = list(objects)
    if not _CAN_MARK_FINALIZED or not all(map(_suppress_finalizer, _reachable(roots))):
        _kept.append(roots)


def _reachable(objects: Iterable[object]) -> Iterable[object]:
    """Return the reachable objects of the program, without objects of the simulation, modules and
    classes."""
    seen: dict[int, object] = {}
    new: list[Any] = list(objects)
    while new:
        followed: list[object] = []
        for item in new:
            kind = type(item)  # ``__class__`` may be code of the program
            if id(item) in seen or issubclass(kind, _NOT_FOLLOWED):
                continue
            module = str(kind.__module__)
            if module.startswith(_PACKAGE_PREFIX) and not module.startswith(_PROGRAMS_PREFIX):
                continue
            seen[id(item)] = item
            if kind is FunctionType:  # but not the globals of its module
                followed += [item.__closure__, item.__defaults__, item.__kwdefaults__]
            else:
                followed.append(item)
        new = gc.get_referents(*followed)
    return seen.values()


def _suppress_finalizer(item: Any) -> bool:
    """Prevent code from running when an object is freed; return False if that is not possible."""
    kind = type(item)
    if kind.__weakrefoffset__ and any(
        isinstance(reference.__callback__, weakref.finalize)
        for reference in weakref.getweakrefs(item)
    ):
        return False
    if not issubclass(kind, _SUSPENDED):
        # Files of a dead process are closed as well, so their finalizer may run.
        if not hasattr(kind, "__del__") or issubclass(kind, io.IOBase):
            return True
        if not kind.__flags__ & _HAS_HEADER:
            return False
    _mark_finalized(item)
    return True


def _mark_finalized(item: object) -> None:
    """Mark an object as finalized, in the word before it, where the garbage collector keeps its
    links and flags."""
    word = _Word.from_address(id(item) - ctypes.sizeof(_Word))
    word.value |= _FINALIZED


def _can_mark_finalized() -> bool:
    """Return whether marking works, by a trial with a generator; otherwise objects are kept."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    closed = []

    def suspended() -> Iterable[None]:
        try:
            yield
        finally:
            closed.append(True)

    generator = iter(suspended())
    next(generator)
    _mark_finalized(generator)
    is_marked = gc.is_finalized(generator)
    del generator
    return is_marked and not closed


_CAN_MARK_FINALIZED = _can_mark_finalized()
