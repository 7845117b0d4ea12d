"""Hints about classes to the compiler mypyc, without an effect in interpreted code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr as mypyc_attr
else:

    def mypyc_attr(**_said: bool) -> Callable[[type], type]:
        return lambda cls: cls


class WeaklyReferable:
    """Base of compiled classes whose objects can be weakly referenced, as Pykka does with actors.

    The compiler supports this only by inheritance from a class that is not compiled.
    """
