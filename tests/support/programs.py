"""Programs in virtual time without a cluster, for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fakekafka.actors.network.latency import Constant
from fakekafka.actors.runtime.virtual import VirtualRuntime
from fakekafka.programs.acts import Acts
from fakekafka.programs.program import Main, Program
from fakekafka.programs.programs import Programs

LATENCY_MS = 10.0


class World:
    """Programs on a network of their own, whose links take 10 ms."""

    def __init__(self, seed: int = 1, acts: Acts | None = None) -> None:
        self.runtime = VirtualRuntime(seed)
        self.runtime.network.set_latency(Constant(LATENCY_MS))
        self.programs = Programs(self.runtime, seed, "3.9", list, acts=acts)

    def start(self, main: Main, *args: Any, name: str = "worker-1") -> Program:
        return self.programs.add(name, main, args, {})

    def run_for(self, seconds: float) -> None:
        with self.programs.running():
            self.runtime.run(self.runtime.now + round(seconds * 1e6))

    def run(self, main: Main, *args: Any, name: str = "worker-1", seconds: float = 1000) -> Any:
        """Run a program to its end and return its result."""
        return self.result(self.start(main, *args, name=name), seconds)

    def result(self, program: Program, seconds: float = 1000) -> Any:
        program.is_awaited = True
        self.run_until(lambda: not program.is_running, seconds)
        return program.outcome()

    def run_until(self, condition: Callable[[], object], seconds: float = 1000) -> None:
        with self.programs.running():
            self.runtime.run(self.runtime.now + round(seconds * 1e6), condition)
        assert condition()

    @property
    def now_s(self) -> float:
        return self.runtime.now / 1e6

    def end(self) -> None:
        self.programs.end()
        self.runtime.stop()
