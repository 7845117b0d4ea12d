"""Worker processes on this machine; each gets another run whenever it is free.

A process that dies is replaced. Its run is tried once more, and counts as lost if the second
process dies, too.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any

from ..planning.carry_out import Outcome
from ..planning.numbered_runs import NumberedRun, Work

_ATTEMPTS_MAX = 2


def _serve_runs(connection: Connection) -> None:
    """Carry out the runs that arrive, until the other end of the connection closes."""
    # Ctrl-C reaches every process of the terminal, but the parent ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    work: Work | None = None
    with contextlib.suppress(EOFError, OSError):
        while True:
            item = connection.recv()
            if not isinstance(item, int):
                work = item
                continue
            assert work is not None
            connection.send(work.carry_out(work.specs[item], f"process {os.getpid()}"))


@contextlib.contextmanager
def _ctrl_c_blocked() -> Iterator[None]:
    """Block Ctrl-C while processes start, which inherit the mask, so that it cannot hit them before
    their first line. A pending Ctrl-C reaches this process afterwards. No effect on Windows."""
    if sys.platform == "win32":
        yield
        return
    # Otherwise the first process would start multiprocessing's resource tracker, which unblocks
    # SIGINT.
    resource_tracker.ensure_running()
    previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)


class _Worker:
    """A worker process and its current run."""

    def __init__(self, context: Any) -> None:
        self.connection, child_connection = context.Pipe()
        self.process = context.Process(target=_serve_runs, args=(child_connection,), daemon=True)
        with _ctrl_c_blocked():
            self.process.start()
        child_connection.close()
        self.spec: NumberedRun | None = None

    def end(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.join()


class ProcessEngine:
    """An engine of worker processes. They are spawned, as forked ones would inherit event loops."""

    def __init__(self, count: int) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._workers = [_Worker(self._context) for _ in range(count)]

    @classmethod
    @contextlib.contextmanager
    def open(cls, workers: int | None) -> Iterator[ProcessEngine]:
        engine = cls(workers or os.cpu_count() or 1)
        try:
            yield engine
        finally:
            for worker in engine._workers:
                worker.end()

    @property
    def process_ids(self) -> list[int]:
        """Process ids of the workers."""
        return [worker.process.pid or 0 for worker in self._workers]

    def run(self, work: Work, specs: Sequence[NumberedRun]) -> Iterator[Outcome]:
        waiting = deque(specs)
        attempts: dict[int, int] = {}
        indices = {spec.run_id: index for index, spec in enumerate(work.specs)}
        for worker in self._workers:
            worker.connection.send(work)
            self._assign_next_run(worker, waiting, indices)
        while busy := [worker for worker in self._workers if worker.spec is not None]:
            ready = wait([worker.connection for worker in busy])
            for worker in busy:
                if worker.connection not in ready:
                    continue
                spec = worker.spec
                assert spec is not None
                try:
                    outcome: Outcome = worker.connection.recv()
                except (EOFError, OSError):
                    worker = self._replace(worker, work)
                    attempts[spec.run_id] = attempts.get(spec.run_id, 1) + 1
                    if attempts[spec.run_id] <= _ATTEMPTS_MAX:
                        waiting.appendleft(spec)
                    else:
                        yield work.lost(spec, "its process died twice")
                else:
                    worker.spec = None
                    yield outcome
                self._assign_next_run(worker, waiting, indices)

    def _assign_next_run(
        self, worker: _Worker, waiting: deque[NumberedRun], indices: dict[int, int]
    ) -> None:
        if waiting:
            worker.spec = waiting.popleft()
            worker.connection.send(indices[worker.spec.run_id])

    def _replace(self, worker: _Worker, work: Work) -> _Worker:
        """Return a new process in place of one that died."""
        index = self._workers.index(worker)
        worker.end()
        replacement = self._workers[index] = _Worker(self._context)
        replacement.connection.send(work)
        return replacement
