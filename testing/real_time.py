"""``RealTimeCluster``: the running part of a ``Cluster``."""

from __future__ import annotations

import concurrent.futures
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..protocol.awaiting import Pending, Task
from ..protocol.errors import UsageError
from . import arguments
from .running import RunningCluster, WaitTimeout, is_not_yet

if TYPE_CHECKING:
    from ..actors.broker.process import BrokerProcess
    from ..actors.runtime.live import LiveRuntime
    from ..actors.runtime.threaded import ThreadedRuntime
    from ..actors.zookeeper.process import ZooKeeperProcess
    from .assembly import AdminNode

T = TypeVar("T")

_POLL_S = 0.0005
_POLL_MAX_S = 0.02
_CHECK_INTERVAL_S = 0.001


def _event_loop_hint() -> str:
    """Return a hint for errors on how to wait in a coroutine; empty outside of a coroutine."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return ""
    return (
        "; this thread's event loop was blocked by this wait, and so were the clients in it: "
        "`await asyncio.to_thread(cluster.wait_until, condition)` lets them run"
    )


class RealTimeCluster(RunningCluster):
    """The running part of a ``Cluster``: its threads run on their own, and waits poll."""

    def __init__(
        self,
        runtime: LiveRuntime | ThreadedRuntime,
        zookeepers: dict[int, ZooKeeperProcess],
        processes: dict[int, BrokerProcess],
        admin: AdminNode,
    ) -> None:
        super().__init__(zookeepers, processes, admin)
        self._runtime = runtime
        self._stopped = False
        self._waiting: dict[concurrent.futures.Future[Any], None] = {}
        """Futures that callers in other threads wait for."""

    @property
    def runtime(self) -> LiveRuntime | ThreadedRuntime:
        return self._runtime

    def end(self) -> None:
        """Refuse every call from now on, and fail the calls that are waiting."""
        self._stopped = True
        for outcome in tuple(self._waiting):
            with contextlib.suppress(concurrent.futures.InvalidStateError):  # already completed
                outcome.set_exception(UsageError("the cluster has been stopped during this call"))

    def require_going(self) -> None:
        if self._stopped:
            raise UsageError("the cluster has been stopped")
        self.require_own_process()

    def require_own_process(self) -> None:
        if not self._stopped:
            self._runtime.thread.require_own_process()

    def require_waiting(self) -> None:
        self.require_going()
        if self._runtime.is_own_thread:
            raise UsageError(
                "a thread of the cluster cannot wait for the cluster: make calls that an observer "
                "or a filter sets off in a thread of your own"
            )

    def in_process(self, process: Any, function: Callable[[], T]) -> T:
        self.require_going()
        return super().in_process(process, function)

    def call(self, function: Callable[[], Coroutine[Any, Any, T]], timeout_ms: float) -> T:
        self.require_waiting()
        done: concurrent.futures.Future[T] = concurrent.futures.Future()

        def finish(task: Pending[T]) -> None:
            error = task.exception
            with contextlib.suppress(concurrent.futures.InvalidStateError):  # stopped meanwhile
                if error is not None:
                    done.set_exception(error)
                else:
                    done.set_result(task.result())

        def start() -> None:
            Task(function()).add_done_callback(finish)

        self._waiting[done] = None
        try:
            self.in_process(self.admin.process, start)
            return done.result(timeout_ms / 1000)
        except concurrent.futures.TimeoutError:
            raise WaitTimeout(f"no outcome within {timeout_ms / 1000:g} s") from None
        finally:
            del self._waiting[done]

    def await_settled(self, starts: Sequence[Pending[None]], timeout_s: float) -> None:
        """Wait until every start has ended and the cluster is settled, a start has failed, or a
        timeout expires.

        The event loop polls, not the caller: a second polling thread would take the interpreter
        away from the brokers that are starting.
        """
        is_over = threading.Event()
        loop = self.runtime.loop

        def check() -> None:
            with contextlib.suppress(RuntimeError):  # another thread changes what is read
                if any(start.exception is not None for start in starts) or (
                    all(start.done for start in starts) and self.is_settled
                ):
                    is_over.set()
            if not is_over.is_set():
                loop.call_later(_CHECK_INTERVAL_S, check)

        loop.call_soon_threadsafe(check)
        is_over.wait(timeout_s)
        is_over.set()

    def wait_until(self, condition: Callable[[], object], timeout_s: float = 10) -> None:
        arguments.condition(condition)
        arguments.number("timeout_s", timeout_s, "seconds")
        self.require_waiting()
        began = time.monotonic()
        while True:
            last_error = None
            try:
                if condition():
                    return
            except Exception as error:
                if not is_not_yet(error):
                    raise
                last_error = error
            waited_s = time.monotonic() - began
            if waited_s > timeout_s:
                from .condition_text import failed_wait

                text = failed_wait(condition, f"{timeout_s:g} s", self.describe(), last_error)
                raise WaitTimeout(text + _event_loop_hint())
            # The poll interval grows with the wait, so that a wait lasts at most a tenth too long.
            time.sleep(min(max(_POLL_S, waited_s / 10), _POLL_MAX_S))
