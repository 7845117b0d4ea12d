"""One run with everything in it, to check that a seed decides all: faults, load, recovery.

Five brokers, three partitions of three replicas, sixty virtual seconds: brokers are killed and
restarted, and for a while messages get through in one direction only. Which broker it hits and
when is drawn from the seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..checks import acknowledged_exactly_once, fully_replicated, replicas_identical
from ..simulation import Simulation
from .open_loop import OpenLoop

TOPIC = "events"
PARTITIONS = 3
FAULTS_MS = 48_000
DURATION_MS = 60_000


@dataclass(frozen=True)
class Outcome:
    """What a run gave; equal for equal seeds."""

    fingerprint: str
    messages: int
    virtual_s: float
    acknowledged: int
    problems: tuple[str, ...]


def asymmetric_partition(
    seed: int, *, record: bool = True, interval_us: int = 4000, verify: bool = True
) -> Outcome:
    """Run it; ``record=False`` leaves the fingerprint empty and is faster.

    ``verify=False`` leaves out what is not part of the run: to read every record of every replica
    at its end, for ``problems``.
    """
    recorder: Any = None
    if record:
        from ...tracing.fingerprint import Fingerprint

        recorder = Fingerprint()
    with Simulation(
        5,
        seed=seed,
        config={"zookeeper.session.timeout.ms": 6000, "replica.lag.time.max.ms": 6000},
        recorder=recorder,
        trace=False,
    ) as simulation:
        rng = simulation.runtime.rng
        simulation.network.latency(uniform_ms=(0.1, 1.0))
        simulation.create_topic(TOPIC, PARTITIONS, 3, {"min.insync.replicas": "2"})
        load = OpenLoop(simulation, TOPIC, PARTITIONS, interval_us, b"%08d".__mod__)
        simulation.consumer([(TOPIC, number) for number in range(PARTITIONS)])
        while simulation.now_ms < FAULTS_MS:
            simulation.run_for(1000 + rng.random() * 2000)
            _one_fault(simulation)
        simulation.network.heal()
        for broker_id in simulation.broker_ids:
            if not simulation.broker(broker_id).is_alive:
                simulation.broker(broker_id).start()
        simulation.run_for(max(0.0, DURATION_MS - simulation.now_ms))
        load.running = False
        simulation.run_until(lambda: load.producer.unfinished == 0, 120_000)
        simulation.run_until(lambda: fully_replicated(simulation, [TOPIC]), 120_000, every_ms=20)
        problems = _problems(simulation, load) if verify else ()
        return Outcome(
            recorder.fingerprint() if recorder is not None else "",
            simulation.runtime.network.messages_sent,
            simulation.now_ms / 1000,
            len(load.acknowledged),
            problems,
        )


def _problems(simulation: Simulation, load: OpenLoop) -> tuple[str, ...]:
    """What is wrong in the end: records lost or doubled, replicas that differ."""
    read = [r.value for n in range(PARTITIONS) for r in simulation.consume(TOPIC, n)]
    once = acknowledged_exactly_once(load.acknowledged, read)
    same = replicas_identical(simulation, [TOPIC])
    return (*once.problems, *same.problems)


def _one_fault(simulation: Simulation) -> None:
    """Kill a broker and bring it back, or let one broker's messages to another get lost."""
    rng = simulation.runtime.rng
    if rng.random() < 0.5:
        victim = simulation.broker(rng.choice(simulation.broker_ids))
        victim.kill()
        simulation.run_for(500 + rng.random() * 8000)
        victim.start()
        simulation.run_for(1000)
    else:
        source, target = rng.sample(simulation.broker_ids, 2)
        simulation.network.partition([source], [target], both_ways=False)
        simulation.run_for(500 + rng.random() * 8000)
        simulation.network.heal()
