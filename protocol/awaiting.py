"""The awaitables of the package, with which coroutines suspend without threads or event loops.

A handler written as ``async def`` awaits a ``Pending``. The code that learns the outcome calls
``set_result`` or ``set_exception``, and the handler resumes within that call, inside the actor that
received the outcome. ``Task`` drives a coroutine. This module is independent of time, actors and
sockets, so the cores can be written as coroutines and tested without a runtime.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from .errors import FakeKafkaError

T = TypeVar("T")


class Cancelled(BaseException):
    """Raised inside a coroutine whose task is cancelled, usually because its actor died.

    It is not an ``Exception``, so that handlers that catch every error do not outlive their actor.
    """


class RequestTimeout(FakeKafkaError):
    """No response arrived within the timeout; whether the request took effect is unknown."""


class Disconnected(FakeKafkaError):
    """The peer cannot be reached: it is stopped, or its connection was cut."""


class Pending(Generic[T]):
    """A one-shot outcome that coroutines await.

    The first ``set_result`` or ``set_exception`` wins; later calls are ignored and return False.
    """

    __slots__ = ("_callbacks", "_error", "_value", "done")

    def __init__(self) -> None:
        self.done: bool = False
        """True once the outcome is known."""
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: Any = None  # None, one callable, or a list of them

    def __await__(self) -> Generator[Pending[T], None, T]:
        if not self.done:
            yield self
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[no-any-return]

    def result(self) -> T:
        """Return the result, or raise the exception that was set; ``RuntimeError`` if not done."""
        if not self.done:
            raise RuntimeError("the outcome is not known yet")
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[no-any-return]

    @property
    def exception(self) -> BaseException | None:
        """The exception that was set; None after success or while not done."""
        return self._error

    def set_result(self, value: T) -> bool:
        if self.done:
            return False
        self.done = True
        self._value = value
        self._run_callbacks()
        return True

    def set_exception(self, error: BaseException) -> bool:
        if self.done:
            return False
        self.done = True
        self._error = error
        self._run_callbacks()
        return True

    def settle(self, outcome: Any) -> None:
        """Set a result, or an exception if ``outcome`` is one."""
        if isinstance(outcome, BaseException):
            self.set_exception(outcome)
        else:
            self.set_result(outcome)

    def add_done_callback(self, callback: Callable[[Pending[T]], object]) -> None:
        """Call ``callback(self)`` once the outcome is known; immediately if it already is."""
        if self.done:
            callback(self)
        elif self._callbacks is None:
            self._callbacks = callback
        elif isinstance(self._callbacks, list):
            self._callbacks.append(callback)
        else:
            self._callbacks = [self._callbacks, callback]

    def _run_callbacks(self) -> None:
        callbacks, self._callbacks = self._callbacks, None
        if callbacks is None:
            return
        if isinstance(callbacks, list):
            for callback in callbacks:
                callback(self)
        else:
            callbacks(self)


class Task(Pending[T]):
    """Drives a coroutine; done when the coroutine returns or raises. A task can be awaited."""

    __slots__ = ("_cancelled", "_coroutine", "_resumed")

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        super().__init__()
        self._coroutine = coroutine
        self._cancelled = False
        self._resumed = self._resume
        self._step(None)

    def _resume(self, _pending: Pending[Any]) -> None:
        if not self.done:
            self._step(None)

    def _step(self, error: BaseException | None) -> None:
        try:
            parked = self._coroutine.send(None) if error is None else self._coroutine.throw(error)
        except StopIteration as stop:
            self.set_result(stop.value)
        except Cancelled as cancelled:
            self.set_exception(cancelled)
        except Exception as failure:
            self.set_exception(failure)
        else:
            parked.add_done_callback(self._resumed)

    def cancel(self) -> None:
        """Raise ``Cancelled`` where the coroutine is suspended; no effect once done."""
        if self.done or self._cancelled:
            return
        self._cancelled = True
        if getattr(self._coroutine, "cr_running", False):
            return
        self._step(Cancelled("the task was cancelled"))
        if not self.done:
            self._coroutine.close()
            self.set_exception(Cancelled("the task was cancelled"))


class Signal:
    """A flag to wait for: ``notify`` resumes all waiters or, without any, the next ``wait``.

    Notifications do not accumulate: several without a waiter resume only one ``wait``.
    """

    __slots__ = ("_set", "_waiters")

    def __init__(self) -> None:
        self._set = False
        self._waiters: deque[Pending[None]] = deque()

    def notify(self) -> None:
        if self._waiters:
            while self._waiters:
                self._waiters.popleft().set_result(None)
        else:
            self._set = True

    def wait(self) -> Awaitable[None]:
        pending: Pending[None] = Pending()
        if self._set:
            self._set = False
            pending.set_result(None)
        else:
            self._waiters.append(pending)
        return pending
