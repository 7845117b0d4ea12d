"""Insertion and completion of delayed operations while 100,000 are pending."""

from __future__ import annotations

import time

from benchmarks.figures import line, sized

PENDING = sized(100_000, 500)
ROUNDS = sized(3, 1)


def measure() -> None:
    """Print microseconds per operation in the fastest of three rounds."""
    from fakekafka.replication.waiting.purgatory import DelayedOperation, Purgatory
    from fakekafka.replication.waiting.timing_wheel import WheelTimer
    from fakekafka.testing.simulation import Simulation

    class Operation(DelayedOperation):
        """An operation that completes once ``ready`` is set."""

        __slots__ = ("ready",)

        def __init__(self, delay_ms: int) -> None:
            super().__init__(delay_ms)
            self.ready = False

        def try_complete(self) -> bool:
            return self.ready and self.force_complete()

        def on_complete(self) -> None:
            """Do nothing, as there is no request to answer."""

    def one_round() -> tuple[float, float]:
        """Return the seconds to insert and to complete all operations."""
        host = Simulation(1, trace=False).running.admin
        purgatory = Purgatory("bench", WheelTimer(host), 1000)
        operations = [Operation(30_000 + number % 500) for number in range(PENDING)]
        started = time.perf_counter()
        for number, operation in enumerate(operations):
            purgatory.try_complete_else_watch(operation, (number,))
        inserted = time.perf_counter()
        for number, operation in enumerate(operations):
            operation.ready = True
            purgatory.check_and_complete(number)
        return inserted - started, time.perf_counter() - inserted

    rounds = [one_round() for _ in range(ROUNDS)]
    best = (min(inserting for inserting, _ in rounds), min(completing for _, completing in rounds))
    for what, seconds in zip(("insert", "complete"), best, strict=True):
        each_us = seconds / PENDING * 1e6
        line(
            f"{PENDING:,} delayed operations: {what}", f"{each_us:.2f} us", "<= 3 us", each_us <= 3
        )
