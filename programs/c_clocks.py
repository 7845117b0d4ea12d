"""C code that reads the system's clock directly, out of reach of replacements in Python.

aiokafka's extension stamps records that have no timestamp. While events run, a subclass replaces
its batch builder and reads Python's clock, as aiokafka's pure-Python code does, so that a program's
records have the time of the program.
"""

from __future__ import annotations

import functools
import sys
import time
from typing import Any

from .running import running_program

_MODULE = "aiokafka.producer.message_accumulator"
_NAME = "DefaultRecordBatchBuilder"


@functools.cache
def _stamping(builder: type[Any]) -> type[Any]:
    class StampingBuilder(builder):  # type: ignore[misc]
        def append(self, offset: int, timestamp: int | None, *args: Any, **options: Any) -> Any:
            if timestamp is None and running_program() is not None:
                timestamp = int(time.time() * 1000)
            return super().append(offset, timestamp, *args, **options)

    return StampingBuilder


class CClocks:
    """Replaces code that reads the clock once it has been imported, until it is restored."""

    def __init__(self) -> None:
        self.are_replaced: bool = False
        self._module: Any = None
        self._real: Any = None

    def replace(self) -> None:
        """Replace the builder if its module has been imported meanwhile."""
        if _MODULE in sys.modules:
            module = sys.modules[_MODULE]
            builder = getattr(module, _NAME, None)
            if builder is None:  # the module is still being imported
                return
            self._module, self._real = module, builder
            setattr(module, _NAME, _stamping(builder))
            self.are_replaced = True

    def restore(self) -> None:
        if self.are_replaced:
            self.are_replaced = False
            setattr(self._module, _NAME, self._real)
