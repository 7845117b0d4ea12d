"""C functions, replaced for every name that they are bound to.

``from time import monotonic`` keeps the function itself, so replacing the attribute of the module
``time`` does not affect it. But a C function is an object with two pointers: to a method and to
that method's first argument, its module. While events run, the second points to a Python function
and the first to a C method that calls it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

_api = ctypes.pythonapi
_POINTERS = object.__basicsize__
"""Offset of the two pointers in a function object, after the header of every object."""

_VARARGS, _KEYWORDS, _NOARGS, _O, _FASTCALL = 0x1, 0x2, 0x4, 0x8, 0x80
_CALLERS = {
    _NOARGS: _api.PyObject_CallNoArgs,
    _O: _api.PyObject_CallOneArg,
    _VARARGS: _api.PyObject_CallObject,
    _VARARGS | _KEYWORDS: _api.PyObject_Call,
    _FASTCALL | _KEYWORDS: _api.PyObject_Vectorcall,
}
"""Calling convention of a method to a C function that takes the same arguments and calls the first
one."""


class _Method(ctypes.Structure):
    """Python's ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_void_p),
    )


_copy_function = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
)(("PyCFunction_NewEx", _api))


class CFunction:
    """A C function that can be replaced and restored."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self._pointers = (ctypes.c_void_p * 2).from_address(id(function) + _POINTERS)
        self._real = self._pointers[0], self._pointers[1]
        if self._real[1] != id(function.__self__):
            raise NotImplementedError(f"{function!r} does not have the memory layout of CPython")
        self.real: Callable[..., Any] = _copy_function(self._real[0], function.__self__, None)
        """The original function, even while it is replaced."""
        method = _Method.from_address(self._real[0] or 0)
        caller = ctypes.cast(_CALLERS[method.flags], ctypes.c_void_p)
        self._method = _Method(method.name, caller.value, method.flags, method.doc)
        self._replacement: Any = None

    def replace(self, replacement: Callable[..., Any]) -> None:
        """Redirect all calls of this function to another one."""
        _api.Py_IncRef(ctypes.py_object(replacement))  # the function object holds a reference
        self._replacement = replacement
        self._pointers[0], self._pointers[1] = ctypes.addressof(self._method), id(replacement)

    def restore(self) -> None:
        """Restore the original function."""
        self._pointers[0], self._pointers[1] = self._real
        replacement, self._replacement = self._replacement, None
        _api.Py_DecRef(ctypes.py_object(replacement))
