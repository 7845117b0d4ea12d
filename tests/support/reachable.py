"""The size of an object, in objects."""

from __future__ import annotations

import gc
from types import FunctionType, MethodType, ModuleType
from typing import Any

_NOT_HELD = (type, ModuleType, FunctionType, MethodType)


def reachable(one: Any) -> int:
    """How many objects hang on one, itself included; whom its methods and functions are bound to,
    and what all instances share, does not count."""
    seen = {id(one)}
    waiting = [one]
    while waiting:
        for held in gc.get_referents(waiting.pop()):
            if id(held) not in seen and not isinstance(held, _NOT_HELD):
                seen.add(id(held))
                waiting.append(held)
    return len(seen)
