"""The runtime as nodes, ports and networks see it.

Runtimes import nodes, ports and networks; these in turn know a runtime by the classes here.
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
    """Destination of the events of a traced run (``fakekafka.tracing``)."""

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
        """Record an event and return its number; ``of`` is an event of the operation that it
        belongs to, unless that is its cause."""
        ...


class Row:
    """The arguments of ``TraceSink.event`` and the name of the message's type.

    A message that is a string is itself the name, and ``message`` is then None.
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
    """One end of a message, by its name."""

    __slots__ = ("name",)

    name: str


class Sent:
    """The sending of a message, as the virtual network records it. In the row of another event than
    ``seq``, the same object stands for the delivery of the message."""

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
        """Number of the sending itself."""
        self.arrival_us: int = arrival_us


class RowBuffer:
    """Rows of a trace. For speed, the virtual network appends messages directly. The next event has
    the number ``first + len(rows)``."""

    def __init__(self, cut: Callable[[], object], last_of_chunk: int) -> None:
        self.first: int = 0
        self.rows: list[Row | Sent] = []
        self.last_of_chunk: int = last_of_chunk
        """Number of the event after which its writer has to call ``cut``."""
        self.cut: Callable[[], object] = cut


class EventSink:
    """A base class for the ``TraceSink`` that a runtime calls. A recorder may have one as its
    ``intake``, which then takes the events in its place."""

    __slots__ = ("row_buffer",)

    def __init__(self, row_buffer: RowBuffer | None = None) -> None:
        self.row_buffer: RowBuffer | None = row_buffer
        """Buffer into which events may be written directly; None if there is none."""

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
        """See ``TraceSink.event``."""
        raise NotImplementedError


class StateObserver(Protocol):
    """An observer of state changes; if it has ``TraceSink.event`` too, it records a whole trace."""

    def state_listener(self, runtime: AbstractRuntime, actor: str) -> StateListener | None:
        """Return the listener for an actor's state changes, which become part of the event that is
        being handled; None to ignore the actor."""
        ...

    def log_listener(
        self, runtime: AbstractRuntime, actor: str, paths: tuple[str, str, str]
    ) -> LogListener | None:
        """Return the listener for the offsets of an actor's log; None to ignore them."""
        ...


@mypyc_attr(allow_interpreted_subclasses=True)
class AbstractNode(Endpoint):
    """A node as its process, its network and its runtime see it."""

    __slots__ = ()
    process: Process

    def hand_over(self, item: Any) -> None:
        """Pass a delivery or a timer to the node's thread, if it has a thread of its own."""
        raise NotImplementedError

    def find_handler(self, message_type: type) -> Callable[[Any, Delivery], Any]:
        """Return the handler for a type of message, and keep it for later messages."""
        raise NotImplementedError

    def handler_failed(self, error: BaseException, delivery: Delivery) -> None:
        """Answer a request with an error."""
        raise NotImplementedError

    def peer_lost(self, machine: str, names: frozenset[str]) -> None:
        """Handle the breaking of the connections to the nodes of a dead process."""
        raise NotImplementedError

    def block(self, blocked: bool) -> None:
        """Start or stop blocking messages, which are held back, or refused once stopped."""
        raise NotImplementedError

    def apply_clock(self) -> None:
        """Adjust to the clock of the process after its wall clock or its rate was set."""
        raise NotImplementedError

    def halt(self) -> None:
        """Stop at once."""
        raise NotImplementedError


class Process:
    """Nodes that live and die together and share memory: one broker, one ZooKeeper server."""

    def __init__(self, name: str, lock: Any = None) -> None:
        self.name = name
        self.lock = lock
        self.nodes: dict[str, AbstractNode] = {}
        self.paused = False
        self.silenced_by: int | None = None
        """Seq of the event that last killed or paused the process, if the run is traced."""
        self.silence = Silence.OFF
        """``OFF`` if that event killed the process, ``PAUSED`` if it paused the process."""
        self.responsive_since_us: int | None = None
        """Runtime's time at which the process started or resumed after that event."""
        self.held: list[Callable[[], object]] = []
        self.clock: Clock = Clock()
        """Clock of the machine that the process runs on."""


class Letter(Protocol):
    """A message that a node sends to itself and keeps until its turn has come."""

    def arrive(self) -> None:
        """Continue after being held back; called when the message is released."""
        ...


