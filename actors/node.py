"""The base of all actors: a Pykka actor whose inbox, future and loop come from its runtime.

Theory of operation. A node receives *deliveries*: a message, its sender, and a correlation
number if an answer is expected. The handler is the method ``on_<message_name>``, or the function
registered for the type of message; it may be a plain function or a coroutine. Its result is
the reply; ``None`` means that the reply comes later through ``reply`` (or that none is due).
``ask`` sends a request and returns a ``Pending``: awaiting it parks the coroutine, and the reply
resumes it inside this node. Nothing ever blocks.

Nodes of one *process* (a broker, its controller, its fetchers) share memory as the threads of one
JVM do; on the threaded runtime a lock per process keeps their handlers apart.
"""

from __future__ import annotations

import functools
import inspect
import random
import re
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, ClassVar, TypeVar

import pykka

from ..protocol.awaiting import Disconnected, Pending, RequestTimeout, Task
from ..protocol.declaring.native import mypyc_attr
from ..protocol.errors import KafkaError, UsageError
from ..protocol.host import Causes, LogListener, StateListener, Timer
from .causes import NodeCauses
from .delivery import Delivery
from .interfaces import AbstractNode, AbstractRuntime, Process
from .port import Handler, Port

T = TypeVar("T")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@functools.cache
def handler_name(message_type: type) -> str:
    """Return the handler's name: ``on_leader_and_isr_request`` for ``LeaderAndIsrRequest``."""
    return "on_" + _CAMEL.sub("_", message_type.__name__).lower()


def _is_coroutine_function(handler: Callable[..., Any]) -> bool:
    """Do what ``inspect.iscoroutinefunction`` does, at a tenth of its cost for plain methods."""
    code = getattr(getattr(handler, "func", handler), "__code__", None)  # looks into a partial
    if code is None:
        return inspect.iscoroutinefunction(handler)
    return bool(code.co_flags & inspect.CO_COROUTINE)


