"""The place a core runs in: time, timers, randomness, sending.

Cores never read a clock, start a thread or open a socket; an actor hands them a ``Host``.
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
"""Hears of a change of state: its path below the actor (``orders-0/isr``), old value, new value."""


class LogOffsets:
    """A log as whoever records the run sees it."""

    __slots__ = ("high_watermark", "log_end_offset", "log_start_offset")

    log_start_offset: int
    """log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset, always."""
    high_watermark: int
    log_end_offset: int


LogListener = Callable[[LogOffsets], object]
"""Hears that the offsets of a log have moved, or may have."""


class Causes(Protocol):
    """Record of why something is done, while a run is recorded. Events have numbers.

    A timer of its own follows from what set it. One that serves many entries would have all of
    them follow from what set it first: each entry keeps what set it, and says so when it is due.
    """

    def current(self) -> int | None:
        """The event that is being handled; None while something acts from outside."""
        ...

    def wake_later_ms(self, delay_ms: float, callback: Callable[[], object]) -> Timer:
        """``Host.call_later_ms`` for a timer that serves many entries: each of them that is due is
        an event, the timer itself only if none is."""
        ...

    def serve(self, name: str, cause: int | None) -> None:
        """An entry is due. What is done now follows from the event that set it, ``cause``."""
        ...

    def waited(self, peers: Sequence[str], cause: int | None, waited_ms: float) -> None:
        """It was waited for these actors in vain, since event ``cause``. What is done now follows
        from what silenced one of them or, if nothing did, from that event."""
        ...


class Host(Protocol):
    """The surroundings of a core: one actor of one runtime."""

    name: str
    """Name of the actor in the network, such as ``broker-1``."""
    rng: random.Random
    """Seeded generator of the runtime."""
    state_listener: StateListener | None
    """None while no run is recorded; a core asks before it tells."""
    causes: Causes | None
    """None while no run is recorded."""

    def now_ms(self) -> int:
        """Milliseconds by the clock of the runtime, which leaves out what the process missed: for
        spans of time, such as sessions and timers."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since the Unix epoch: for dates that others read or have written, such as
        those of records, znodes and tokens."""
        ...

    def call_later_ms(self, delay_ms: float, callback: Callable[[], object]) -> Timer:
        """Call back inside this actor after a delay; dropped when the actor has died."""
        ...

    def send(self, destination: str, message: Any) -> None:
        """Send a message to another actor through the network; no answer is expected."""
        ...

    def report_silence(self, peer: str, silent_ms: float, text: str, member_id: str = "") -> None:
        """Note that what is done now follows from a peer's silence of this many ms, and so from
        what silenced it; told while a run is recorded. Several peers may have one name, so a
        member of a group is known by its id, too."""
        ...


def name_as(timer: Any, task: Callable[..., object]) -> None:
    """Have whoever records the run call a timer by the task that it is for."""
    name = qualified_name(task)
    if name is not None:
        timer.__qualname__ = name


def qualified_name(function: Any) -> str | None:
    """The name of a function with that of the class that has it; None if it has no name.

    A method that is compiled names the class of its object instead, which may inherit it.
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
    """Park a coroutine of this actor for a while."""
    signal = Signal()
    host.call_later_ms(delay_ms, signal.notify)
    await signal.wait()


class ReplicaHost(Host, Protocol):
    """The surroundings of a broker's partitions."""

    def log_listener(self, paths: tuple[str, str, str]) -> LogListener | None:
        """Listener of a log's offsets, each of which has a path as ``state_listener`` takes it:
        log end offset, high watermark, log start offset. They move all the time, so that this one
        is told in fewer steps. None where ``state_listener`` is."""
        ...


class SessionHost(Host, Protocol):
    """The surroundings of a ZooKeeper server."""

    def own_session(self, session_id: int, client: str) -> None:
        """A client's ZooKeeper session is served here; told while a run is recorded."""
        ...

    def blame_session(self, session_id: int, timeout_ms: int) -> None:
        """A session expires, and what is done now is due to what silenced its client; told while a
        run is recorded."""
        ...
