"""The rate at which the clocks of a machine run, as handles of its process set it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...actors.clock import USUAL_PPM
from ..parameters.kinds import CLOCK_RATE

if TYPE_CHECKING:
    from ...actors.surroundings import Process
    from ..running import RunningCluster


def set_clock_rate(running: RunningCluster, process: Process, rate: float) -> None:
    """Set it; ``UsageError`` for a rate below 0.1 or above 10."""
    CLOCK_RATE.check("rate", rate)
    rate_ppm = round(rate * USUAL_PPM)
    running.in_process(process, lambda: running.runtime.set_clock_rate(process, rate_ppm))


def clock_rate(process: Process) -> float:
    """The rate as a handle shows it."""
    return process.clock.rate_ppm / USUAL_PPM
