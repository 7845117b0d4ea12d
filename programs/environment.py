"""Time and randomness as a program sees them, only while one of its callbacks runs.

Clocks, random sources and sockets are replaced while events run, and restored afterwards. Each
replacement checks its caller: other threads, and code that belongs to no program, get the original.
time-machine replaces the wall clock. Like ``c_functions``, it also affects names that a module
imported earlier.
"""

from __future__ import annotations

import _socket
import asyncio
import functools
import gc
import os
import random
import socket
import ssl
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from ..protocol.errors import UsageError
from .c_clocks import CClocks
from .c_functions import CFunction
from .errors import refuse
from .loop import generator_hooks
from .running import RunningProgram, RunningState, running_program
from .tasks import ordered_set
from .transport import SimulatedSocket
from .watchdog import watchdog

_TURNS_BETWEEN_COLLECTIONS = 50_000
_programs_lock = threading.RLock()
"""Held while programs run, because clocks and random sources belong to the whole process."""


# -- replacements of functions ---------------------------------------------------------------------


def _monotonic_ns(program: RunningProgram) -> int:
    return program.now_us() * 1000 + int(RunningState.slept_s * 1e9)


def _wall_ns(program: RunningProgram) -> int:
    return program.wall_us() * 1000 + int(RunningState.slept_s * 1e9)


def _clock_value(now_ns: int, in_ns: bool) -> float:
    return now_ns if in_ns else now_ns / 1_000_000_000


def _clock(real: Callable[[], Any], *, in_ns: bool = False) -> Callable[[], Any]:
    """Return a replacement for a monotonic clock."""

    def clock() -> Any:
        program = running_program()
        if program is None:
            return real()
        return _clock_value(_monotonic_ns(program), in_ns)

    return clock


def _numbered_clocks(real: Callable[[int], Any], *, in_ns: bool = False) -> Callable[[int], Any]:
    """Return a replacement for ``clock_gettime`` and the like, which take the id of a clock."""

    def clock(number: int) -> Any:
        program = running_program()
        if program is None:
            return real(number)
        is_wall = number == time.CLOCK_REALTIME
        return _clock_value(_wall_ns(program) if is_wall else _monotonic_ns(program), in_ns)

    return clock


def _sleep(real: Callable[[float], None]) -> Callable[[float], None]:
    def sleep(seconds: float) -> None:
        program = running_program()
        if program is None:
            real(seconds)
        elif not RunningState.is_in_executor:
            refuse(
                program.name,
                f"called time.sleep({seconds:g}), a blocking sleep",
                "use `await asyncio.sleep(...)`, or `asyncio.to_thread` for a function that sleeps",
            )
        else:
            RunningState.slept_s += seconds

    return sleep


def _random_bytes(real: Callable[..., bytes]) -> Callable[..., bytes]:
    def urandom(size: int, *flags: Any, **options: Any) -> bytes:
        program = running_program()
        if program is None:
            return real(size, *flags, **options)
        return program.rng.randbytes(size)

    return urandom


