"""The rest of a program that was killed: nothing of it may run any more.

Python closes a coroutine that is no longer needed: its ``finally`` would run, and so would the
``__del__`` of its objects, although their process is dead. But it finalizes an object once, even
one that lives on afterwards (PEP 442), and notes that in the object. So that note is made for all
that is left, which then goes without a word when nothing leads to it any more.
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
# For ever, and without being closed at the end of this process either.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_kept))

_Word = ctypes.c_size_t
_FINALIZED = 1
_HAS_HEADER = 1 << 14
"""Flag of a type whose objects the garbage collector knows: Py_TPFLAGS_HAVE_GC."""
_SUSPENDED = (CoroutineType, GeneratorType, AsyncGeneratorType, asyncio.Future)
_LEADS_OUT = (ModuleType, type, CodeType, logging.Logger, logging.Handler)
_OURS = "fakekafka."
_PROGRAMS = "fakekafka.programs."


def bury(remains: Iterable[object]) -> None:
    """See to it that no code of some objects runs, nor of those to which they lead."""
    buried = list(remains)
    if not _CAN_MARK or not all(map(_silence, _reached(buried))):
        _kept.append(buried)


def _reached(remains: Iterable[object]) -> Iterable[object]:
    """All objects that are the program's: not those of the simulation, nor modules and classes."""
    seen: dict[int, object] = {}
    new: list[Any] = list(remains)
    while new:
        leading: list[object] = []
        for one in new:
            kind = type(one)  # not its __class__, which may be code of the program
            if id(one) in seen or issubclass(kind, _LEADS_OUT):
                continue
            module = str(kind.__module__)
            if module.startswith(_OURS) and not module.startswith(_PROGRAMS):
                continue
            seen[id(one)] = one
            if kind is FunctionType:  # and not the names of its module
                leading += [one.__closure__, one.__defaults__, one.__kwdefaults__]
            else:
                leading.append(one)
        new = gc.get_referents(*leading)
    return seen.values()


def _silence(one: Any) -> bool:
    """Have nothing run when an object goes; False if something would."""
    kind = type(one)
    if kind.__weakrefoffset__ and any(
        isinstance(reference.__callback__, weakref.finalize)
        for reference in weakref.getweakrefs(one)
    ):
        return False
    if not issubclass(kind, _SUSPENDED):
        # A file of a dead process is closed, too.
        if not hasattr(kind, "__del__") or issubclass(kind, io.IOBase):
            return True
        if not kind.__flags__ & _HAS_HEADER:
            return False
    _mark(one)
    return True


def _mark(one: object) -> None:
    """Note that an object was finalized: in the word before it, where the garbage collector has
    its links and notes."""
    word = _Word.from_address(id(one) - ctypes.sizeof(_Word))
    word.value |= _FINALIZED


def _can_mark() -> bool:
    """Try it out on a generator: where it has no effect, remains are kept."""
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
    _mark(generator)
    is_marked = gc.is_finalized(generator)
    del generator
    return is_marked and not closed


_CAN_MARK = _can_mark()
