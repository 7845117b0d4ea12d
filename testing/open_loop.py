"""Load that keeps arriving at its rate whatever the cluster does."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..protocol.errors import ErrorCode
from ..protocol.values import TopicPartition
from .simulation import Simulation


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
        self._partitions = [TopicPartition(topic, number) for number in range(partitions)]
        self._interval_us = interval_us
        self._value_of = value_of
        self._arrive()

    def _arrive(self) -> None:
        if not self.running:
            return
        sent, producer = self.sent, self.producer
        self.sent = sent + 1
        where = self._partitions[sent % len(self._partitions)]
        value = self._value_of(sent)
        answered = functools.partial(self._answered, where, value, self.runtime.now_us())
        producer.produce(where, value, None, answered)
        self.runtime.call_later(producer, self._interval_us, self._arrive)

    def _answered(
        self, where: TopicPartition, value: bytes, arrived_us: int, error: ErrorCode, _offset: int
    ) -> None:
        if error:
            self.errors += 1
            return
        self.acknowledged.append(value)
        self.on_acknowledged(where, arrived_us)

    def on_acknowledged(self, where: TopicPartition, arrived_us: int) -> None:
        """For who wants to know more: a record that arrived then is acknowledged now."""