def _getaddrinfo(real: Callable[..., Any]) -> Callable[..., Any]:
    def getaddrinfo(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        program = running_program()
        if program is None:
            return real(host, port, *args, **options)
        return [
            (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address)
            for address in program.loop.addresses(host, port)
        ]

    return getaddrinfo


def _gethostname(real: Callable[[], str]) -> Callable[[], str]:
    def gethostname() -> str:
        program = running_program()
        return real() if program is None else program.name

    return gethostname


_C_FUNCTIONS: tuple[tuple[Any, str, Callable[[Any], Callable[..., Any]]], ...] = (
    (time, "monotonic", _clock),
    (time, "monotonic_ns", partial(_clock, in_ns=True)),
    (time, "perf_counter", _clock),
    (time, "perf_counter_ns", partial(_clock, in_ns=True)),
    (time, "process_time", _clock),
    (time, "process_time_ns", partial(_clock, in_ns=True)),
    (time, "thread_time", _clock),
    (time, "thread_time_ns", partial(_clock, in_ns=True)),
    (time, "clock_gettime", _numbered_clocks),
    (time, "clock_gettime_ns", partial(_numbered_clocks, in_ns=True)),
    (time, "sleep", _sleep),
    (os, "urandom", _random_bytes),
    (os, "getrandom", _random_bytes),
    (ssl, "RAND_bytes", _random_bytes),
    (socket, "gethostname", _gethostname),
    (_socket, "getaddrinfo", _getaddrinfo),
)
"""C functions: module, name, and the factory of the replacement; a system may lack some."""


@functools.cache
def _c_functions() -> list[tuple[CFunction, Callable[..., Any]]]:
    """Return the C functions that exist on this system, each with its replacement."""
    existing = [
        (CFunction(getattr(module, name)), make)
        for module, name, make in _C_FUNCTIONS
        if hasattr(module, name)
    ]
    return [(function, make(function.real)) for function, make in existing]


_real_getnode = uuid.getnode
_real_all_tasks = asyncio.all_tasks


def _new_socket(cls: Any, *args: Any, **options: Any) -> Any:
    """Create a socket, for a program a simulated one."""
    program = running_program()
    if program is None:
        return cls.__mro__[cls.__mro__.index(socket.socket) + 1].__new__(cls)
    family = options.get("family", args[0] if args else -1)
    kind = options.get("type", args[1] if len(args) > 1 else -1)
    is_tcp = family in (-1, socket.AF_INET, socket.AF_INET6) and kind in (-1, socket.SOCK_STREAM)
    if not is_tcp or options.get("fileno") is not None:
        refuse(
            program.name,
            "makes a real socket",
            "use asyncio.open_connection, asyncio.start_server or loop.create_connection",
        )
    return SimulatedSocket(program.name)


def _getnode() -> int:
    program = running_program()
    return _real_getnode() if program is None else program.node_number


def _all_tasks(loop: asyncio.AbstractEventLoop | None = None) -> set[asyncio.Task[Any]]:
    tasks = _real_all_tasks(loop)
    return tasks if running_program() is None else ordered_set(tasks)


def _set(items: Iterable[Any] = ()) -> Any:
    """Return a set as asyncio's task functions create it, for a program one that keeps the order.

    ``asyncio.as_completed`` is passed coroutines, whose hash is their address.
    """
    each = set(items) if running_program() is None else dict.fromkeys(items)
    return each or set()


_FUNCTIONS: tuple[tuple[dict[str, Any], str, Any], ...] = (
    (asyncio.tasks.__dict__, "set", _set),
    (uuid.__dict__, "getnode", _getnode),
    (asyncio.__dict__, "all_tasks", _all_tasks),
    (asyncio.tasks.__dict__, "all_tasks", _all_tasks),
)
"""Python functions that programs look up in their modules: module, name, replacement."""


# -- replacements of methods -----------------------------------------------------------------------


def _refusing(real: Any, what: str, instead: str) -> Any:
    """Return a method that raises ``NotSimulated`` if a program calls it."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        program = running_program()
        if program is not None:
            refuse(program.name, what, instead)
        return real(self, *args, **options)

    return method


def _seed(real: Any) -> Any:
    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        program = running_program()
        if a is None and program is not None:
            a = program.rng.getrandbits(128)
        real(self, a, version)

    return seed


_METHODS: tuple[tuple[type[Any], str, Callable[[Any], Any]], ...] = (
    (
        threading.Thread,
        "start",
        lambda real: _refusing(
            real,
            "starts a thread",
            "use `asyncio.to_thread`, which runs a function at once, or test it on a live Cluster",
        ),
    ),
    (
        threading.Condition,
        "wait",
        lambda real: _refusing(
            real,
            "waits for another thread",
            "the function of an executor runs at once and alone; let it return, and await",
        ),
    ),
    (
        subprocess.Popen,
        "__init__",
        lambda real: _refusing(
            real, "starts another process", "replace it in the test, or use a live Cluster"
        ),
    ),
    (random.Random, "seed", _seed),
)
"""Methods that are replaced while events run: class, name, factory of the replacement."""


class SimulatedEnvironment:
    """Clocks and random sources of the programs of one simulation."""

    def __init__(self, seed: int) -> None:
        try:
            import time_machine
        except ImportError:
            raise UsageError(
                'programs need the package time-machine: pip install "fakekafka[programs]"'
            ) from None
        self._wall_clock = time_machine.travel(0.0, tick=False)
        self._real_time_ns: Callable[[], int] = time_machine.escape_hatch.time.time_ns
        self._random_state = random.Random(f"chance of programs, {seed}").getstate()
        self._turns = 0
        self._is_running = False
        self._c_clocks = CClocks()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Replace what programs see, and switch the garbage collector off, while events run."""
        if self._is_running:
            yield
            return
        if (program := running_program()) is not None:
            raise UsageError(
                f"{program.name} runs another simulation, which has programs of its own; "
                "run both from the test instead"
            )
        with _programs_lock:
            self._is_running = True
            thresholds = gc.get_threshold()
            outer_random_state = random.getstate()
            outer_generator_hooks = sys.get_asyncgen_hooks()
            methods = [cls.__dict__[name] for cls, name, _ in _METHODS]
            for (cls, name, replacement), method in zip(_METHODS, methods, strict=True):
                setattr(cls, name, replacement(method))
            functions = [module.get(name) for module, name, _ in _FUNCTIONS]
            for module, name, function in _FUNCTIONS:
                module[name] = function
            for c_function, replacement in _c_functions():
                c_function.replace(replacement)
            sockets: Any = socket.socket
            sockets.__new__ = staticmethod(_new_socket)
            random.setstate(self._random_state)
            gc.set_threshold(0)
            sys.set_asyncgen_hooks(*generator_hooks(outer_generator_hooks))
            self._wall_clock.start().time_ns = self._wall_ns  # type: ignore[method-assign]
            RunningState.thread = threading.get_ident()
            RunningState.turn = self._turns
            watchdog.begin(RunningState.thread)
            try:
                yield
            finally:
                watchdog.end()
                self._turns = RunningState.turn
                self._c_clocks.restore()
                self._wall_clock.stop()
                sys.set_asyncgen_hooks(*outer_generator_hooks)
                gc.set_threshold(*thresholds)
                self._random_state = random.getstate()
                random.setstate(outer_random_state)
                del sockets.__new__
                for c_function, _ in _c_functions():
                    c_function.restore()
                for (module, name, _), function in zip(_FUNCTIONS, functions, strict=True):
                    if function is None:
                        del module[name]  # uncovers the built-in function
                    else:
                        module[name] = function
                for (cls, name, _), method in zip(_METHODS, methods, strict=True):
                    setattr(cls, name, method)
                self._is_running = False

    def _wall_ns(self) -> int:
        program = running_program()
        if program is None:
            return self._real_time_ns()
        return _wall_ns(program)

    def begin_turn(self, program: RunningProgram) -> None:
        """Prepare for callbacks of a program."""
        RunningState.program = program
        RunningState.turn = turn = RunningState.turn + 1
        if not self._c_clocks.are_replaced:
            self._c_clocks.replace()
        if turn % _TURNS_BETWEEN_COLLECTIONS == 0:
            gc.collect()

    def end_turn(self) -> None:
        RunningState.program = None

    @contextmanager
    def executor(self) -> Iterator[Callable[[], float]]:
        """Set the state for a function of an executor; yield a function that returns its sleep in
        seconds after the block."""
        loop = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        RunningState.is_in_executor = True
        slept_before_s, RunningState.slept_s = RunningState.slept_s, 0.0
        slept_s = 0.0
        try:
            yield lambda: slept_s
        finally:
            slept_s = RunningState.slept_s
            RunningState.is_in_executor = False
            RunningState.slept_s = slept_before_s
            asyncio._set_running_loop(loop)
