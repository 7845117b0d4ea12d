"""Words to the compiler about a class; nothing where there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr as mypyc_attr
else:

    def mypyc_attr(**_said: bool) -> Callable[[type], type]:
        return lambda cls: cls


class WeaklyReferable:
    """Base of compiled classes to whose objects weak references exist, as Pykka keeps one to each
    actor. The compiler takes that from the base alone, and only of one that is not compiled."""
