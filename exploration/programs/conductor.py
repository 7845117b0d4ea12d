"""Applying faults to the simulation of a test, between the events of any wait of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from ...programs.program import Program
from ...testing.simulation import Simulation
from ..cluster_steps import Wait
from ..step import SETTLES_WITHIN_MS, SETTLING_EVERY_MS, Step
from .program_world import ProgramWorld

Plan = Callable[[ProgramWorld], Iterable[Step[Any]]]
"""Returns the steps of a run; each is done before the next one is requested."""

_RECOVERY_INTERVAL_MS = 500
_RECOVERY_MS = 60_000
"""Milliseconds after the faults in which stopped brokers are started, as some may still be shutting
down."""
_SUPERVISED_FOR_MS = 20_000
"""Milliseconds after the last fault in which failing clients are still attributed to faults."""
_RESTART_DELAY_MS = 1000
"""Milliseconds until a supervised program that failed is started again."""
LASTS_AT_MOST_MS = 4 * 3_600_000
"""Virtual time in milliseconds after which a test counts as endless."""


class Endless(BaseException):
    """Ends a test that exceeds its time limit; error handlers must not catch it."""


class Conductor:
    """Applies the faults of one run, from the start of the test's first program on."""

    def __init__(
        self,
        plan: Plan | None,
        *,
        seed: int | None = None,
        records: bool | None = None,
        spared: frozenset[str] = frozenset(),
        within_ms: int | None = None,
    ) -> None:
        """Create a conductor; without a ``plan``, no faults happen.

        Steps end ``within_ms`` milliseconds after the first program was started.
        """
        self._plan = plan
        self._seed = seed
        self._records = records
        self._spared = spared
        self._within_ms = within_ms
        self._steps: Iterator[Step[Any]] = iter(())
        self._settling: Step[Any] | None = None
        """The step whose consequences are not over yet; None if there is none."""
        self._settling_ms = 0
        self._ended_us: int | None = None
        self.begun_us: int | None = None
        """Time in microseconds at which the first program was started."""
        self.simulation: Simulation | None = None
        self.taken: list[Step[Any]] = []
        """The steps that were done, without those that did not apply."""
        self.step_log: list[str] = []
        """Lines with the time of each step, including steps that did not apply."""
        self.restarts: list[str] = []
        """Class names of the errors after which programs were started again."""

    @property
    def arguments(self) -> dict[str, Any]:
        given = {"seed": self._seed, "trace": self._records}
        return {name: value for name, value in given.items() if value is not None}

    def begin(self, simulation: Simulation) -> None:
        self.simulation = simulation
        simulation.is_explored = True
        self._world = ProgramWorld(simulation, self._spared)
        simulation.running.begun = self._program_begun
        limit_us = simulation.runtime.now_us() + LASTS_AT_MOST_MS * 1000
        simulation.running.interrupt(limit_us, self._end_test)

    def _end_test(self) -> None:
        hours = LASTS_AT_MOST_MS / 3_600_000
        raise Endless(f"the test has not ended within {hours:g} virtual hours")

    def _program_begun(self, program: Program) -> None:
        assert self.simulation is not None
        self._world.programs[program.name] = program
        program.supervise = partial(self._supervise, program)
        if self.begun_us is None:
            self.begun_us = self.simulation.runtime.now_us()
            if self._plan is not None:
                self._steps = iter(self._plan(self._world))
                self.simulation.running.interrupt(self.begun_us, self._apply_steps)

    # -- the faults ----------------------------------------------------------------------------

    def _apply_steps(self) -> None:
        """Do the steps before the next wait."""
        if self._settling is not None:
            self._settling_ms += SETTLING_EVERY_MS
            if not self._settling.is_settled(self._world):
                if self._settling_ms < SETTLES_WITHIN_MS:
                    self._call_after(SETTLING_EVERY_MS, self._apply_steps)
                    return
                self._log(f"{self._settling} has not settled within {SETTLES_WITHIN_MS / 1000:g} s")
            self._settling = None
        for step in self._steps:
            if isinstance(step, Wait):
                remaining_ms = self._remaining_ms()
                ms = step.ms if remaining_ms is None else min(step.ms, remaining_ms)
                if ms:
                    self._log(Wait(ms))
                    self.taken.append(Wait(ms))
                if ms == remaining_ms:
                    self._steps = iter(())
                if ms:
                    self._call_after(ms, self._apply_steps)
                    return
                continue
            self._log(step)
            if not step.do(self._world):
                self.step_log[-1] += " (not possible)"
                continue
            self.taken.append(step)
            if not step.is_settled(self._world):
                self._settling, self._settling_ms = step, 0
                self._call_after(SETTLING_EVERY_MS, self._apply_steps)
                return
        self._end_faults()

    def _remaining_ms(self) -> int | None:
        """Return the milliseconds until all faults must end; None for no limit."""
        if self._within_ms is None:
            return None
        return max(self._within_ms - int(self._elapsed_ms()), 0)

    def _elapsed_ms(self) -> float:
        assert self.simulation is not None
        assert self.begun_us is not None
        return (self.simulation.runtime.now_us() - self.begun_us) / 1000

    def _log(self, what: object) -> None:
        self.step_log.append(f"{self._elapsed_ms() / 1000:9.3f} s  {what}")

    def _call_after(self, ms: int, action: Callable[[], object]) -> None:
        assert self.simulation is not None
        at_us = self.simulation.runtime.now_us() + ms * 1000
        self.simulation.running.interrupt(at_us, action)

    def _end_faults(self) -> None:
        """End every fault, so that the rest of the test is free of faults."""
        assert self.simulation is not None
        self._log("every fault ends")
        self._world.end_faults()
        self._ended_us = self.simulation.runtime.now_us()
        self._recover_brokers()

    def _recover_brokers(self) -> None:
        assert self.simulation is not None
        assert self._ended_us is not None
        self._world.recover_brokers()
        if self.simulation.runtime.now_us() < self._ended_us + _RECOVERY_MS * 1000:
            self._call_after(_RECOVERY_INTERVAL_MS, self._recover_brokers)

    # -- programs that fail --------------------------------------------------------------------

    def _supervise(self, program: Program, error: BaseException) -> bool:
        """Restart a program that failed because of faults, as a supervisor would.

        Return False if the failure is not attributed to faults.
        """
        assert self.simulation is not None
        if not self.taken or not _is_client_error(error):
            return False
        runtime = self.simulation.runtime
        ended_us = self._ended_us
        if ended_us is not None and runtime.now_us() > ended_us + _SUPERVISED_FOR_MS * 1000:
            return False
        self.restarts.append(type(error).__name__)
        self._log(f"{program.name} has failed ({type(error).__name__}), and is started again")

        def start_again() -> None:
            if not program.is_running and program.name not in self._world.killed:
                program.start()

        runtime.call_later(None, _RESTART_DELAY_MS * 1000, start_again)
        return True


def _is_client_error(error: BaseException) -> bool:
    """Return True if faults can explain an error, as it comes from the network or a library.

    Other built-in exceptions of Python indicate a mistake in the program.
    """
    if not isinstance(error, Exception):
        return False
    return isinstance(error, OSError) or type(error).__module__ != "builtins"
