"""Budgets: limits beyond which a run ends with a row that says so, instead of hanging.

Events and virtual time are checked at every event, so a run ends at the same event on every
machine. Wall time and memory depend on the machine; their limits end runs that would never return.
"""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from ...protocol.errors import UsageError
from .parameters import hint

_REPEAT_S = 0.5
"""Interval in seconds at which the exception is raised again, as a finalizer may swallow it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Budget:
    """The limits of one run; None stands for no limit."""

    events: int | None = 50_000_000
    virtual_s: float | None = 24 * 3600.0
    wall_s: float | None = 600.0
    memory_mb: float | None = 4096.0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
                raise UsageError(f"the budget {field.name} must be a number > 0, not {value!r}")

    def changed(self, values: Mapping[str, Any]) -> Budget:
        """Return a copy with other values; raise ``UsageError`` for an unknown name."""
        known = [field.name for field in dataclasses.fields(self)]
        for name in values:
            if name not in known:
                raise UsageError(f"there is no budget {name!r}{hint(name, known)}")
        return dataclasses.replace(self, **values)


class BudgetExceeded(BaseException):
    """A run has used up its budget. Not an ``Exception``, so that no actor handles it as one."""


class WallTimeExceeded(BudgetExceeded):
    """A run has used up its wall time, at a moment that does not follow from the seed."""


@contextlib.contextmanager
def limited(budget: Budget) -> Iterator[None]:
    """Raise ``BudgetExceeded`` in the block when the wall time is over, ``MemoryError`` when it
    needs too much memory.

    The limit of wall time needs the main thread and a system with signals, that of memory Linux.
    """
    with _memory_limited(budget.memory_mb), _time_limited(budget.wall_s):
        yield


@contextlib.contextmanager
def _time_limited(wall_s: float | None) -> Iterator[None]:
    is_main = threading.current_thread() is threading.main_thread()
    if wall_s is None or not is_main or not hasattr(signal, "setitimer"):
        yield
        return

    def end(_number: int, _frame: FrameType | None) -> None:
        raise WallTimeExceeded(f"wall time: the run took longer than {wall_s:g} s")

    started = time.monotonic()
    previous_handler = signal.signal(signal.SIGALRM, end)
    remaining_s, interval_s = signal.setitimer(signal.ITIMER_REAL, wall_s, _REPEAT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous_handler)
        if remaining_s:  # resume an alarm of the caller
            remaining_s = max(remaining_s - (time.monotonic() - started), 0.001)
            signal.setitimer(signal.ITIMER_REAL, remaining_s, interval_s)


@contextlib.contextmanager
def _memory_limited(memory_mb: float | None) -> Iterator[None]:
    status = Path("/proc/self/statm")
    if memory_mb is None or not status.exists():
        yield
        return
    import resource

    used = int(status.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    previous_limit, hard_limit = resource.getrlimit(resource.RLIMIT_AS)
    limit = used + int(memory_mb * 1024 * 1024)
    limits = [
        value for value in (limit, previous_limit, hard_limit) if value != resource.RLIM_INFINITY
    ]
    resource.setrlimit(resource.RLIMIT_AS, (min(limits), hard_limit))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (previous_limit, hard_limit))
