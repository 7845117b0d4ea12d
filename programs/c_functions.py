"""Functions of C, replaced for every name that they were ever bound to.

``from time import monotonic`` keeps the function itself, so a replacement in the module ``time``
does not reach it. But a function of C is an object with two pointers: to a method and to what that
is called with, its module. While events run, the second is a function of Python and the first a
method of C that calls it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

_api = ctypes.pythonapi
_POINTERS = object.__basicsize__
"""Where the two pointers are, in an object of a function: behind what each object has."""

_VARARGS, _KEYWORDS, _NOARGS, _O, _FASTCALL = 0x1, 0x2, 0x4, 0x8, 0x80
_CALLERS = {
    _NOARGS: _api.PyObject_CallNoArgs,
    _O: _api.PyObject_CallOneArg,
    _VARARGS: _api.PyObject_CallObject,
    _VARARGS | _KEYWORDS: _api.PyObject_Call,
    _FASTCALL | _KEYWORDS: _api.PyObject_Vectorcall,
}
"""For each way in which a method is called: what takes the same, and calls its first argument."""


class _Method(ctypes.Structure):
    """Python's ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_void_p),
    )


_twin_of = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", _api)
)


class CFunction:
    """A function of C, which can be replaced and given back."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self._pointers = (ctypes.c_void_p * 2).from_address(id(function) + _POINTERS)
        self._real = self._pointers[0], self._pointers[1]
        if self._real[1] != id(function.__self__):
            raise NotImplementedError(f"{function!r} is not laid out as CPython does")
        self.real: Callable[..., Any] = _twin_of(self._real[0], function.__self__, None)
        """The function itself, also while it is replaced."""
        method = _Method.from_address(self._real[0] or 0)
        caller = ctypes.cast(_CALLERS[method.flags], ctypes.c_void_p)
        self._method = _Method(method.name, caller.value, method.flags, method.doc)
        self._replacement: Any = None

    def replace(self, replacement: Callable[..., Any]) -> None:
        """Call another function instead, whoever calls this one."""
        _api.Py_IncRef(ctypes.py_object(replacement))  # a function holds what it is called with
        self._replacement = replacement
        self._pointers[0], self._pointers[1] = ctypes.addressof(self._method), id(replacement)

    def restore(self) -> None:
        """Be itself again."""
        self._pointers[0], self._pointers[1] = self._real
        replacement, self._replacement = self._replacement, None
        _api.Py_DecRef(ctypes.py_object(replacement))
