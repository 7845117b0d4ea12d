"""The interface between a core and its surroundings: time, timers, randomness, sending.

Cores never read a clock, start a thread or open a socket; an actor gives them a ``Host`` instead.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache
from types import BuiltinMethodType
from typing import Any, Protocol

from .awaiting import Signal


class Timer(Protocol):
    """A scheduled call."""

    def cancel(self) -> None: ...


StateListener = Callable[[str, Any, Any], object]
"""Called with each change of state: its path below the actor (``orders-0/isr``), the old value and
the new value."""


class LogOffsets:
    """The offsets of a log, as the recorder of a run sees them.

    log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset at all times.
    """

    __slots__ = ("high_watermark", "log_end_offset", "log_start_offset")

    log_start_offset: int
    high_watermark: int
    log_end_offset: int


LogListener = Callable[[LogOffsets], object]
"""Called with a log whose offsets have changed, or may have changed."""


class Causes(Protocol):
    """Records the causes of events while a run is recorded. Events are referred to by number.

    By default, the cause of a timer's event is the event that set the timer. For a timer shared by
    many entries, this would be the event that set it first. Each entry therefore remembers the
    event that added the entry, and reports that event when due.
    """

    def current(self) -> int | None:
        """Return the event being handled; None while a call comes from outside the run."""
        ...

    def set_shared_timer_ms(self, delay_ms: float, callback: Callable[[], object]) -> Timer:
        """Do as ``Host.call_later_ms``, for a timer shared by many entries.

        Each entry that is due is recorded as an event; the timer itself only if no entry is due.
        """
        ...

    def record_due_entry(self, name: str, cause: int | None) -> None:
        """Record that an entry of a shared timer is due, with the event that added it as cause."""
        ...

    def record_timeout(self, peers: Sequence[str], cause: int | None, waited_ms: float) -> None:
        """Record that the wait for some actors, begun at event ``cause``, has timed out.

        The cause of what follows is the event that silenced one of them or, if there is none, the
        event ``cause``.
        """
        ...


class Host(Protocol):
    """The surroundings of a core, provided by one actor of a runtime."""

    name: str
    """Name of the actor in the network, such as ``broker-1``."""
    rng: random.Random
    """Seeded generator of the runtime."""
    state_listener: StateListener | None
    """Called with each change of state; None while no run is recorded."""
    causes: Causes | None
    """Recorder of causes; None while no run is recorded."""

    def now_ms(self) -> int:
        """Return the time of the runtime's clock in milliseconds.

        It is meant for spans of time, such as timeouts, as it omits time in which the process was
        blocked.
        """
        ...

    def wall_ms(self) -> int:
        """Return the milliseconds since the Unix epoch.

        They are meant for dates that others read or have written, as in records, znodes and tokens.
        """
        ...

    def call_later_ms(self, delay_ms: float, callback: Callable[[], object]) -> Timer:
        """Call ``callback`` inside this actor after a delay, unless the actor has died."""
        ...

    def send(self, destination: str, message: Any) -> None:
        """Send a message to another actor through the network; no answer is expected."""
        ...

    def report_silence(self, peer: str, silent_ms: float, text: str, member_id: str = "") -> None:
        """Record that what happens now follows from a peer's silence of ``silent_ms`` milliseconds,
        and hence from what silenced the peer. Peers may share a name, so a member of a group is
        also identified by its id. No effect unless a run is recorded."""
        ...


def name_as(timer: Any, task: Callable[..., object]) -> None:
    """Have recordings show a timer under the name of its task."""
    name = qualified_name(task)
    if name is not None:
        timer.__qualname__ = name


def qualified_name(function: Any) -> str | None:
    """Return a function's name with the class that defines it; None if it has no name.

    A compiled method knows only the class of its object, so the defining class is looked up.
    """
    if type(function) is BuiltinMethodType or not hasattr(function, "__code__"):
        owner: Any = type(getattr(function, "__self__", None))
        name = _name_of_compiled(owner, getattr(function, "__name__", ""))
        if name is not None:
            return name
    return getattr(function, "__qualname__", None)


@cache
def _name_of_compiled(owner: type, method: str) -> str | None:
    for cls in owner.__mro__:
        if method in vars(cls):
            return f"{cls.__qualname__}.{method}"
    return None


async def sleep(host: Host, delay_ms: float) -> None:
    """Suspend a coroutine of this actor for ``delay_ms`` milliseconds."""
    signal = Signal()
    host.call_later_ms(delay_ms, signal.notify)
    await signal.wait()


class ReplicaHost(Host, Protocol):
    """The surroundings of a broker's partitions."""

    def log_listener(self, paths: tuple[str, str, str]) -> LogListener | None:
        """Return the listener for a log's offsets; None if ``state_listener`` is None.

        ``paths`` are the paths that ``state_listener`` would get for the log end offset, the high
        watermark and the log start offset. Offsets change often, so this listener is cheaper.
        """
        ...


class SessionHost(Host, Protocol):
    """The surroundings of a ZooKeeper server."""

    def record_session_owner(self, session_id: int, client: str) -> None:
        """Record that this server serves a client's ZooKeeper session.

        No effect unless a run is recorded.
        """
        ...

    def record_session_expiry(self, session_id: int, timeout_ms: int) -> None:
        """Record that a session expires, because of what silenced its client.

        No effect unless a run is recorded.
        """
        ...
