"""The base of all runtimes: time, timers, randomness, inboxes, and the network.

Three runtimes run the same nodes: ``VirtualRuntime`` (virtual.py), ``LiveRuntime`` (live.py) and
``ThreadedRuntime`` (threaded.py).
"""

from __future__ import annotations

import abc
import itertools
import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import pykka

from ...protocol.host import LogListener, StateListener, Timer
from ...protocol.names import TCP_CLIENTS, machine_of
from ..clock import NORMAL_RATE_PPM
from ..delivery import Delivery, Endpoint
from ..interfaces import (
    AbstractNode,
    AbstractRuntime,
    EventSink,
    Process,
    RowBuffer,
    StateObserver,
    TraceSink,
)
from ..network.network import Network
from ..node import Node
from ..port import Handler, Port
from ..silence import Silence, Waited, describe_wait
from .timer_chains import TimerChains
from .virtual_timer import name_of

T = TypeVar("T")
logger: logging.Logger = logging.getLogger("fakekafka.actors")
# Without a handler, Python prints warnings to the terminal if logging is not configured.
logging.getLogger("fakekafka").addHandler(logging.NullHandler())

VIRTUAL_EPOCH_MS = 1_767_225_600_000
"""Start of virtual clocks: 2026-01-01T00:00:00Z. Far from 0, as a replica that was never
caught up carries time 0 and must not look recent
(docs/kafka/partitions.md#high-watermark-of-a-leader)."""


