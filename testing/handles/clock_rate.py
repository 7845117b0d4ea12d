"""The clock rate of a machine, for the handles of the processes that run on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...actors.clock import NORMAL_RATE_PPM
from ..parameters.kinds import CLOCK_RATE

if TYPE_CHECKING:
    from ...actors.interfaces import Process
    from ..running import RunningCluster


def set_clock_rate(running: RunningCluster, process: Process, rate: float) -> None:
    """Set the clock rate of a process's machine; ``UsageError`` below 0.1 or above 10."""
    CLOCK_RATE.check("rate", rate)
    rate_ppm = round(rate * NORMAL_RATE_PPM)
    running.in_process(process, lambda: running.runtime.set_clock_rate(process, rate_ppm))


def clock_rate(process: Process) -> float:
    """Return the clock rate of a process's machine; 1 is the usual rate."""
    return process.clock.rate_ppm / NORMAL_RATE_PPM
