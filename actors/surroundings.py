"""The runtime as nodes, ports and networks see it.

The runtimes stand above all of these; here is what those below them may know.
"""

from __future__ import annotations

import abc
import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..protocol.declaring.native import mypyc_attr
from ..protocol.host import LogListener, StateListener, Timer
from .clock import Clock
from .delivery import Delivery, Endpoint
from .silence import Silence


class TraceSink(Protocol):
    """Destination of events when a run is traced (``fakekafka.tracing``)."""

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
        """Take an event; ``of`` is one to whose operation it belongs, if not its cause."""
        ...


class Row:
    """An event as ``TraceSink.event`` takes it, with the name of the message's type.

    Of a message that is a text, which is a name alone, there is no more.
    """

    __slots__ = (
        "actor", "cause", "kind", "message", "message_id", "name", "of", "peer", "time_us", "why",
    )  # fmt: skip

    def __init__(
        self,
        time_us: int,
        kind: str,
        actor: str,
        peer: str | None,
        name: str,
        message_id: int | None,
        message: object,
        cause: int | None,
        why: str | None,
        of: int | None,
    ) -> None:
        self.time_us: int = time_us
        self.kind: str = kind
        self.actor: str = actor
        self.peer: str | None = peer
        self.name: str = name
        self.message_id: int | None = message_id
        self.message: object = message
        self.cause: int | None = cause
        self.why: str | None = why
        self.of: int | None = of


class Named:
    """One end of a message."""

    __slots__ = ("name",)

    name: str


class Sent:
    """A sending as the virtual network writes it. At the place of another event it is its
    delivery."""

    __slots__ = (
        "arrival_us", "cause", "message", "message_id", "of", "sender", "seq", "target", "time_us",
    )  # fmt: skip

    def __init__(
        self,
        time_us: int,
        sender: Named,
        target: Named,
        message_id: int,
        message: object,
        cause: int | None,
        of: int | None,
        seq: int,
        arrival_us: int,
    ) -> None:
        self.time_us: int = time_us
        self.sender: Named = sender
        self.target: Named = target
        self.message_id: int = message_id
        self.message: object = message
        self.cause: int | None = cause
        self.of: int | None = of
        self.seq: int = seq
        """Its own number."""
        self.arrival_us: int = arrival_us


class RowBuffer:
    """Rows of a trace. The virtual network, where every step counts, writes messages into them by
    itself. The next event has the number ``first + len(rows)``."""

    def __init__(self, cut: Callable[[], object], last_of_chunk: int) -> None:
        self.first: int = 0
        self.rows: list[Row | Sent] = []
        self.last_of_chunk: int = last_of_chunk
        """Whoever writes the event of this number calls ``cut``."""
        self.cut: Callable[[], object] = cut


class EventSink:
    """A ``TraceSink`` as a runtime calls it. A recorder may have one as its ``intake``: events then
    go there without passing the recorder."""

    __slots__ = ("row_buffer",)

    def __init__(self, row_buffer: RowBuffer | None = None) -> None:
        self.row_buffer: RowBuffer | None = row_buffer
        """Where events may be written, if there is such a place."""

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
        """``TraceSink.event``."""
        raise NotImplementedError


class StateObserver(Protocol):
    """Takes changes of state; one that takes events, too, is a sink that keeps a whole trace."""

    def state_listener(self, runtime: Surroundings, actor: str) -> StateListener | None:
        """Return the listener of an actor's changes: they join the event that is being handled.
        None for an actor of no interest."""
        ...

    def log_listener(
        self, runtime: Surroundings, actor: str, paths: tuple[str, str, str]
    ) -> LogListener | None:
        """Return the listener of the offsets of an actor's log."""
        ...


@mypyc_attr(allow_interpreted_subclasses=True)
class Resident(Endpoint):
    """A node as its process, its network and its runtime see it."""

    __slots__ = ()
    process: Process

    def hand_over(self, item: Any) -> None:
        """Take a delivery or a timer to the thread of the node, where it has one."""
        raise NotImplementedError

    def find_handler(self, message_type: type) -> Callable[[Any, Delivery], Any]:
        """Make ready what handles messages of a type from now on."""
        raise NotImplementedError

    def handler_failed(self, error: BaseException, delivery: Delivery) -> None:
        """Tell the asker of an error."""
        raise NotImplementedError

    def peer_lost(self, machine: str, names: frozenset[str]) -> None:
        """Connections to the nodes of a dead process broke."""
        raise NotImplementedError

    def block(self, blocked: bool) -> None:
        """Hold messages back or refuse them from now on, or take them again."""
        raise NotImplementedError

    def follow_clock(self) -> None:
        """Go by the clock of its process as that was set: its wall clock, or its rate."""
        raise NotImplementedError

    def halt(self) -> None:
        """Stop at once."""
        raise NotImplementedError


class Process:
    """Nodes that live and die together and share memory: one broker, one ZooKeeper server."""

    def __init__(self, name: str, lock: Any = None) -> None:
        self.name = name
        self.lock = lock
        self.nodes: dict[str, Resident] = {}
        self.paused = False
        self.silenced_by: int | None = None
        """Seq of the event that killed or paused it last, when the run is traced."""
        self.silence = Silence.OFF
        """Which of the two it was."""
        self.heard_again_us: int | None = None
        """When that ended, by the runtime's clock."""
        self.held: list[Callable[[], object]] = []
        self.clock: Clock = Clock()
        """That of its machine."""