_LEVELS = {
    "trace": 5,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


_ROOT_KINDS = ("fault", "crash", "restart", "start")
_TRACED_LEVELS = ("warn", "error")


def _silent_since(process: Process, since_us: int) -> int | None:
    """Return the seq of the event that silenced a process; None if that ended by ``since_us``."""
    ended_us = process.responsive_since_us
    return process.silenced_by if ended_us is None or ended_us > since_us else None


class _SinkAdapter(EventSink):
    """Adapts a sink of another class."""

    __slots__ = ("_sink",)

    def __init__(self, sink: TraceSink) -> None:
        super().__init__()
        self._sink = sink

    def event(
        self,
        time_us: int,
        kind: str,
        actor: str,
        peer: str | None,
        message: object | None,
        message_id: int | None,
        cause: int | None,
        why: str | None = None,
        of: int | None = None,
    ) -> int:
        return self._sink.event(time_us, kind, actor, peer, message, message_id, cause, why, of)


class Runtime(AbstractRuntime):
    """Base of the runtimes; ``seed`` determines every random draw."""

    name: str
    _ids: ClassVar = itertools.count(1)

    def __init__(self, seed: int | None = None) -> None:
        self.id: int = next(Runtime._ids)
        self.rng: random.Random = random.Random(seed)
        self._seed = seed
        self._torn_writes: random.Random | None = None
        self._cause: int | None = None
        self._outside_event: int | None = None  # the last action on the cluster from outside
        self.current_step: str | None = None
        """Description of what a scenario does now, for its steps in the trace."""
        self.failures: list[tuple[str, BaseException]] = []
        self.processes: dict[str, Process] = {}
        self.owners: dict[int | str, str] = {}
        self._blamed: tuple[int | None, int | None] = (None, None)  # last expiry, cause before it
        self._correlation = 0
        self._incarnation = 0
        self.network: Network = self._create_network()
        self.recorder: EventSink | None = None
        self._observer: TraceSink | StateObserver | None = None
        self.row_buffer: RowBuffer | None = None
        self.timer_chains: TimerChains = TimerChains()

    def _create_network(self) -> Network:
        return Network(self)

    @property
    def torn_writes(self) -> random.Random:
        """Generator that decides what a power failure leaves of writes. It is separate, so that the
        rest of a run does not depend on these draws."""
        if self._torn_writes is None:
            seed = None if self._seed is None else f"torn writes {self._seed}"
            self._torn_writes = random.Random(seed)
        return self._torn_writes

    # -- time ----------------------------------------------------------------------------------

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def wall_ms_ahead(self, ahead_us: int) -> int:
        return (time.time_ns() + ahead_us * 1000) // 1_000_000

    def set_shared_timer(
        self, node: AbstractNode, delay_us: int, callback: Callable[[], object]
    ) -> Timer:
        timer: Any = self.call_later(node, delay_us, callback)
        timer.serves_many = True
        return timer  # type: ignore[no-any-return]

    def call_later_by_runtime_clock(
        self, node: Endpoint, delay_us: int, callback: Callable[[], object]
    ) -> Timer:
        timer: Any = self.call_later(node, delay_us, callback)
        timer.uses_runtime_clock = True
        return timer  # type: ignore[no-any-return]

    @abc.abstractmethod
    def move_timers(self, process: Process, before_ppm: int, after_ppm: int) -> None:
        """Reschedule the timers of a process after a change of its clock's rate."""

    # -- messages ------------------------------------------------------------------------------

    def enqueue_not_before(self, delivery: Delivery, delay_us: int, earliest_us: int) -> int:
        now_us = self.now_us()
        arrival_us = max(now_us + delay_us, earliest_us)
        self.enqueue(delivery, arrival_us - now_us)
        return arrival_us

    def next_correlation(self) -> int:
        self._correlation += 1
        return self._correlation

    def next_incarnation(self) -> int:
        self._incarnation += 1
        return self._incarnation

    # -- actors --------------------------------------------------------------------------------

    def create_port(self, node: Node, machine: str, handlers: dict[type, Handler]) -> Port:
        return Port(self, self.network, node, machine, handlers)

    def create_lock(self) -> Any:
        """Create the lock of a process; None if its handlers cannot run concurrently."""
        return None

    def process(self, name: str) -> Process:
        """Return the process of a name, and create it if it does not exist."""
        process = self.processes.get(name)
        if process is None:
            process = self.processes[name] = Process(name, self.create_lock())
        return process

    def spawn(self, node_class: type[Any], name: str, process: Process, *args: Any) -> Any:
        """Create and start a node; returns the node itself.

        Pykka's ``start`` would enter the node into a registry that is global in the Python process,
        and return a blocking reference. As there may be many clusters, runtimes keep nodes
        themselves.
        """
        node: Node = node_class(self, name, process, *args)
        if not process.nodes:
            process.responsive_since_us = self.now_us()
        process.nodes[name] = node
        if process.paused:
            node.block(True)
        self.network.add(node)
        if self.recorder is not None:
            cause = self.begin_step()
            self.recorder.event(self.now_us(), "spawn", name, process.name, None, None, cause)
        self.start_actor_loop(node)
        return node

    def discard(self, node: Node) -> None:
        """Forget a halted node."""
        self.network.remove(node)
        if node.process.nodes.get(node.name) is node:
            del node.process.nodes[node.name]
        if self.recorder is not None:
            cause = self.begin_step()
            self.recorder.event(self.now_us(), "stop", node.name, node.machine, None, None, cause)

    def kill_process(self, process: Process, *, silently: bool = False) -> None:
        """Halt all nodes of a process; peers see their connections break unless ``silently``."""
        names = frozenset(process.nodes)
        process.paused = False
        process.silenced_by, process.responsive_since_us = self.cause, None
        process.silence = Silence.OFF
        process.held.clear()
        for node in list(process.nodes.values()):
            node.halt()
        if silently:
            self.network.power_lost(process.name)
        elif names:  # a program's process has no nodes, and closes its connections itself
            self.network.process_died(process.name, names)

    def pause(self, process: Process) -> None:
        """Freeze a process, as a long garbage collection does: nothing is handled or lost."""
        process.paused = True
        process.silenced_by, process.responsive_since_us = self.cause, None
        process.silence = Silence.PAUSED
        for node in process.nodes.values():
            node.block(True)

    def resume(self, process: Process) -> None:
        process.paused = False
        process.responsive_since_us = self.now_us()
        for node in process.nodes.values():
            node.block(node.stopped)
        held, process.held = process.held, []
        for item in held:
            self.call_later(None, 0, item)

    def shift_clock(self, process: Process, shift_ms: int) -> None:
        """Set the wall clock of a process's machine forward, or back if ``shift_ms`` is below 0."""
        process.clock.shift_ms += shift_ms
        for node in process.nodes.values():
            node.apply_clock()

    def set_clock_rate(self, process: Process, rate_ppm: int) -> None:
        """Set the rate of the clock of a process's machine, in microseconds per second."""
        before_ppm = process.clock.rate_ppm
        rate = rate_ppm / NORMAL_RATE_PPM
        self.note("fault", process.name, f"the clock of {process.name} runs at rate {rate:g}")
        process.clock.set_rate(rate_ppm, self.now_us())
        for node in process.nodes.values():
            node.apply_clock()
        self.move_timers(process, before_ppm, rate_ppm)

    def run_in(self, process: Process | None, function: Callable[[], T]) -> T:
        """Run a function where it may access the memory of a process, and return its result."""
        return function()

    # -- failures ------------------------------------------------------------------------------

    def report_failure(self, node: Endpoint | None, error: BaseException) -> None:
        """Keep and log an exception that no handler may raise."""
        name = node.name if node is not None else "runtime"
        self.failures.append((name, error))
        self.note("note", name, f"error: failed: {error!r}")
        logger.error("%s failed: %r", name, error, exc_info=error)

    def report_user_failure(self, kind: str, function: object, error: Exception) -> None:
        """Report a user's observer or filter that raised and was removed; the cluster goes on."""
        name = f"{kind} {getattr(function, '__qualname__', function)!s}"
        self.failures.append((name, error))
        self.note("note", "network", f"error: the {name} raised {error!r} and was removed")
        logger.error("the %s raised %r and was removed", name, error, exc_info=error)

    def log(self, name: str, level: str, text: str) -> None:
        """Pass a core's log line to Python's logging, under the node's name.

        Warnings and errors are also written into the trace.
        """
        if level in _TRACED_LEVELS:
            self.note("note", name, f"{level}: {text}")
        logging.getLogger(f"fakekafka.{name}").log(_LEVELS.get(level, logging.INFO), text)

    def state_listener(self, actor: str) -> StateListener | None:
        """Return the listener for an actor's state changes; None if they are not observed."""
        make_listener = getattr(self._observer, "state_listener", None)
        return None if make_listener is None else make_listener(self, actor)

    def log_listener(self, actor: str, paths: tuple[str, str, str]) -> LogListener | None:
        """Return the listener for an actor's log offsets; None if they are not observed."""
        make_listener = getattr(self._observer, "log_listener", None)
        return None if make_listener is None else make_listener(self, actor, paths)

    def note(self, kind: str, actor: str, text: str) -> None:
        """Write a fault or a note into the trace; a fault becomes the cause of what follows."""
        recorder = self.recorder
        if recorder is None:
            return
        if kind in _ROOT_KINDS:
            is_outside = self.cause is None or self.cause == self._outside_event
            cause = None if is_outside else self.cause
            self.cause = recorder.event(self.now_us(), kind, actor, None, None, None, cause, text)
            if is_outside:
                self._outside_event = self.cause
        else:
            cause = self.begin_step()
            recorder.event(self.now_us(), kind, actor, None, None, None, cause, text)

    def record(self, recorder: TraceSink | StateObserver | None) -> None:
        """Pass events to a recorder from now on; with None, stop recording.

        A recorder without ``event`` gets state changes only, which is cheap, as no events are
        created.
        """
        self._observer = recorder
        sink: Any = getattr(recorder, "intake", None)
        if sink is None and hasattr(recorder, "event"):
            sink = recorder
            if not isinstance(sink, EventSink):
                sink = _SinkAdapter(sink)
        self.recorder = sink
        self.row_buffer = None if sink is None else sink.row_buffer
        self.network.watchers_changed()

    def begin_step(self) -> int | None:
        """Return the cause of what is done now. Without one, a test or a scenario acts from
        outside: record that as a step."""
        cause = self.cause
        if cause is None and self.recorder is not None:
            cause = self.recorder.event(
                self.now_us(), "step", "scenario", None, None, None, None, self.current_step
            )
            self.cause = self._outside_event = cause
        return cause

    def record_firing(self, actor: str, name: str, cause: int | None) -> int:
        """Record the firing of a timer; returns the number of the event."""
        assert self.recorder is not None
        chain_start = self.timer_chains.chain_start(actor, name, cause)
        event = self.recorder.event(
            self.now_us(), "timer_fire", actor, None, name, None, chain_start
        )
        self.timer_chains.record_firing(actor, name, event, chain_start)
        return event

    def report_silence(self, actor: str, peer: str, silent_ms: float, text: str) -> None:
        """Record that a peer was silent for too long, attributed to a crash, pause, cut or loss."""
        if self.recorder is None:
            return
        expiry, before = self._blamed
        if expiry is not None and self.cause == expiry:
            self.cause = before  # one check may find several silent peers
        before = self.begin_step()
        silent = (
            None if before == self._outside_event else self._silenced_by(actor, peer, silent_ms)
        )
        cause = before if silent is None else silent[0]
        self.cause = self.recorder.event(
            self.now_us(), "expire", actor, peer or None, None, None, cause, text
        )
        self._blamed = (self.cause, before)

    def record_firing_without_entries(
        self, node: Endpoint | None, callback: Callable[[], object], cause: int | None
    ) -> None:
        """Record the firing of a timer that serves many entries, of which none was due."""
        if self.recorder is not None and node is not None:
            self.record_firing(node.name, name_of(callback), cause)

    def record_due_entry(self, actor: str, name: str, cause: int | None) -> None:
        if self.recorder is not None:
            if cause is None:
                cause = self.begin_step()
            self.cause = self.recorder.event(
                self.now_us(), "timer_fire", actor, None, name, None, cause
            )

    def record_timeout(
        self, actor: str, peers: Sequence[str], cause: int | None, waited_ms: float
    ) -> None:
        if self.recorder is None:
            return
        if cause is None:
            cause = self.begin_step()
        found = [self._silenced_by(actor, peer, waited_ms) for peer in peers]
        silent = [None if silence is None else silence[1] for silence in found]
        self.cause = self.recorder.event(
            self.now_us(),
            "expire",
            actor,
            peers[0] if peers else None,
            Waited(cause, waited_ms),
            None,
            next((silence[0] for silence in found if silence is not None), cause),
            describe_wait(waited_ms, [*zip(peers, silent, strict=True)]),
            cause,
        )

    def _silenced_by(self, actor: str, peer: str, silent_ms: float) -> tuple[int, Silence] | None:
        """Return the seq of the event that kept a peer from being heard by an actor in the last
        ``silent_ms``, and the kind of silence. Causes that ended before do not count.
        """
        server = self.network.nodes.get(actor)
        silent_us = int(silent_ms * 1000)
        if server is not None:  # the actor measured the silence by its own clock
            silent_us = server.process.clock.to_runtime_us(silent_us)
        since_us = self.now_us() - silent_us
        node = self.network.nodes.get(peer)
        process = self.processes.get(machine_of(peer)) if node is None else node.process
        machine = TCP_CLIENTS if process is None else process.name
        if server is not None:
            cut = self.network.cut_event(machine, server.machine, since_us)
            if cut is not None:
                return cut, Silence.CUT
        if process is not None and (seq := _silent_since(process, since_us)) is not None:
            return seq, process.silence
        if server is None:
            return None
        if (seq := _silent_since(server.process, since_us)) is not None:
            return seq, Silence.ITSELF
        return self.network.disturbance_event(machine, server.machine, since_us)

    @abc.abstractmethod
    def stop(self) -> None:
        """Halt everything; idempotent."""

    def halt_all(self) -> None:
        for process in list(self.processes.values()):
            for node in list(process.nodes.values()):
                node.halt()
        self.processes.clear()


class _Inbox:
    """Inbox for the runtimes with one loop for all nodes: ``put`` schedules the handling."""

    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        self._node = node

    def put(self, envelope: Any, /) -> None:
        node = self._node
        node.runtime.call_later(node, 0, lambda: self._process(envelope))

    def _process(self, envelope: Any) -> None:
        try:
            result = self._node._handle_receive(envelope.message)
        except Exception as error:
            if envelope.reply_to is None:
                self._node.runtime.report_failure(self._node, error)
            else:
                envelope.reply_to.set_exception()
        else:
            if envelope.reply_to is not None:
                envelope.reply_to.set(result)

    def get(self) -> Any:
        raise NotImplementedError("one loop runs all nodes; there is no inbox to read from")

    def empty(self) -> bool:
        return True


class LoopRuntime(Runtime):
    """Base of the runtimes in which one loop runs every node: virtual and live."""

    def create_inbox(self, node: Node) -> Any:
        return _Inbox(node)

    def create_future(self) -> Any:
        return pykka.ThreadingFuture()

    def start_actor_loop(self, node: Node) -> None:
        node.on_start()
