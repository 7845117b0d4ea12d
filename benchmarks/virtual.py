"""Messages per second of the virtual runtime, beside a bare heap loop on the same machine."""

from __future__ import annotations

import heapq
import random
import time
from pathlib import Path

from benchmarks.figures import line, sized

SCENARIO = Path(__file__).parents[1] / "examples" / "scenarios" / "asymmetric_partition.toml"
EVENTS = sized(500_000, 5_000)
ROUNDS = sized(6, 1)


def bare_heap_loop() -> float:
    """Return the events per second of a bare heap with random delays."""
    rng = random.Random(1)
    heap = [(rng.randrange(1000), number) for number in range(100)]
    heapq.heapify(heap)
    started = time.perf_counter()
    sequence = 100
    for _ in range(EVENTS):
        now, _ = heapq.heappop(heap)
        sequence += 1
        heapq.heappush(heap, (now + rng.randrange(1000), sequence))
    return EVENTS / (time.perf_counter() - started)


def simulation() -> tuple[float, int, float]:
    """Return (messages per second, messages, virtual seconds) of the scenario with faults."""
    from fakekafka.scenarios.file import load_scenario
    from fakekafka.scenarios.run import ScenarioRun

    run = ScenarioRun(load_scenario(SCENARIO), seed=1)
    started = time.perf_counter()
    run.play()
    elapsed = time.perf_counter() - started
    messages = run.simulation.runtime.network.messages_sent
    virtual_s = run.simulation.now_ms / 1000
    run.simulation.stop()
    return messages / elapsed, messages, virtual_s


def measure() -> None:
    """Print both rates and their ratio."""
    heap = bare_heap_loop()
    rate, messages, virtual_s = max(simulation() for _ in range(ROUNDS))
    line("bare heap loop", f"{heap / 1e6:.2f} M events/s")
    line(
        f"5 brokers, faults, {virtual_s:.0f} virtual s ({messages:,} messages)",
        f"{rate:,.0f} msg/s",
        ">= 100,000",
        rate >= 100_000,
    )
    line("  ratio to the bare heap loop", f"{rate / heap:.3f}")
