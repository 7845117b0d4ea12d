"""C code that reads the system's clock by itself, where no replacement in Python reaches it.

aiokafka's extension stamps a record that has no timestamp of its own. While events run, its builder
of batches has a subclass in its place that asks Python's clock, as aiokafka's own code in Python
does, and so a program's record has the time of the program.
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
    """Replacement of what reads the clock once it is imported, until it is given back."""

    def __init__(self) -> None:
        self.are_replaced: bool = False
        self._module: Any = None
        self._real: Any = None

    def replace(self) -> None:
        """Replace what has been imported meanwhile."""
        if _MODULE in sys.modules:
            module = sys.modules[_MODULE]
            builder = getattr(module, _NAME, None)
            if builder is None:  # it is being imported
                return
            self._module, self._real = module, builder
            setattr(module, _NAME, _stamping(builder))
            self.are_replaced = True

    def restore(self) -> None:
        if self.are_replaced:
            self.are_replaced = False
            setattr(self._module, _NAME, self._real)