@mypyc_attr(allow_interpreted_subclasses=True)
class Node(AbstractNode, pykka.Actor):
    """An actor of the cluster, the same on every runtime."""

    handles_one_at_a_time: ClassVar[bool] = False
    """True if a parked coroutine holds back further messages; replies still arrive."""

    def __init__(self, runtime: AbstractRuntime, name: str, process: Process) -> None:
        self.runtime = runtime
        self.name: str = name
        """Name of the node in traces and in the network."""
        self.process = process
        self.machine: str = process.name
        self.rng: random.Random = runtime.rng
        # Bound once, as cores call these more often than anything else.
        self.now_ms: Callable[[], int] = runtime.now_ms
        self.wall_ms: Callable[[], int] = runtime.wall_ms
        self._now_us: Callable[[], int] = runtime.now_us
        self.blocked: bool = False  # True while stopped or paused: deliveries take the slow path
        self.stopped: bool = False
        self.has_byte_delays = self.has_byte_faults = False
        self._has_own_handle = type(self).handle is not Node.handle
        self._handlers: dict[type, Handler] = {}  # filled at the first message of each type
        self._registered: dict[type, Handler] = {}  # not prepared, as few nodes need many of them
        self.port: Port = runtime.create_port(self, process.name, self._handlers)
        if process.clock.shift_ms or process.clock.has_drifted:
            self.apply_clock()
        self.answer: Callable[[Delivery, Any], None] = self.port.answer
        """``reply`` with one call less, for answering thousands of requests a second."""
        self.state_listener: StateListener | None = runtime.state_listener(name)
        self.causes: Causes | None = None
        if runtime.recorder is not None:
            self.causes = NodeCauses(runtime, self)
        self._tasks: dict[Task[Any], None] = {}
        self._busy: Task[Any] | None = None
        self._backlog: deque[Delivery] = deque()
        self._update_port_flags()
        super().__init__()
        # Pykka's random URN would make two equal runs differ.
        self.actor_urn: str = f"urn:fakekafka:{runtime.id}:{name}:{runtime.next_incarnation()}"

    # -- Pykka's hooks -------------------------------------------------------------------------

    def _create_actor_inbox(self) -> Any:  # type: ignore[override]
        return self.runtime.create_inbox(self)

    def _create_future(self) -> Any:  # type: ignore[override]
        return self.runtime.create_future()

    def _start_actor_loop(self) -> None:
        self.runtime.start_actor_loop(self)

    # -- surroundings (the ``Host`` of the cores) ----------------------------------------------

    def call_later_ms(self, delay_ms: float, callback: Callable[[], object]) -> Timer:
        """Call back inside this node after a delay, unless the node has died by then."""
        delay_us = self.process.clock.to_runtime_us(int(delay_ms * 1000))
        return self.runtime.call_later(self, delay_us, callback)

    def apply_clock(self) -> None:
        """Read the time from the clock of the process, which may differ from the runtime's."""
        runtime, clock = self.runtime, self.process.clock
        self.now_ms, self.wall_ms = runtime.now_ms, runtime.wall_ms
        if clock.has_drifted:
            self.now_ms = lambda: runtime.now_ms_ahead(clock.ahead_us(runtime.now_us()))
        if clock.has_drifted or clock.shift_ms:
            self.wall_ms = lambda: runtime.wall_ms_ahead(
                clock.ahead_us(runtime.now_us()) + clock.shift_ms * 1000
            )
        self.port.rescale_timeouts()

    def send(self, destination: str, message: Any) -> None:
        """Send a message that expects no answer."""
        self.port.send(destination, message)

    def ask(self, destination: str, message: Any, timeout_ms: float = 30000) -> Pending[Any]:
        """Send a request; the result of the ``Pending`` is the reply.

        It fails with ``RequestTimeout`` if no reply came in time, with ``Disconnected`` if the
        peer is not running or dies first, and with any exception that the handler raised.
        """
        pending: Pending[Any] = Pending()
        self.ask_then(destination, message, timeout_ms, pending.settle)
        return pending

    def ask_then(
        self,
        destination: str,
        message: Any,
        timeout_ms: float,
        answered: Callable[[Any], object],
    ) -> None:
        """Send a request; ``answered`` is called once with the reply or with the exception.

        A cheaper ``ask``, for sending thousands of requests a second.
        """
        self.port.ask_then(destination, message, timeout_ms, answered)

    def is_waiting_for(self, correlation: int) -> bool:
        """Return whether this node's request is still open, so that it would accept an answer."""
        return correlation in self.port.requests

    def reply(self, delivery: Delivery, response: Any) -> None:
        """Answer a request; an exception as the response is raised at the requester."""
        self.port.answer(delivery, response)

    def record_session_owner(self, session_id: int, client: str) -> None:
        """Note that this server serves a client's ZooKeeper session."""
        self.runtime.owners[session_id] = client

    def record_session_expiry(self, session_id: int, timeout_ms: int) -> None:
        """Attribute the expiry of a session, and what follows, to what silenced its client."""
        client = self.runtime.owners.get(session_id, "")
        text = f"session {session_id:#x} of {client or 'an unknown client'} expires"
        self.runtime.report_silence(self.name, client, timeout_ms, text)

    def log_listener(self, paths: tuple[str, str, str]) -> LogListener | None:
        """Return the listener for the offsets of a log; None if the run is not recorded."""
        return self.runtime.log_listener(self.name, paths)

    def report_silence(self, peer: str, silent_ms: float, text: str, member_id: str = "") -> None:
        """Attribute what follows to what silenced a peer."""
        owners = self.runtime.owners
        client = owners.get(member_id) or owners.get(peer, peer)
        self.runtime.report_silence(self.name, client, silent_ms, text)

    def log(self, level: str, text: str) -> None:
        """Write a log line under this node's name."""
        self.runtime.log(self.name, level, text)

    def start_task(self, coroutine: Coroutine[Any, Any, T]) -> Task[T]:
        """Run a coroutine in the background of this node; failures are reported."""
        task = Task(coroutine)
        if not task.done:
            self._tasks[task] = None
        task.add_done_callback(self._task_done)
        return task

    def _task_done(self, task: Pending[Any]) -> None:
        self._tasks.pop(task, None)  # type: ignore[call-overload]
        error = task.exception
        if error is not None and not self.stopped:
            self.runtime.report_failure(self, error)

    # -- receiving -----------------------------------------------------------------------------

    def hand_over(self, item: Any) -> None:
        """Put a delivery or a timer into the inbox."""
        self.actor_ref.tell(item)

    def on_receive(self, message: Any) -> None:
        """Handle an item of Pykka's inbox, into which the threaded runtime puts its items."""
        lock = self.process.lock
        if lock is None:
            self._receive_any(message)
        else:
            with lock:
                self._receive_any(message)

    def _receive_any(self, message: Any) -> None:
        if type(message) is Delivery:
            try:
                self.port.network.arrive(message)
            except Exception as error:  # Pykka would end the actor
                self.runtime.report_failure(self, error)
        elif not self.stopped:
            message.fire()

    def receive(self, delivery: Delivery) -> None:
        """Take a delivery: a reply resumes its requester, anything else goes to its handler."""
        if delivery.is_reply:
            waiting = self.port.requests.pop(delivery.correlation, None)
            if waiting is not None:
                waiting[0](delivery.message)
        else:
            self.handle(delivery)

    def block(self, blocked: bool) -> None:
        """Start or stop blocking deliveries, which are held back, or refused once stopped."""
        self.blocked = blocked
        self._update_port_flags()

    def _update_port_flags(self) -> None:
        """Update the flags of the port that say which messages the node accepts now."""
        port = self.port
        port.is_blocked = self.blocked
        port.accepts_requests = not (self.blocked or self._busy is not None or self._has_own_handle)

    def register_handlers(self, handlers: Mapping[type, Handler]) -> None:
        """Register handlers for message types, in place of methods of this node."""
        self._registered.update(handlers)
        for message_type in self._handlers.keys() & handlers.keys():
            del self._handlers[message_type]

    def find_handler(self, message_type: type) -> Handler:
        """Return the handler for a type of message, and keep it for later messages."""
        handler: Any = self._registered.get(message_type)
        if handler is None:
            handler = getattr(self, handler_name(message_type), self.report_missing_handler)
        if _is_coroutine_function(handler):  # its outcome is the reply
            handler = functools.partial(self.run_coroutine, handler)
        found: Handler = handler
        self._handlers[message_type] = found
        return found

    def handle(self, delivery: Delivery) -> None:
        """Handle a request or a one-way message; replies do not come here."""
        if self._busy is not None:
            self._backlog.append(delivery)
            return
        message = delivery.message
        try:
            handler = self._handlers.get(type(message)) or self.find_handler(type(message))
            response = handler(message, delivery)
        except Exception as error:
            self.handler_failed(error, delivery)
            return
        if response is not None:
            self.reply(delivery, response)

    def run_coroutine(
        self,
        handler: Callable[[Any, Delivery], Coroutine[Any, Any, Any]],
        message: Any,
        delivery: Delivery,
    ) -> None:
        """Handle a message with a coroutine."""
        self.reply_with(handler(message, delivery), delivery)

    def reply_with(self, coroutine: Coroutine[Any, Any, Any], delivery: Delivery) -> None:
        """Answer a request with the result of a coroutine, unless the result is None."""
        task: Task[Any] = Task(coroutine)
        if task.done:
            self._handler_done(task, delivery)
            return
        self._tasks[task] = None
        if self.handles_one_at_a_time:
            self.hold_back(task)
        task.add_done_callback(lambda done: self._handler_done(done, delivery))

    def _handler_done(self, task: Pending[Any], delivery: Delivery) -> None:
        self._tasks.pop(task, None)  # type: ignore[call-overload]
        if self.stopped:
            return
        error = task.exception
        if error is not None:
            self.handler_failed(error, delivery)
        else:
            response = task.result()
            if response is not None:
                self.reply(delivery, response)
        if self._busy is task:
            self.hold_back(None)

    def hold_back(self, task: Task[Any] | None) -> None:
        """Hold back requests while a task runs; with None, handle them until one of them parks."""
        self._busy = task
        self._update_port_flags()
        while self._backlog and self._busy is None and not self.stopped:
            self.handle(self._backlog.popleft())

    def handler_failed(self, error: BaseException, delivery: Delivery) -> None:
        """Send an error to the requester; also report it unless handlers may raise it."""
        if delivery.correlation:
            self.reply(delivery, error)
        if not isinstance(error, (KafkaError, UsageError, RequestTimeout, Disconnected)):
            self.runtime.report_failure(self, error)

    def report_missing_handler(self, _message: Any, delivery: Delivery) -> None:
        """Report a message that has no handler, which is a bug of its sender."""
        message_type: type = type(delivery.message)
        error = UsageError(
            f"{self.name} ({type(self).__name__}) has no handler "
            f"{handler_name(message_type)} for a message from {delivery.sender.name}"
        )
        self.reply(delivery, error)
        self.runtime.report_failure(self, error)

    # -- life ----------------------------------------------------------------------------------

    def peer_lost(self, machine: str, names: frozenset[str]) -> None:
        """Fail all open requests to a dead process, as the connections to it broke."""
        self.port.fail_requests_to(names)

    def halt(self) -> None:
        """Stop at once, as in a killed process: nothing more is handled or sent."""
        if self.stopped:
            return
        self.stopped = self.port.is_stopped = True
        self.block(True)
        self.on_halt()
        self.port.drop_requests()
        self._backlog.clear()
        tasks, self._tasks = self._tasks, {}
        for task in tasks:
            task.cancel()
        self._busy = None
        self.runtime.discard(self)

    def on_halt(self) -> None:
        """Release what the node holds, without sending anything."""
