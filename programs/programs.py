"""All programs of one simulation, and their shared parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..actors.broker.spec import SimulatedListener
from .acts import Acts
from .brokers import BrokerFront, ProgramGateway, Security
from .environment import SimulatedEnvironment
from .names import Names
from .notes import Note, Notes
from .program import Main, Program
from .running import running_program
from .tcp import TcpNetwork

if TYPE_CHECKING:
    from ..actors.broker.process import BrokerProcess
    from ..actors.runtime.virtual import VirtualRuntime


class Programs:
    """The programs of a simulation; the first one makes the brokers reachable for programs."""

    def __init__(
        self,
        runtime: VirtualRuntime,
        seed: int,
        kafka_version: str,
        brokers: Callable[[], Iterable[BrokerProcess]],
        security: Security | None = None,
        acts: Acts | None = None,
    ) -> None:
        """``security`` has the requirements of the brokers' listeners; without it there is one
        plaintext listener. ``acts`` records the acts of the programs.
        """
        self._acts = acts
        self._runtime = runtime
        self._seed = seed
        self._environment = SimulatedEnvironment(seed)
        tcp = TcpNetwork(runtime, seed)
        self._names = Names(tcp, lambda: [broker.name for broker in brokers()])
        gateway = ProgramGateway(runtime, kafka_version, self._names)
        for broker in brokers():
            listener = broker.spec.listener
            if isinstance(listener, SimulatedListener):
                listener.attach(BrokerFront(gateway, self._names, broker.spec.config, security))
        self._programs: dict[str, Program] = {}
        self.notes: Notes = Notes(runtime)

    def add(self, name: str, main: Main, args: tuple[Any, ...], options: dict[str, Any]) -> Program:
        """Create a program and start it."""
        program = Program(
            self._runtime, self._seed, self._names, self._environment, name, main, args, options,
            self._acts,
        )  # fmt: skip
        self._programs[name] = program
        program.start()
        return program

    def reset_half_open(self) -> None:
        """Make each machine detect connections that a loss of power has ended."""
        for machine in self._names.machines.values():
            machine.reset_half_open()

    def note(self, text: str, values: dict[str, Any]) -> Note:
        """Record a note of a program or of the test."""
        program = running_program()
        if program is not None and program.acts is not None:
            program.loop.record_act(f"notes {text}", repr(values).encode())
        return self.notes.add("scenario" if program is None else program.name, text, values)

    def running_name(self) -> str | None:
        """Return the name of the program whose code is running."""
        program = running_program()
        return None if program is None else program.name

    @contextmanager
    def running(self) -> Iterator[None]:
        """Prepare for programs while events run."""
        with self._environment.running():
            yield

    def end(self) -> None:
        """Drop all programs, so that none of their code runs again."""
        for program in self._programs.values():
            program.discard()
