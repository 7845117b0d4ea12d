"""A run as its clients experienced it: latencies as histograms, and counts for every second.

Response time counts from the arrival of a record. In an open loop records arrive on a schedule that
no outage delays, so that the response time includes an outage in full; service time counts from the
last sending of a record, and leaves out earlier waits. A closed loop has a metric of its own name,
because it sends less while it waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...protocol.errors import ErrorCode
from ...protocol.records.batch import RecordBatch
from ...protocol.values import TopicPartition
from ...scenarios.workload import Workload
from ...tracing.story.outages import OutageAccount
from .histogram import BucketHistogram

SECOND_US = 1_000_000
Samples = list[tuple[str, int, float]]
"""(metric, microseconds since the run began, value)."""


class LatencyMeter:
    """Measures every record of a run's workloads."""

    def __init__(self, outages: OutageAccount, keeps_samples: bool = False) -> None:
        self.now_us: Callable[[], int] = _before_the_run
        """The clock of the run, once it has a cluster."""
        self._outages = outages
        self._workloads: set[Workload] = set()
        """Workloads whose clients report their waits through this meter."""
        self.from_us: int = 0
        """End of the warm-up: records that arrived before are counted, but not measured."""
        self.histograms: dict[str, BucketHistogram] = {}
        self.series: dict[str, dict[int, int]] = {"arrived": {}, "acknowledged": {}, "failed": {}}
        self.samples: Samples | None = [] if keeps_samples else None
        self._waiting: dict[tuple[str, int], int] = {}  # (metric, arrival) -> unanswered records
        self._unread: dict[bytes | None, int] = {}  # value -> arrival, where a client reads

    def discard_before(self, from_us: int) -> None:
        """Drop all measurements; records that arrive from ``from_us`` on count."""
        self.from_us = from_us
        self.histograms.clear()
        self._unread.clear()
        if self.samples is not None:
            self.samples.clear()

    def add(self, metric: str, value: float, count: int = 1) -> None:
        """Count a value that was measured now."""
        self._histogram(metric).add(value, count)
        if self.samples is not None:
            self.samples += [(metric, self.now_us(), value)] * count

    def end(self) -> int:
        """Count unanswered records as open; return their number, including the warm-up's."""
        now_us, waiting = self.now_us(), self._waiting
        self._waiting = {}
        for (metric, arrived_us), count in waiting.items():
            for _ in range(count if arrived_us >= self.from_us else 0):
                self._histogram(metric).add_open((now_us - arrived_us) / 1000)
        return sum(waiting.values())

    def end_reading(self, workloads: Iterable[Workload]) -> int:
        """Count acknowledged records that no consumer has read as open; return their number."""
        unread, self._unread = self._unread, {}
        arrivals_us = [
            unread[value]
            for workload in workloads
            for value in workload.acknowledged
            if value in unread
        ]
        now_us = self.now_us()
        for arrived_us in arrivals_us:
            self._histogram("end_to_end_ms").add_open((now_us - arrived_us) / 1000)
        return len(arrivals_us)

    def _histogram(self, metric: str) -> BucketHistogram:
        histogram = self.histograms.get(metric)
        if histogram is None:
            histogram = self.histograms[metric] = BucketHistogram()
        return histogram

    def _count(self, name: str, now_us: int) -> None:
        seconds = self.series[name]
        second = now_us // SECOND_US
        seconds[second] = seconds.get(second, 0) + 1

    # -- callbacks of workloads ----------------------------------------------------------------

    def sent(self, workload: Workload, where: TopicPartition, value: bytes) -> None:
        now_us = self.now_us()
        self._count("arrived", now_us)
        if workload not in self._workloads:
            self._workloads.add(workload)
            self._outages.modelled.update(workload.spec.producer_names)
        self._outages.begin_wait(now_us, str(where))
        key = _metric(workload), now_us
        self._waiting[key] = self._waiting.get(key, 0) + 1
        if workload.spec.consumers and now_us >= self.from_us:
            self._unread[value] = now_us

    def answered(
        self, workload: Workload, where: TopicPartition, arrived_us: int, error: ErrorCode
    ) -> None:
        metric = _metric(workload)
        now_us = self.now_us()
        self._outages.end_wait(now_us, str(where), failed=bool(error))
        key = metric, arrived_us
        waiting = self._waiting.pop(key) - 1
        if waiting:
            self._waiting[key] = waiting
        if error:
            self._count("failed", now_us)
            if arrived_us >= self.from_us:
                self._histogram(metric).add_open((now_us - arrived_us) / 1000)
            return
        self._count("acknowledged", now_us)
        if arrived_us >= self.from_us:
            self.add(metric, (now_us - arrived_us) / 1000)

    def served(self, _workload: Workload, records: int, elapsed_us: int) -> None:
        if self.now_us() - elapsed_us >= self.from_us:
            self.add("service_ms", elapsed_us / 1000, records)

    def read(self, _workload: Workload, batch: RecordBatch, position: int) -> None:
        """Measure each record of a batch that is read for the first time."""
        if batch.is_control:
            return
        now_us = self.now_us()
        for record in batch.records():
            arrived_us = self._unread.pop(record.value, None)
            if record.offset >= position and arrived_us is not None:
                self.add("end_to_end_ms", (now_us - arrived_us) / 1000)


def _before_the_run() -> int:
    return 0


def _metric(workload: Workload) -> str:
    return "response_ms" if workload.spec.model == "open" else "closed_response_ms"