class AbstractRuntime(abc.ABC):
    """A runtime as the nodes and the network see it."""

    id: int
    rng: random.Random
    recorder: EventSink | None
    row_buffer: RowBuffer | None
    """Buffer of the recorder into which events may be written directly; None if there is none."""
    owners: dict[int | str, str]
    """Clients by the ids of their sessions, transactions and memberships, in a recorded run."""

    _cause: int | None

    @property
    def cause(self) -> int | None:
        """Sequence number of the event that is being handled, if the run is traced."""
        return self._cause

    @cause.setter
    def cause(self, seq: int | None) -> None:
        self._cause = seq

    @abc.abstractmethod
    def begin_step(self) -> int | None:
        """Return the event that is being handled or, if there is none, record an act from outside
        the cluster, which is then the cause of what follows."""

    @abc.abstractmethod
    def state_listener(self, actor: str) -> StateListener | None:
        """Return the listener for an actor's state changes; None if they are not observed."""

    @abc.abstractmethod
    def log_listener(self, actor: str, paths: tuple[str, str, str]) -> LogListener | None:
        """Return the listener for an actor's log offsets; None if they are not observed."""

    @abc.abstractmethod
    def now_us(self) -> int:
        """Return the microseconds since the runtime started."""

    @abc.abstractmethod
    def now_ms(self) -> int:
        """Return the milliseconds of the runtime's clock since the Unix epoch; see ``Host``."""

    @abc.abstractmethod
    def wall_ms(self) -> int:
        """Return the milliseconds of the wall clock since the Unix epoch; see ``Host``."""

    @abc.abstractmethod
    def now_ms_ahead(self, ahead_us: int) -> int:
        """Return ``now_ms`` of a clock that is ahead of the runtime's; below 0 it is behind."""

    @abc.abstractmethod
    def wall_ms_ahead(self, ahead_us: int) -> int:
        """Return ``wall_ms`` of a clock that is ahead of the runtime's; below 0 it is behind."""

    @abc.abstractmethod
    def call_later(
        self, node: Endpoint | None, delay_us: int, callback: Callable[[], object]
    ) -> Timer:
        """Call back after a delay, inside ``node`` unless that is None."""

    @abc.abstractmethod
    def call_later_by_runtime_clock(
        self, node: Endpoint, delay_us: int, callback: Callable[[], object]
    ) -> Timer:
        """Do as ``call_later`` for an event from outside the node's machine, whose clock therefore
        does not measure the delay."""

    @abc.abstractmethod
    def set_shared_timer(
        self, node: AbstractNode, delay_us: int, callback: Callable[[], object]
    ) -> Timer:
        """Do as ``call_later`` for a timer shared by many entries. Each entry that is due calls
        ``record_due_entry`` or ``record_timeout``; the firing itself is recorded only if no entry
        is due."""

    @abc.abstractmethod
    def record_due_entry(self, actor: str, name: str, cause: int | None) -> None:
        """Record that one of the entries that a timer serves is due; ``cause`` is its cause."""

    @abc.abstractmethod
    def record_timeout(
        self, actor: str, peers: Sequence[str], cause: int | None, waited_ms: float
    ) -> None:
        """Record that an actor has waited for others in vain since event ``cause``. It is
        attributed to a crash, a pause, a cut, a loss or a slow link that lasted into the wait, if
        any."""

    @abc.abstractmethod
    def enqueue(self, delivery: Delivery, delay_us: int) -> None:
        """Call ``network.arrive`` with a delivery after a delay, inside its target."""

    @abc.abstractmethod
    def enqueue_not_before(self, delivery: Delivery, delay_us: int, earliest_us: int) -> int:
        """Do as ``enqueue``, but not before a time; returns the time of arrival."""

    @abc.abstractmethod
    def next_incarnation(self) -> int:
        """Return a number that no other node of this runtime has."""

    @abc.abstractmethod
    def create_port(self, node: Any, machine: str, handlers: Any) -> Any:
        """Create the ``Port`` through which a node sends and receives messages."""

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
        """Keep and log an exception that no handler may raise."""

    @abc.abstractmethod
    def report_user_failure(self, kind: str, function: object, error: Exception) -> None:
        """Handle an exception that a user's observer or filter raised."""

    @abc.abstractmethod
    def log(self, name: str, level: str, text: str) -> None:
        """Write a core's log line under the node's name."""

    @abc.abstractmethod
    def note(self, kind: str, actor: str, text: str) -> None:
        """Write a fault or a note into the trace."""

    @abc.abstractmethod
    def report_silence(self, actor: str, peer: str, silent_ms: float, text: str) -> None:
        """Record that an actor gives up a silent peer, and attribute what follows to the cause of
        the silence."""