class Letter(Protocol):
    """What a node sends to itself; it keeps that until its turn has come."""

    def arrive(self) -> None:
        """Take its turn: it is no longer held back."""
        ...


class Surroundings(abc.ABC):
    """A runtime as the nodes and the network see it."""

    id: int
    rng: random.Random
    recorder: EventSink | None
    row_buffer: RowBuffer | None
    """Of the recorder, if it has one and events may be written there."""
    owners: dict[int | str, str]
    """Whose ZooKeeper sessions and transactions these are, while the run is recorded."""

    _cause: int | None

    @property
    def cause(self) -> int | None:
        """Sequence number of the event that is being handled, when the run is traced."""
        return self._cause

    @cause.setter
    def cause(self, seq: int | None) -> None:
        self._cause = seq

    @abc.abstractmethod
    def begin_step(self) -> int | None:
        """Begin an act from outside of the cluster; it is the cause of what follows."""

    @abc.abstractmethod
    def state_listener(self, actor: str) -> StateListener | None:
        """Return the listener of an actor's changes of state; None where nobody hears of them."""

    @abc.abstractmethod
    def log_listener(self, actor: str, paths: tuple[str, str, str]) -> LogListener | None:
        """Return the listener of the offsets of an actor's log, where somebody hears of them."""

    @abc.abstractmethod
    def now_us(self) -> int:
        """Microseconds since the runtime started."""

    @abc.abstractmethod
    def now_ms(self) -> int:
        """Milliseconds by the runtime's clock, which began at the Unix epoch: see ``Host``."""

    @abc.abstractmethod
    def wall_ms(self) -> int:
        """Milliseconds since the Unix epoch: see ``Host``."""

    @abc.abstractmethod
    def now_ms_ahead(self, ahead_us: int) -> int:
        """``now_ms`` of a clock that is so far ahead, or behind below 0."""

    @abc.abstractmethod
    def wall_ms_ahead(self, ahead_us: int) -> int:
        """``wall_ms`` of a clock that is so far ahead, or behind below 0."""

    @abc.abstractmethod
    def call_later(
        self, node: Endpoint | None, delay_us: int, callback: Callable[[], object]
    ) -> Timer:
        """Call back after a delay, inside ``node`` unless that is None."""

    @abc.abstractmethod
    def come_later(self, node: Endpoint, delay_us: int, callback: Callable[[], object]) -> Timer:
        """``call_later`` for what comes to a node from elsewhere: no clock of its machine measures
        the delay."""

    @abc.abstractmethod
    def wake_later(self, node: Resident, delay_us: int, callback: Callable[[], object]) -> Timer:
        """``call_later`` for a timer that serves many, each of which calls ``serve`` or
        ``waited``: the firing itself is an event only if none is due."""

    @abc.abstractmethod
    def serve(self, actor: str, name: str, cause: int | None) -> None:
        """An entry of a timer that serves many is due; what is done now follows from ``cause``."""

    @abc.abstractmethod
    def waited(self, actor: str, peers: Sequence[str], cause: int | None, waited_ms: float) -> None:
        """An actor has waited for others in vain, since event ``cause``: because of a crash, a
        pause, a cut, a loss or a slow link, if one of these lasted into the wait."""

    @abc.abstractmethod
    def enqueue(self, delivery: Delivery, delay_us: int) -> None:
        """Bring a delivery to ``network.arrive`` inside its target after a delay."""

    @abc.abstractmethod
    def enqueue_not_before(self, delivery: Delivery, delay_us: int, earliest_us: int) -> int:
        """``enqueue`` after a delay, but not before a time; gives when it will arrive."""

    @abc.abstractmethod
    def next_incarnation(self) -> int:
        """A number that no other node of this runtime has."""

    @abc.abstractmethod
    def create_port(self, node: Any, machine: str, handlers: Any) -> Any:
        """The end of the network at which a node sends and takes messages: a ``Port``."""

    @abc.abstractmethod
    def create_inbox(self, node: Any) -> Any: ...

    @abc.abstractmethod
    def create_future(self) -> Any: ...

    @abc.abstractmethod
    def start_actor_loop(self, node: Any) -> None: ...

    @abc.abstractmethod
    def spawn(self, node_class: type[Any], name: str, process: Process, *args: Any) -> Any:
        """Create and start a node; returns the node itself."""

    @abc.abstractmethod
    def discard(self, node: Any) -> None:
        """Forget a halted node."""

    @abc.abstractmethod
    def report_failure(self, node: Endpoint | None, error: BaseException) -> None:
        """A handler raised what no handler may: remember it and say so."""

    @abc.abstractmethod
    def outsider_failed(self, what: str, function: object, error: Exception) -> None:
        """A user's observer or filter raised."""

    @abc.abstractmethod
    def log(self, name: str, level: str, text: str) -> None:
        """Write a line of a core's log, under the node's name."""

    @abc.abstractmethod
    def note(self, kind: str, actor: str, text: str) -> None:
        """Write a fault or a note into the trace."""

    @abc.abstractmethod
    def report_silence(self, actor: str, peer: str, silent_ms: float, text: str) -> None:
        """An actor gives a silent peer up; what follows is due to what silenced it."""
