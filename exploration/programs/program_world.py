"""The cluster and the programs of a test, with the faults that they have been subject to so far."""

from __future__ import annotations

from ...programs.program import Program
from ...testing.handles.program import ProgramHandle
from ...testing.simulation import Simulation
from ..world import World


def _alive_min(brokers: int) -> int:
    """Return the minimum number of live brokers: a majority, or 0 for one or two brokers."""
    return brokers // 2 + 1 if brokers > 2 else 0


class ProgramWorld(World):
    """A world that also has programs."""

    def __init__(self, simulation: Simulation, spared: frozenset[str] = frozenset()) -> None:
        super().__init__(simulation, _alive_min(len(simulation.broker_ids)))
        self.programs: dict[str, Program] = {}
        """Programs that the test or a step has started, by name."""
        self.spared: frozenset[str] = spared
        """Names of programs that no fault affects: an async test itself."""
        self.killed: set[str] = set()
        """Programs that a step has killed and no step has restarted."""
        self.joined: int = 0
        self.slowed: list[tuple[str, str]] = []
        """(source, target) links with added latency."""

    def stoppable_brokers(self) -> list[int]:
        able = [broker for broker in self.alive() if broker not in self.paused]
        return able if len(able) > self._alive_min else []

    def handle(self, name: str) -> ProgramHandle:
        return ProgramHandle(self.simulation.running, self.programs[name])

    def attackable_programs(self) -> list[str]:
        """Return the programs whose network may be cut."""
        return [name for name in self.programs if name not in self.spared]

    def stoppable_programs(self) -> list[str]:
        """Return the programs that may be killed: running ones that the test does not wait for."""
        return [
            name
            for name in self.attackable_programs()
            if (program := self.programs[name]).is_running
            and not program.is_paused
            and not program.is_awaited
        ]

    def scalable_programs(self) -> list[str]:
        """Return the programs that may get another instance, as the test runs several of them.

        Empty while the test waits for a condition, which may depend on their number.
        """
        if self.simulation.running.waits_for_condition:
            return []
        main_of = {name: self.programs[name].call[0] for name in self.attackable_programs()}
        mains = list(main_of.values())
        return [name for name in self.stoppable_programs() if mains.count(main_of[name]) > 1]

    def end_faults(self) -> None:
        """End every fault of the cluster and of the programs."""
        super().end_faults()
        for source, target in self.slowed:
            self.simulation.network.restore(source, target)
        self.slowed.clear()
        programs = self.simulation.running.programs
        if programs is not None:
            programs.reset_half_open()
        self.recover_brokers()
        for name in self.programs:
            if self.programs[name].is_paused:
                self.handle(name).resume()
            elif name in self.killed and not self.programs[name].is_running:
                self.handle(name).restart()
        self.killed.clear()
