"""The scenario ``failover``: the leader crashes under load, and how long that is felt.

An open-loop workload keeps arriving at its rate whatever the cluster does, so the records that
arrive during the outage wait and are counted with their waiting (no coordinated omission).
Unavailability of a partition is the time from the last acknowledgement of its dead leader to the
first one of another (``tracing.story.outages``, as ``fakekafka trace story`` tells it). That of the
worst partition is split where the messages show it:

- *detect*: crash until a controller hears of the expired session,
- *elect*: until the new leader has its LeaderAndIsr,
- *client*: until the first acknowledgement after that.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, fields
from typing import Any

from ...actors.clients.producer import SimulatedProducer
from ...protocol.errors import ErrorCode, UsageError
from ...protocol.values import TopicPartition
from ...protocol.versions import behaviour
from ...testing.checks import acknowledged_exactly_once, fully_replicated, replicas_identical
from ...testing.scenarios.open_loop import OpenLoop
from ...testing.scenarios.spec import MOST_PER_S
from ...testing.simulation import Simulation
from ...tracing.fingerprint import Fingerprint
from ...tracing.recorder import Recorder
from ...tracing.story.outages import BrokerCrash, Outage, OutageAccount
from ..histogram import BucketHistogram

TOPIC = "bench"
_WARM_UP_MS = 2_000
_AFTER_MS = 2_000
_LEAST = {"record_bytes": 0}
"""Smallest value of a whole-number parameter, where it is not 1."""


@dataclass(frozen=True)
class FailoverParameters:
    """Parameters of one run; every field is a column of the run rows."""

    brokers: int = 3
    replication_factor: int = 3
    partitions: int = 3
    session_timeout_ms: int = 18_000
    kafka_version: str = "3.9"
    rate_per_s: int = 100
    record_bytes: int = 100
    latency_median_ms: float = 0.5
    latency_sigma: float = 0.4

    @classmethod
    def checked(cls, **values: Any) -> FailoverParameters:
        """Build from keyword arguments; ``UsageError`` names an unknown one."""
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise UsageError(
                    f"failover has no parameter {name!r}; there are {', '.join(known)}"
                )
        parameters = cls(**values)
        parameters._check_values()
        if parameters.replication_factor > parameters.brokers:
            raise UsageError(
                f"replication_factor {parameters.replication_factor} needs as many brokers, "
                f"there are {parameters.brokers}"
            )
        if parameters.replication_factor < 2:
            raise UsageError(
                "failover needs replication_factor >= 2: with one replica none is left"
            )
        return parameters

    def _check_values(self) -> None:
        """Raise ``UsageError`` for a value of another type, too small, or not finite."""
        for field in fields(self):
            value: Any = getattr(self, field.name)
            kinds: Any = {"int": (int,), "float": (int, float), "str": (str,)}[str(field.type)]
            if not isinstance(value, kinds) or isinstance(value, bool):
                raise UsageError(f"{field.name} must be {field.type}, not {value!r}")
            least = _LEAST.get(field.name, 1)
            if isinstance(value, int) and field.type == "int" and value < least:
                raise UsageError(f"{field.name} must be at least {least}, not {value}")
        if self.rate_per_s > MOST_PER_S:
            raise UsageError(f"rate_per_s must be at most {MOST_PER_S}, not {self.rate_per_s}")
        if not 0 < self.latency_median_ms < math.inf:
            raise UsageError(f"latency_median_ms must be above 0, not {self.latency_median_ms}")
        if not 0 <= self.latency_sigma < math.inf:
            raise UsageError(f"latency_sigma must be at least 0, not {self.latency_sigma}")
        behaviour(self.kafka_version)


class _Load:
    """Records at a fixed rate, and what they felt: the last answers, and how long each took."""

    def __init__(self, simulation: Simulation, parameters: FailoverParameters) -> None:
        self.runtime = simulation.runtime
        self.producer = simulation.producer(name="producer")
        self.producer.on_service_time = self._served
        self.acknowledged: list[bytes] = []
        self.errors = 0
        self.last_ack_us: dict[TopicPartition, int] = {}
        self.response_ms = BucketHistogram()
        self.service_ms = BucketHistogram()
        self._partitions = parameters.partitions
        self._padding = b"." * max(0, parameters.record_bytes - 12)
        self.open_loop = OpenLoop(self.runtime, 1_000_000 // parameters.rate_per_s, self._send)
        self.open_loop.start()

    def _send(self, number: int) -> SimulatedProducer:
        where = TopicPartition(TOPIC, number % self._partitions)
        value = b"%011d " % number + self._padding
        answered = functools.partial(self._answered, where, value, self.runtime.now)
        self.producer.produce(where, value, None, answered)
        return self.producer

    def _served(self, _partition: TopicPartition, records: int, elapsed_us: int) -> None:
        self.service_ms.add(elapsed_us / 1000, records)

    def _answered(
        self, where: TopicPartition, value: bytes, arrived_us: int, error: ErrorCode, _offset: int
    ) -> None:
        if error:
            self.errors += 1
            return
        self.acknowledged.append(value)
        now_us = self.runtime.now_us()
        self.response_ms.add((now_us - arrived_us) / 1000)
        self.last_ack_us[where] = now_us


def run_failover(
    seed: int, parameters: FailoverParameters, recorder: Recorder | None = None
) -> dict[str, Any]:
    """Run one failover; gives the run row and the histograms.

    ``row`` is a pure function of seed and parameters; ``histograms`` maps a metric to its
    (bucket, count) rows. Without a ``recorder`` only the order of events is kept, as a fingerprint.
    """
    sink = Fingerprint() if recorder is None else recorder
    with Simulation(
        parameters.brokers,
        seed=seed,
        kafka_version=parameters.kafka_version,
        config={"zookeeper.session.timeout.ms": parameters.session_timeout_ms},
        recorder=sink,
        trace=False,
    ) as simulation:
        simulation.network.latency(
            lognormal_ms=(parameters.latency_median_ms, parameters.latency_sigma)
        )
        simulation.create_topic(TOPIC, parameters.partitions, parameters.replication_factor)
        load = _Load(simulation, parameters)
        consumer = simulation.consumer([(TOPIC, n) for n in range(parameters.partitions)])
        # The crash falls at a seeded moment of the heartbeat interval.
        simulation.run_for(_WARM_UP_MS + simulation.runtime.rng.random() * 1000)
        victim = simulation.partition(TOPIC, 0).leader
        assert victim is not None
        led = [
            TopicPartition(TOPIC, n)
            for n in range(parameters.partitions)
            if simulation.partition(TOPIC, n).leader == victim
        ]
        was_controller = simulation.controller.id == victim
        limit_ms = parameters.session_timeout_ms * 3 + 60_000
        crash = _crash(simulation, load, victim, led, limit_ms)
        full_isr_ms, problems = _recover(simulation, parameters, load, crash, limit_ms)
        ends = {p: simulation.partition(TOPIC, p.partition).high_watermark for p in led}
        simulation.run_until(
            lambda: all(consumer.positions.get(p, -1) >= end for p, end in ends.items()), limit_ms
        )
        row: dict[str, Any] = {
            "was_controller": was_controller,
            "partitions_led": len(led),
            "full_isr_ms": full_isr_ms,
            "acknowledged": len(load.acknowledged),
            "errors": load.errors,
            "retries": load.producer.retries,
            "problems": "; ".join(problems),
            "messages": simulation.runtime.network.messages_sent,
            "virtual_ms": simulation.now_ms,
            "fingerprint": sink.outline(),
        }
        histograms = _outages(row, crash)
        histograms["response_ms"] = load.response_ms
        histograms["service_ms"] = load.service_ms
    row["status"] = "ok" if not row["problems"] else "violation"
    return {
        "row": row,
        "histograms": {name: histogram.rows() for name, histogram in histograms.items()},
    }


def _crash(
    simulation: Simulation,
    load: _Load,
    victim: int,
    led: list[TopicPartition],
    limit_ms: float,
) -> BrokerCrash:
    """Kill the broker and let the cluster run until its partitions take records again."""
    runtime = simulation.runtime
    account = OutageAccount()
    for partition in led:
        if partition in load.last_ack_us:
            account.acknowledge(load.last_ack_us[partition], victim, str(partition))
    crash = account.crash(runtime.now_us(), victim, [str(partition) for partition in led])
    end = simulation.observe(
        lambda delivery: account.see(
            runtime.now_us(), delivery.sender.name, delivery.target.name, delivery.message
        )
    )
    simulation.broker(victim).kill()
    simulation.run_until(lambda: crash.has_ended, limit_ms)
    end()
    return crash


def _recover(
    simulation: Simulation,
    parameters: FailoverParameters,
    load: _Load,
    crash: BrokerCrash,
    limit_ms: float,
) -> tuple[float, tuple[str, ...]]:
    """Bring the broker back; (crash to full ISR in ms, promises that were broken)."""
    simulation.run_for(_AFTER_MS)
    simulation.broker(crash.broker).start()
    load.open_loop.stop()
    simulation.run_until(lambda: load.producer.unfinished == 0, limit_ms)
    simulation.run_until(lambda: fully_replicated(simulation, [TOPIC]), limit_ms, every_ms=20)
    full_isr_ms = simulation.now_ms - crash.crashed_us / 1000
    read = [r.value for n in range(parameters.partitions) for r in simulation.consume(TOPIC, n)]
    once = acknowledged_exactly_once(load.acknowledged, read)
    same = replicas_identical(simulation, [TOPIC])
    return full_isr_ms, (*once.problems, *same.problems)


def _outages(row: dict[str, Any], crash: BrokerCrash) -> dict[str, BucketHistogram]:
    """Fill the unavailability columns: the worst partition of the run, and its phases."""
    unavailable = BucketHistogram()
    for outage in crash.outages.values():
        if outage.unavailable_us is not None:
            unavailable.add(outage.unavailable_us / 1000)
    worst = crash.worst
    if worst is not None:
        row |= outage_columns(crash, worst)
    return {"unavailable_ms": unavailable}


def outage_columns(crash: BrokerCrash, outage: Outage) -> dict[str, float]:
    """How long a partition was unavailable, and the phases of it."""
    assert outage.unavailable_us is not None
    assert outage.first_ack_us is not None
    noticed_us = crash.noticed_us if crash.noticed_us is not None else crash.crashed_us
    took_over_us = outage.took_over_us if outage.took_over_us is not None else noticed_us
    return {
        "unavailable_ms": outage.unavailable_us / 1000,
        "detect_ms": (noticed_us - crash.crashed_us) / 1000,
        "elect_ms": (took_over_us - noticed_us) / 1000,
        "client_ms": (outage.first_ack_us - took_over_us) / 1000,
    }
