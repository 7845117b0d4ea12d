"""A run of ``simulate``, carried out in this process or in another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ..simulation import Simulation

if TYPE_CHECKING:
    from ...programs.program import Main

Fault = Callable[[Simulation], object]


@dataclass(frozen=True)
class ProgramRun:
    """A run of ``simulate``, which can be repeated."""

    main: Main
    args: tuple[Any, ...]
    seed: int
    brokers: int
    topics: Mapping[str, Any] | None
    faults: Mapping[float, Fault]
    timeout_s: float
    options: Mapping[str, Any]

    def parts(self) -> Iterator[tuple[str, object]]:
        """Yield the parts that another process may not find, each with a description."""
        yield "main", self.main
        for number, value in enumerate(self.args, 1):
            yield f"argument {number} of main", value
        for after_s, fault in self.faults.items():
            yield f"the fault at {after_s:g} s", fault
        for name, value in self.options.items():
            yield f"the option {name}", value

    def simulation(self) -> Simulation:
        """Create the simulation."""
        return Simulation(self.brokers, seed=self.seed, topics=self.topics, **self.options)

    def carry_out(self, simulation: Simulation) -> Any:
        """Run main beside the cluster, and return its result."""
        program = simulation.program(self.main, *self.args, name="main")
        begun_us = simulation.runtime.now_us()
        for after_s, fault in self.faults.items():
            at_us = begun_us + round(after_s * 1e6)
            simulation.running.interrupt(at_us, partial(fault, simulation))
        return program.result(self.timeout_s)
