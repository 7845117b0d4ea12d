"""The size of an object in number of objects."""

from __future__ import annotations

import gc
from types import FunctionType, MethodType, ModuleType
from typing import Any

_NOT_HELD = (type, ModuleType, FunctionType, MethodType)


def reachable(one: Any) -> int:
    """Return the number of objects reachable from one, itself included.

    Objects to which its methods and functions are bound, and objects that all instances share, do
    not count.
    """
    seen = {id(one)}
    waiting = [one]
    while waiting:
        for held in gc.get_referents(waiting.pop()):
            if id(held) not in seen and not isinstance(held, _NOT_HELD):
                seen.add(id(held))
                waiting.append(held)
    return len(seen)
