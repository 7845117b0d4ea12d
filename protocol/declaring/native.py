"""Hints to the compiler mypyc, without an effect in interpreted code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

Function = TypeVar("Function", bound=Callable[..., object])

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr as mypyc_attr
else:

    def mypyc_attr(**_said: bool) -> Callable[[type], type]:
        return lambda cls: cls


def checks_arguments(function: Function) -> Function:
    """Mark a function that checks the types of its arguments itself.

    Its ``UsageError`` says what would be right. Compiled code would raise ``TypeError`` before it,
    so the compiler gets the function with arguments of any type (``building/compiler_source.py``).
    """
    return function


class WeaklyReferable:
    """Base of compiled classes whose objects can be weakly referenced, as Pykka does with actors.

    The compiler supports this only by inheritance from a class that is not compiled.
    """
