"""The runtime as nodes, ports and networks see it.

The runtimes stand above all of these; here is what those below them may know.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..protocol.host import LogListener, StateListener, Timer
from .clock import Clock
from .delivery import Delivery
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


class Resident(Protocol):
    """A node as its process, its network and its runtime see it."""

    name: str
    machine: str
    process: Process
    blocked: bool
    """While stopped or paused: what arrives is refused or waits."""
    stopped: bool

    @property
    def actor_ref(self) -> Any:
        """Pykka's: takes what is told to a node that has a thread of its own."""
        ...

    def receive(self, delivery: Delivery) -> None:
        """Take one message that has arrived."""
        ...

    def find_handler(self, message_type: type) -> Callable[[Any, Delivery], Any]:
        """Make ready what handles messages of a type from now on."""
        ...

    def handler_failed(self, error: BaseException, delivery: Delivery) -> None:
        """Tell the asker of an error."""
        ...

    def peer_lost(self, machine: str, names: frozenset[str]) -> None:
        """Connections to the nodes of a dead process broke."""
        ...

    def is_waiting_for(self, correlation: int) -> bool:
        """Return whether an answer to this request would still be taken."""
        ...

    def block(self, blocked: bool) -> None:
        """Hold messages back or refuse them from now on, or take them again."""
        ...

    def follow_clock(self) -> None:
        """Go by the clock of its process as that was set: its wall clock, or its rate."""
        ...

    def halt(self) -> None:
        """Stop at once."""
        ...


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


class Carrier(Protocol):
    """A network as the nodes see it."""

    def arrive(self, delivery: Delivery) -> None:
        """Hand a delivery to its target; called inside the target."""
        ...

    def post_to_self(
        self, node: Resident, message: object, letter: Letter
    ) -> tuple[Delivery, bool]:
        """Number and record what a node sends to itself; whether it is held back."""
        ...

    def withdraw(self, delivery: Delivery, why: str) -> None:
        """Record that a message was sent and will not be delivered."""
        ...

    def work(self, machine: str, kind: str, amount: int) -> None:
        """Take the time for something a process does beside sending."""
        ...


class Surroundings(Protocol):
    """A runtime as the nodes and the network see it."""

    id: int
    rng: random.Random
    cause: int | None
    """Sequence number of the event that is being handled, when the run is traced."""

    def begin_step(self) -> int | None:
        """Begin an act from outside of the cluster; it is the cause of what follows."""
        ...

    @property
    def network(self) -> Carrier: ...

    @property
    def recorder(self) -> EventSink | None: ...

    @property
    def row_buffer(self) -> RowBuffer | None:
        """Of the recorder, if it has one and events may be written there."""
        ...

    def state_listener(self, actor: str) -> StateListener | None:
        """Return the listener of an actor's changes of state; None without a recorder."""
        ...

    def log_listener(self, actor: str, paths: tuple[str, str, str]) -> LogListener | None:
        """Return the listener of the offsets of an actor's log; None without a recorder."""
        ...

    def now_us(self) -> int:
        """Microseconds since the runtime started."""
        ...

    def now_ms(self) -> int:
        """Milliseconds by the runtime's clock: see ``Host``."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since the Unix epoch: see ``Host``."""
        ...

    def now_ms_ahead(self, ahead_us: int) -> int:
        """``now_ms`` of a clock that is so far ahead, or behind below 0."""
        ...

    def wall_ms_ahead(self, ahead_us: int) -> int:
        """``wall_ms`` of a clock that is so far ahead, or behind below 0."""
        ...

    def call_later(
        self, node: Resident | None, delay_us: int, callback: Callable[[], object]
    ) -> Timer:
        """Call back after a delay, inside ``node`` unless that is None."""
        ...

    def come_later(self, node: Resident, delay_us: int, callback: Callable[[], object]) -> Timer:
        """``call_later`` for what comes to a node from elsewhere: no clock of its machine measures
        the delay."""
        ...

    def wake_later(self, node: Resident, delay_us: int, callback: Callable[[], object]) -> Timer:
        """``call_later`` for a timer that serves many: each that it serves is an event, itself it
        is one only if nobody is due."""
        ...

    def serve(self, actor: str, name: str, cause: int | None) -> None:
        """Note that what is done now follows from what set an entry of a shared timer."""
        ...

    def waited(self, actor: str, peers: Sequence[str], cause: int | None, waited_ms: float) -> None:
        """An actor has waited for others in vain; what is done now follows from that."""
        ...

    def enqueue(self, delivery: Delivery, delay_us: int) -> None:
        """Bring a delivery to ``network.arrive`` inside its target after a delay."""
        ...

    def enqueue_not_before(self, delivery: Delivery, delay_us: int, earliest_us: int) -> int:
        """``enqueue`` after a delay, but not before a time; gives when it will arrive."""
        ...

    def next_incarnation(self) -> int:
        """A number that no other node of this runtime has."""
        ...

    def create_port(self, node: Any, machine: str, handlers: Any) -> Any:
        """A ``Port`` of the kind that the runtime's network takes."""
        ...

    def create_inbox(self, node: Any) -> Any: ...

    def create_future(self) -> Any: ...

    def start_actor_loop(self, node: Any) -> None: ...

    def spawn(self, node_class: type[Any], name: str, process: Process, *args: Any) -> Any:
        """Create and start a node; returns the node itself."""
        ...

    def discard(self, node: Any) -> None:
        """Forget a halted node."""
        ...

    def report_failure(self, node: Resident | None, error: BaseException) -> None:
        """A handler raised what no handler may."""
        ...

    def outsider_failed(self, what: str, function: object, error: Exception) -> None:
        """A user's observer or filter raised."""
        ...

    def log(self, name: str, level: str, text: str) -> None:
        """Write a line of a core's log, under the node's name."""
        ...

    def note(self, kind: str, actor: str, text: str) -> None:
        """Write a fault or a note into the trace."""
        ...

    owners: dict[int | str, str]
    """Whose ZooKeeper sessions and transactions these are, while the run is recorded."""

    def report_silence(self, actor: str, peer: str, silent_ms: float, text: str) -> None:
        """An actor gives a silent peer up; what follows is due to what silenced it."""
        ...
