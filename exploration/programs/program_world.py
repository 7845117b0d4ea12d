"""The cluster and the programs of a test, and what has been done to them so far."""

from __future__ import annotations

from ...programs.program import Program
from ...testing.handles.program import ProgramHandle
from ...testing.simulation import Simulation
from ..world import World


def _alive_min(brokers: int) -> int:
    """Brokers that stay: more than half, but the only ones of a cluster of one or two may go."""
    return brokers // 2 + 1 if brokers > 2 else 0


class ProgramWorld(World):
    """A world with programs."""

    def __init__(self, simulation: Simulation, spared: frozenset[str] = frozenset()) -> None:
        super().__init__(simulation, _alive_min(len(simulation.broker_ids)))
        self.programs: dict[str, Program] = {}
        """Those that the test has started, by name."""
        self.spared: frozenset[str] = spared
        """Programs to which nothing is done: the test itself."""
        self.killed: set[str] = set()
        """Programs that a step has killed, and none has started again."""
        self.joined: int = 0
        self.slowed: list[tuple[str, str]] = []
        """Links with another latency: source and target."""

    def mortal(self) -> list[int]:
        able = [broker for broker in self.alive() if broker not in self.paused]
        return able if len(able) > self._alive_min else []

    def handle(self, name: str) -> ProgramHandle:
        return ProgramHandle(self.simulation.running, self.programs[name])

    def reachable(self) -> list[str]:
        """Programs whose network may be cut."""
        return [name for name in self.programs if name not in self.spared]

    def struck(self) -> list[str]:
        """Programs that run, and for whose end the test does not wait: these may be killed."""
        return [
            name
            for name in self.reachable()
            if (program := self.programs[name]).is_running
            and not program.is_paused
            and not program.is_awaited
        ]

    def scaled(self) -> list[str]:
        """Programs of which the test runs several, so that one more may come. None comes while the
        test waits for something, as it may count them."""
        if self.simulation.running.waits_for_condition:
            return []
        mains = [self.programs[name].call[0] for name in self.reachable()]
        return [name for name in self.struck() if mains.count(self.programs[name].call[0]) > 1]

    def end_faults(self) -> None:
        """End every fault that is on."""
        super().end_faults()
        for source, target in self.slowed:
            self.simulation.network.restore(source, target)
        self.slowed.clear()
        programs = self.simulation.running.programs
        if programs is not None:
            programs.find_half_open()
        self.mend_brokers()
        for name in self.programs:
            if self.programs[name].is_paused:
                self.handle(name).resume()
            elif name in self.killed and not self.programs[name].is_running:
                self.handle(name).restart()
        self.killed.clear()
