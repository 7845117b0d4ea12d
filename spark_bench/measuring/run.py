"""A run as its scenario sees it: it makes a cluster and loads, takes values, and yields a row."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...protocol.data import ACKS_ALL
from ...protocol.errors import UsageError
from ...scenarios.spec import WorkloadSpec
from ...scenarios.verdict import RecordsFate
from ...scenarios.workload import Workload
from ...testing.checks import fully_replicated, replicas_identical
from ...testing.handles.partitions import Partitions
from ...testing.simulation import Simulation
from ...tracing.story.outages import PHASES as OUTAGE_PHASES
from ...tracing.story.outages import Outage
from .budget import Budget
from .histogram import BucketHistogram, is_known
from .meter import SECOND_US, LatencyMeter
from .recording_sink import RecordingSink
from .sink import Sink

PHASES = tuple(f"{name}_ms" for name in OUTAGE_PHASES)
"""Columns of an outage's phases, whose sum is ``unavailable_ms``."""
PERCENTILES = (50, 99, 99.9)
"""Percentiles of each histogram of a run that become columns of its row."""
_FOREVER_US = 1 << 62


class Run:
    """The run that a scenario is given: ``run.simulation()``, ``run.load()``, ``run.value()``.

    Nothing here reads the wall clock, so a row depends on scenario and seed alone.
    """

    def __init__(
        self,
        seed: int,
        budget: Budget | None = None,
        keeps_samples: bool = False,
        *,
        records: bool = False,
    ) -> None:
        """``records`` keeps all events, for a trace."""
        budget = budget or Budget()
        self.seed = seed
        self.sink: Sink | RecordingSink = RecordingSink(budget) if records else Sink(budget)
        self.meter: LatencyMeter = LatencyMeter(self.sink.watch.account, keeps_samples)
        self.problems: list[str] = []
        self.values: dict[str, Any] = {}
        self.loads: list[Workload] = []
        self._simulation: Simulation | None = None

    def _now_us(self) -> int:
        return 0 if self._simulation is None else self._simulation.runtime.now_us()

    # -- called by scenarios -------------------------------------------------------------------

    def simulation(self, brokers: int | Sequence[int] = 3, **arguments: Any) -> Simulation:
        """Make the one cluster of this run, with the arguments of ``Simulation``."""
        if self._simulation is not None:
            raise UsageError("a run has one simulation; make another run for another cluster")
        for name in ("seed", "recorder", "trace"):
            if name in arguments:
                raise UsageError(f"omit {name}: the run sets it")
        start = arguments.pop("start", True)
        simulation = Simulation(
            brokers, seed=self.seed, recorder=self.sink, trace=False, start=False, **arguments
        )
        self.adopt(simulation)
        if start:
            simulation.start()
        return simulation

    def adopt(self, simulation: Simulation) -> None:
        """Use a simulation that the caller has made with this run's seed and sink."""
        self._simulation = simulation
        self.meter.now_us = simulation.runtime.now_us

    def load(self, topic: str, **settings: Any) -> Workload:
        """Start clients of a topic, which send from now on.

        ``settings`` are the keys of ``[workload]`` in a scenario file; other names are settings of
        the producers, such as ``max_in_flight=1``.
        """
        simulation = self._require()
        known = {field.name for field in dataclasses.fields(WorkloadSpec)} - {"topic", "settings"}
        workload_settings = {name: value for name, value in settings.items() if name in known}
        workload_settings.setdefault("name", f"workload-{len(self.loads) + 1}")
        if isinstance(workload_settings.get("record_bytes"), int):
            workload_settings["record_bytes"] = (
                workload_settings["record_bytes"],
                workload_settings["record_bytes"],
            )
        workload_settings["acks"] = (
            ACKS_ALL
            if workload_settings.get("acks") in (None, "all")
            else workload_settings["acks"]
        )
        workload_settings.setdefault("idempotent", workload_settings["acks"] == ACKS_ALL)
        producer_settings = {name: value for name, value in settings.items() if name not in known}
        spec = WorkloadSpec(topic=topic, settings=producer_settings, **workload_settings)
        count = Partitions(simulation.running).partition_count(topic)
        workload = Workload(simulation, spec, count, self.meter)
        self.loads.append(workload)
        workload.start()
        return workload

    def end_warm_up(self) -> None:
        """Discard all measurements; from now on only records that arrive later are measured."""
        self.meter.discard_before(self._now_us())

    def value(self, name: str, value: float | bool | str) -> None:
        """Set a column of this run's row. Raises ``UsageError`` for NaN and infinity."""
        self.values[name] = value if isinstance(value, (bool, str)) else _finite(name, value)

    def sample(self, metric: str, value: float, count: int = 1) -> None:
        """Count a value in a histogram of this run. Raises ``UsageError`` for NaN and infinity."""
        self.meter.add(metric, _finite(metric, value), count)

    def problem(self, text: str) -> None:
        """Report a broken promise, which makes the run a violation."""
        self.problems.append(text)

    def settle(self, timeout_ms: float = 120_000, *, judges: bool = True) -> float:
        """Stop the loads, wait until all records are replicated, and check the promises.

        Sets the columns ``lost``, ``lost_promised``, ``expired``, ``duplicated`` and
        ``duplicated_promised``. Without ``judges`` a loss is not a problem: the faults of the
        scenario may lose records, and nothing counts as promised.

        Return the virtual milliseconds that this took.
        """
        simulation = self._require()
        begun_ms = simulation.now_ms
        for load in self.loads:
            load.stop()
        topics = list(dict.fromkeys(load.spec.topic for load in self.loads))
        simulation.run_until(lambda: not any(load.unfinished for load in self.loads), timeout_ms)
        simulation.run_until(lambda: fully_replicated(simulation, topics), timeout_ms, every_ms=20)
        settling_ms = simulation.now_ms - begun_ms
        figures: Counter[str] = Counter()
        for topic in topics:
            loads = [load for load in self.loads if load.spec.topic == topic]
            fate = RecordsFate.of(simulation, topic, loads, may_lose=not judges)
            figures.update(fate.counts())
            self.problems += fate.problems() if judges else ()
        if judges:
            self.problems += replicas_identical(simulation, topics).problems
        self.values |= {name: float(count) for name, count in figures.items()}
        return settling_ms

    # -- end of the run ------------------------------------------------------------------------

    def _require(self) -> Simulation:
        if self._simulation is None:
            raise UsageError("there is no cluster yet; call run.simulation() first")
        return self._simulation

    def close(self) -> None:
        """End the simulation."""
        if self._simulation is not None:
            self._simulation.stop()

    def save(self, path: Path, header: Mapping[str, Any]) -> None:
        """Write the trace of a run that was made with ``records``."""
        assert isinstance(self.sink, RecordingSink)
        self.sink.save(path, header)

    def row(self) -> dict[str, Any]:
        """Return the measured columns."""
        row: dict[str, Any] = {}
        bounds: list[str] = []
        self._add_outages(row, bounds)
        if self.loads:
            row["acknowledged"] = float(sum(len(load.acknowledged) for load in self.loads))
            row["failed"] = float(sum(load.failed for load in self.loads))
            row["retries"] = float(sum(load.retries for load in self.loads))
            row["unanswered"] = float(self.meter.end())
            if any(load.spec.consumers for load in self.loads):
                row["unread"] = float(self.meter.end_reading(self.loads))
        for metric, histogram in sorted(self.meter.histograms.items()):
            stem = metric.removesuffix("_ms")
            unit = "_ms" if metric.endswith("_ms") else ""
            names = {f"p{percent:g}".replace(".", "_"): percent for percent in PERCENTILES}
            for name, percent in {**names, "max": 100}.items():
                if not is_known(histogram.total, percent):
                    continue
                column = f"{stem}_{name}{unit}"
                row[column], is_bound = histogram.reading(percent)
                if is_bound:
                    bounds.append(column)
        row |= self.values
        if bounds:
            row["at_least"] = ",".join(sorted(bounds))
        simulation = self._simulation
        row["events"] = self.sink.outlined
        row["messages"] = 0 if simulation is None else simulation.runtime.network.messages_sent
        row["virtual_ms"] = self._now_us() / 1000
        row["fingerprint"] = self.sink.outline()
        return row

    def _add_outages(self, row: dict[str, Any], bounds: list[str]) -> None:
        """Add the worst outage of the run with its phases, and a histogram of all outages.

        An outage that is open at the end is worse than all that ended; its length is a lower bound.
        """
        watch = self.sink.watch
        row["leader_changes"] = float(watch.leader_changes)
        account, now_us = watch.account, self._now_us()
        ended = [outage for outage in account.outages if outage.is_acknowledged]
        unended = self._unended_outages(now_us)
        if not (self.loads or ended or unended):
            return
        histogram = BucketHistogram()
        area_ms = 0.0
        worst: Outage | None = None
        for outage in ended:
            unavailable_ms = (outage.unavailable_us or 0) / 1000
            histogram.add(unavailable_ms)
            area_ms += unavailable_ms
            if worst is None or unavailable_ms > (worst.unavailable_us or 0) / 1000:
                worst = outage
        row["outages"] = float(len(ended))
        row["outages_open"] = float(len(unended))
        open_ms = [(until_us - outage.begun_us) / 1000 for outage, until_us in unended]
        for lower_bound_ms in open_ms:
            histogram.add_open(lower_bound_ms)
        worst_ms = 0.0 if worst is None else (worst.unavailable_us or 0) / 1000
        if open_ms:
            bounds += ["unavailable_ms", "unavailable_partition_s"]
            # The phases of an outage are unknown before it ends.
            row["unavailable_ms"] = max(*open_ms, worst_ms)
        elif worst is not None:
            row["unavailable_ms"] = worst_ms
            row |= {f"{name}_ms": us / 1000 for name, us in worst.phases_us().items()}
        row["unavailable_partition_s"] = (area_ms + sum(open_ms)) / 1000
        if histogram.total:
            self.meter.histograms["partition_unavailable_ms"] = histogram

    def _unended_outages(self, now_us: int) -> list[tuple[Outage, int]]:
        """Return the outages without an acknowledgement at their end, each with the time until
        which it is known to have lasted."""
        account = self.sink.watch.account
        abandoned = [
            (outage, outage.ended_us or 0)
            for outage in account.outages
            if not outage.is_acknowledged
        ]
        return abandoned + [(outage, now_us) for outage in account.open_outages(now_us)]

    def histograms(self) -> dict[str, list[tuple[int, int]]]:
        """Return the bucket rows of each metric, in the order of names."""
        return {name: histogram.rows() for name, histogram in sorted(self.meter.histograms.items())}

    def series(self) -> list[tuple[int, int, int, int, int, int]]:
        """Return (second, arrived, acknowledged, failed, backlog, unavailable partitions) rows."""
        counts: Mapping[str, dict[int, int]] = self.meter.series
        if not any(counts.values()):
            return []
        account = self.sink.watch.account
        spans = [(outage.begun_us, outage.ended_us or 0) for outage in account.outages]
        open_outages = account.open_outages(self._now_us())
        spans += [(outage.begun_us, _FOREVER_US) for outage in open_outages]
        last = max(second for seconds in counts.values() for second in seconds)
        rows = []
        backlog = 0
        first = min(second for seconds in counts.values() for second in seconds)
        for second in range(first, last + 1):
            arrived, acknowledged, failed = (counts[name].get(second, 0) for name in counts)
            backlog += arrived - acknowledged - failed
            middle_us = second * SECOND_US + SECOND_US // 2
            unavailable = sum(begun <= middle_us < ended for begun, ended in spans)
            rows.append((second, arrived, acknowledged, failed, backlog, unavailable))
        return rows


def _finite(name: str, value: float) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise UsageError(f"the value of {name} must be a finite number, not {number}")
    return number
