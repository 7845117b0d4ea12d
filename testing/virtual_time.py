"""``VirtualTimeCluster``: the running part of a ``Simulation``."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from ..actors.runtime.virtual import VirtualRuntime
from ..protocol.awaiting import Task
from ..protocol.errors import UsageError
from . import arguments
from .condition_text import failed_wait
from .running import RunningCluster, WaitTimeout, is_not_yet

if TYPE_CHECKING:
    from ..actors.broker.process import BrokerProcess
    from ..actors.zookeeper.process import ZooKeeperProcess
    from ..programs.acts import Acts
    from ..programs.program import Program
    from ..programs.programs import Programs
    from .assembly import AdminNode

T = TypeVar("T")


class VirtualTimeCluster(RunningCluster):
    """The running part of a ``Simulation``: time passes only while the caller waits."""

    unit_of_seconds = "virtual s"

    def __init__(
        self,
        runtime: VirtualRuntime,
        seed: int,
        zookeepers: dict[int, ZooKeeperProcess],
        processes: dict[int, BrokerProcess],
        admin: AdminNode,
    ) -> None:
        super().__init__(zookeepers, processes, admin)
        self._runtime = runtime
        self._seed = seed
        self._ended = False
        self._interruptions: list[tuple[int, Callable[[], object]]] = []
        """Times and the actions that are due then, the earliest last."""
        self.acts: Acts | None = None
        """Keeps what programs do, if it is set before the first program starts."""
        self.programs: Programs | None = None
        """Programs of the simulation; None before the first one."""
        self.begun: Callable[[Program], object] | None = None
        """Called with each program that a test starts."""
        self.waits_until_us: int = 0
        """Virtual time at which the latest wait of a test ends or times out."""
        self.waits_for_condition: bool = False
        """True if the latest wait is for a condition, False if it only lets time pass."""

    @property
    def runtime(self) -> VirtualRuntime:
        return self._runtime

    def end(self) -> None:
        """Drop every actor and event."""
        self._ended = True
        if self.programs is not None:
            self.programs.end()
        self._runtime.record(None)
        self._runtime.stop()

    def require_going(self) -> None:
        if self._ended:
            raise UsageError(
                "the simulation has been stopped and cannot run; its logs and recording can still "
                "be read; make a new one to run"
            )

    def require_own_process(self) -> None:
        """Accept a forked child: its complete copy continues as the parent's does."""

    def require_waiting(self) -> None:
        self.require_going()
        if self._runtime.is_running:
            if self.programs is not None and (name := self.programs.running_name()):
                raise UsageError(
                    f"the code of {name} runs in virtual time itself and cannot wait for the "
                    "cluster by a call: `await asyncio.sleep(...)` lets time pass, and clients "
                    "such as aiokafka reach the cluster at kafka:9092"
                )
            raise UsageError(
                "a function called while events run, such as an observer, cannot run events: let "
                "it note what it sees, and act after step, run_for or run_until"
            )

    def call(self, function: Callable[[], Coroutine[Any, Any, T]], timeout_ms: float) -> T:
        self.require_waiting()
        task = Task(function())
        wait = self.waits_until_us, self.waits_for_condition
        self.run_until(lambda: task.done, timeout_ms)
        self.waits_until_us, self.waits_for_condition = wait
        return task.result()

    def wait_until(self, condition: Callable[[], object], timeout_s: float = 10) -> None:
        arguments.number("timeout_s", timeout_s, "seconds")
        self.run_until(condition, timeout_s * 1000)

    @property
    def now_ms(self) -> float:
        return self._runtime.now_us() / 1000

    def step(self) -> bool:
        """Run one event; return False if there is none left."""
        self.require_waiting()
        with self._running_programs():
            happened = self._runtime.step()
        self._raise_failure()
        return happened

    def run_for(self, duration_ms: float) -> int:
        """Run for a span of virtual time; return the number of events."""
        self.require_waiting()
        arguments.number("duration_ms", duration_ms, "milliseconds")
        self.waits_until_us = self._runtime.now_us() + int(duration_ms * 1000)
        self.waits_for_condition = False
        count = self._advance_time(self.waits_until_us)
        self._raise_failure()
        return count

    def run_until(
        self,
        condition: Callable[[], object],
        timeout_ms: float = 60_000,
        every_ms: float | None = None,
    ) -> None:
        """Run until a condition holds after an event, or at an interval of ``every_ms``."""
        self.require_going()
        arguments.condition(condition)
        arguments.number("timeout_ms", timeout_ms, "milliseconds")
        self.waits_until_us = self._runtime.now_us() + int(timeout_ms * 1000)
        self.waits_for_condition = True

        def holds() -> object:  # False while something it reads does not exist yet
            try:
                return condition()
            except Exception as error:
                if is_not_yet(error):
                    return False
                raise

        if every_ms is not None:
            arguments.number("every_ms", every_ms, "milliseconds", above_zero=True)
            self._run_until_every(condition, holds, timeout_ms, every_ms)
            return
        if holds():
            return
        self.require_waiting()
        runtime = self._runtime
        limit_us = runtime.now_us() + int(timeout_ms * 1000)
        while True:
            self._advance_time(limit_us, holds)
            self._raise_failure()
            if runtime.condition_held:
                return
            if runtime.now_us() >= limit_us or runtime.next_time_us() is None:
                raise self._timeout_error(condition, timeout_ms)

    def interrupt(self, at_us: int, action: Callable[[], object]) -> None:
        """Call a function between two events, after all events up to a time.

        The function runs within the wait that reaches this time, and may let time pass itself.
        """
        self._interruptions.append((at_us, action))
        self._interruptions.sort(key=lambda entry: -entry[0])

    def _advance_time(self, limit_us: int, until: Callable[[], object] | None = None) -> int:
        """Run events up to a time, or until a condition holds after one; return their number."""
        with self._running_programs():
            return self._run_events(limit_us, until)

    def _running_programs(self) -> AbstractContextManager[None]:
        """Return the context that programs need while events run."""
        return nullcontext() if self.programs is None else self.programs.running()

    def _run_events(self, limit_us: int, until: Callable[[], object] | None) -> int:
        runtime, due = self._runtime, self._interruptions
        count = 0
        while due and due[-1][0] <= limit_us:
            count += runtime.run(max(due[-1][0], runtime.now_us()), until)
            if runtime.condition_held:
                return count
            due.pop()[1]()
            if until is not None and until():
                runtime.condition_held = True
                return count
        return count + runtime.run(max(limit_us, runtime.now_us()), until)

    def _run_until_every(
        self,
        condition: Callable[[], object],
        holds: Callable[[], object],
        timeout_ms: float,
        every_ms: float,
    ) -> None:
        limit_ms = self.now_ms + timeout_ms
        waits_until_us = self.waits_until_us
        while not holds():
            if self.now_ms >= limit_ms:
                raise self._timeout_error(condition, timeout_ms)
            self.run_for(every_ms)
        self.waits_until_us = waits_until_us

    def _timeout_error(self, condition: Callable[[], object], timeout_ms: float) -> WaitTimeout:
        state = f"seed {self._seed}, t={self.now_ms:g} ms; {self.describe()}"
        last_error: Exception | None = None
        try:
            condition()
        except Exception as error:
            last_error = error
        within = f"{timeout_ms:g} virtual ms"
        return WaitTimeout(failed_wait(condition, within, state, last_error))

    def _raise_failure(self) -> None:
        if self._runtime.failures:
            name, error = self._runtime.failures[0]
            error.add_note(f"raised in {name}, seed {self._seed}, t={self.now_ms:g} ms")
            raise error
