"""Load that keeps arriving at its rate whatever the cluster does."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable

from ...protocol.errors import ErrorCode
from ...protocol.values import TopicPartition
from ..simulation import Simulation


class OpenLoop:
    """Records at a fixed rate, round robin over the partitions of a topic, from now on.

    ``value_of`` makes the value of the n-th record; the first arrives with the construction.
    """

    def __init__(
        self,
        simulation: Simulation,
        topic: str,
        partitions: int,
        interval_us: int,
        value_of: Callable[[int], bytes],
    ) -> None:
        self.runtime = simulation.runtime
        self.producer = simulation.producer(name="producer")
        self.running = True
        self.sent = 0
        self.acknowledged: list[bytes] = []
        self.errors = 0
        self._targets = itertools.cycle(TopicPartition(topic, n) for n in range(partitions))
        self._interval_us = interval_us
        self._value_of = value_of
        self._arrive()

    def _arrive(self) -> None:
        if not self.running:
            return
        runtime, producer = self.runtime, self.producer
        where, value = next(self._targets), self._value_of(self.sent)
        self.sent += 1
        answered = functools.partial(self._answered, where, value, runtime.now)
        producer.produce(where, value, None, answered)
        runtime.call_later(producer, self._interval_us, self._arrive)

    def _answered(
        self, where: TopicPartition, value: bytes, arrived_us: int, error: ErrorCode, _offset: int
    ) -> None:
        """The end of the record that arrived then; who wants to know more takes it over."""
        if error:
            self.errors += 1
        else:
            self.acknowledged.append(value)
