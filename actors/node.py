"""The one actor base: a Pykka actor whose inbox, future and loop come from its runtime.

Theory of operation. A node receives *deliveries*: a message, who sent it, and a correlation
number when an answer is expected. The handler is the method ``on_<message_name>``, or what was
registered for the type of message; it may be a plain function or a coroutine. What it returns is
the reply; ``None`` means that the reply comes later through ``reply`` (or that none is due).
``ask`` sends a request and gives a ``Pending``: awaiting it parks the coroutine, the reply resumes
it inside this node. Nothing ever blocks.

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
from .port import Handler, Port
from .surroundings import Process, Resident, Surroundings

T = TypeVar("T")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@functools.cache
def handler_name(message_type: type) -> str:
    """``LeaderAndIsrRequest`` is handled by ``on_leader_and_isr_request``."""
    return "on_" + _CAMEL.sub("_", message_type.__name__).lower()


def _is_coroutine_function(handler: Callable[..., Any]) -> bool:
    """Do as ``inspect.iscoroutinefunction``, at a tenth of its cost for plain methods."""
    code = getattr(getattr(handler, "func", handler), "__code__", None)  # of a partial its function
    if code is None:
        return inspect.iscoroutinefunction(handler)
    return bool(code.co_flags & inspect.CO_COROUTINE)


@mypyc_attr(allow_interpreted_subclasses=True)
class Node(Resident, pykka.Actor):
    """An actor of the cluster, the same on every runtime."""

    handles_one_at_a_time: ClassVar[bool] = False
    """True: a parked coroutine holds further messages back; replies still arrive."""

    def __init__(self, runtime: Surroundings, name: str, process: Process) -> None:
        self.runtime = runtime
        self.name: str = name
        """Its name, in traces and in the network."""
        self.process = process
        self.machine: str = process.name
        self.rng: random.Random = runtime.rng
        # Bound here once: cores ask for the time more often than for anything else.
        self.now_ms: Callable[[], int] = runtime.now_ms
        self.wall_ms: Callable[[], int] = runtime.wall_ms
        self._now_us: Callable[[], int] = runtime.now_us
        self.blocked: bool = False  # True while stopped or paused: deliveries take the slow path
        self.stopped: bool = False
        self.is_paced_elsewhere = self.is_carried_elsewhere = False
        self._has_own_handle = type(self).handle is not Node.handle
        self._handlers: dict[type, Handler] = {}  # each made ready when its first message comes
        self._registered: dict[type, Handler] = {}  # most of these never come to most nodes
        self.port: Port = runtime.create_port(self, process.name, self._handlers)
        if process.clock.shift_ms or process.clock.has_drifted:
            self.follow_clock()
        self.answer: Callable[[Delivery, Any], None] = self.port.answer
        """``reply`` for those who answer thousands of requests a second."""
        self.state_listener: StateListener | None = runtime.state_listener(name)
        self.causes: Causes | None = None
        if runtime.recorder is not None:
            self.causes = NodeCauses(runtime, self)
        self._tasks: dict[Task[Any], None] = {}
        self._busy: Task[Any] | None = None
        self._backlog: deque[Delivery] = deque()
        self._let_in()
        super().__init__()
        # Pykka's random URN would make two equal runs differ.
        self.actor_urn: str = f"urn:fakekafka:{runtime.id}:{name}:{runtime.next_incarnation()}"

    # -- Pykka's seams -------------------------------------------------------------------------

    def _create_actor_inbox(self) -> Any:  # type: ignore[override]
        return self.runtime.create_inbox(self)

    def _create_future(self) -> Any:  # type: ignore[override]
        return self.runtime.create_future()

    def _start_actor_loop(self) -> None:
        self.runtime.start_actor_loop(self)

    # -- surroundings (the ``Host`` of the cores) ----------------------------------------------

    def call_later_ms(self, delay_ms: float, callback: Callable[[], object]) -> Timer:
        """Call back inside this node after a delay; dropped when the node has died."""
        delay_us = self.process.clock.lasts_us(int(delay_ms * 1000))
        return self.runtime.call_later(self, delay_us, callback)

    def follow_clock(self) -> None:
        """Go by the clock of the process from now on, which may differ from the runtime's."""
        runtime, clock = self.runtime, self.process.clock
        self.now_ms, self.wall_ms = runtime.now_ms, runtime.wall_ms
        if clock.has_drifted:
            self.now_ms = lambda: runtime.now_ms_ahead(clock.ahead_us(runtime.now_us()))
        if clock.has_drifted or clock.shift_ms:
            self.wall_ms = lambda: runtime.wall_ms_ahead(
                clock.ahead_us(runtime.now_us()) + clock.shift_ms * 1000
            )
        self.port.follow_clock()

    def send(self, destination: str, message: Any) -> None:
        """Send a message that expects no answer."""
        self.port.send(destination, message)

    def ask(self, destination: str, message: Any, timeout_ms: float = 30000) -> Pending[Any]:
        """Send a request; the outcome is the reply.

        It fails with ``RequestTimeout`` when none came in time, with ``Disconnected`` when the
        peer is not running or dies first, and with what the handler raised.
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

        The same as ``ask`` for those who send thousands of requests a second.
        """
        self.port.ask_then(destination, message, timeout_ms, answered)

    def is_waiting_for(self, correlation: int) -> bool:
        """Return whether an answer to this request of mine would still be taken."""
        return correlation in self.port.requests

    def reply(self, delivery: Delivery, response: Any) -> None:
        """Answer a request; an exception as response is raised at the asker."""
        self.port.answer(delivery, response)

    def own_session(self, session_id: int, client: str) -> None:
        """A client's ZooKeeper session is served here."""
        self.runtime.owners[session_id] = client

    def blame_session(self, session_id: int, timeout_ms: int) -> None:
        """A session expires: what is done now is due to whatever silenced its client."""
        client = self.runtime.owners.get(session_id, "")
        text = f"session {session_id:#x} of {client or 'an unknown client'} expires"
        self.runtime.report_silence(self.name, client, timeout_ms, text)

    def log_listener(self, paths: tuple[str, str, str]) -> LogListener | None:
        """Listener of the offsets of a log."""
        return self.runtime.log_listener(self.name, paths)

    def report_silence(self, peer: str, silent_ms: float, text: str, member_id: str = "") -> None:
        """Note that what is done now is due to whatever silenced a peer."""
        owners = self.runtime.owners
        client = owners.get(member_id) or owners.get(peer, peer)
        self.runtime.report_silence(self.name, client, silent_ms, text)

    def log(self, level: str, text: str) -> None:
        """Write a line of the log under this node's name."""
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
        """Pykka's entry: the threaded runtime tells deliveries and timers to the inbox."""
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
        """Take one delivery: a reply resumes its asker, anything else finds its handler."""
        if delivery.is_reply:
            waiting = self.port.requests.pop(delivery.correlation, None)
            if waiting is not None:
                waiting[0](delivery.message)
        else:
            self.handle(delivery)

    def block(self, blocked: bool) -> None:
        """Hold deliveries back or refuse them from now on, or take them again."""
        self.blocked = blocked
        self._let_in()

    def _let_in(self) -> None:
        """Tell the network in which way messages may come."""
        port = self.port
        port.is_blocked = self.blocked
        port.takes_requests = not (self.blocked or self._busy is not None or self._has_own_handle)

    def register_handlers(self, handlers: Mapping[type, Handler]) -> None:
        """Have messages of these types handled elsewhere than by methods of this node."""
        self._registered.update(handlers)
        for message_type in self._handlers.keys() & handlers.keys():
            del self._handlers[message_type]

    def find_handler(self, message_type: type) -> Handler:
        """Make ready what handles messages of a type from now on."""
        handler: Any = self._registered.get(message_type)
        if handler is None:
            handler = getattr(self, handler_name(message_type), self.has_no_handler)
        if _is_coroutine_function(handler):  # its outcome is the reply
            handler = functools.partial(self.run_coroutine, handler)
        found: Handler = handler
        self._handlers[message_type] = found
        return found

    def handle(self, delivery: Delivery) -> None:
        """Handle a request or a one-way message; replies go to the askers in ``port.requests``."""
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
        """Handle a message by a coroutine."""
        self.reply_with(handler(message, delivery), delivery)

    def reply_with(self, coroutine: Coroutine[Any, Any, Any], delivery: Delivery) -> None:
        """Answer a request with the outcome of a coroutine; None: the reply comes otherwise."""
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
        """Hold requests back while this runs; with None handle them until something parks."""
        self._busy = task
        self._let_in()
        while self._backlog and self._busy is None and not self.stopped:
            self.handle(self._backlog.popleft())

    def handler_failed(self, error: BaseException, delivery: Delivery) -> None:
        """Send the error to the asker; report it, too, unless handlers may raise it."""
        if delivery.correlation:
            self.reply(delivery, error)
        if not isinstance(error, (KafkaError, UsageError, RequestTimeout, Disconnected)):
            self.runtime.report_failure(self, error)

    def has_no_handler(self, _message: Any, delivery: Delivery) -> None:
        """A message without a handler: a bug of the sender, reported, never ignored."""
        message_type: type = type(delivery.message)
        error = UsageError(
            f"{self.name} ({type(self).__name__}) has no handler "
            f"{handler_name(message_type)} for a message from {delivery.sender.name}"
        )
        self.reply(delivery, error)
        self.runtime.report_failure(self, error)

    # -- life ----------------------------------------------------------------------------------

    def peer_lost(self, machine: str, names: frozenset[str]) -> None:
        """Connections to a dead process broke: requests waiting for it fail at once."""
        self.port.lose(names)

    def halt(self) -> None:
        """Stop at once, as a killed process does: nothing more is handled or sent."""
        if self.stopped:
            return
        self.stopped = self.port.is_stopped = True
        self.block(True)
        self.on_halt()
        self.port.forget()
        self._backlog.clear()
        tasks, self._tasks = self._tasks, {}
        for task in tasks:
            task.cancel()
        self._busy = None
        self.runtime.discard(self)

    def on_halt(self) -> None:
        """Drop what the node holds; must not send."""
