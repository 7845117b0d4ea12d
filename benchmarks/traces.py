"""What recording a run costs, and how soon questions to a long trace are answered."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.figures import line

EVENTS = 1_000_000
PARTITIONS = 12
QUESTIONS = 100
ROUNDS = 5
ROUND_MS = 3000


def _run(recorder: Any, enough: Callable[[Any], bool]) -> tuple[float, int, float]:
    """(seconds of CPU, events run, virtual milliseconds) of a cluster under load."""
    from fakekafka import Simulation

    topics = {"orders": PARTITIONS}
    with Simulation(3, seed=1, topics=topics, recorder=recorder, trace=False) as simulation:
        producer = simulation.producer(acks="all", linger_ms=5)
        simulation.consumer([("orders", number) for number in range(PARTITIONS)])
        started = time.process_time()
        while not enough(simulation):
            for number in range(PARTITIONS):
                producer.produce(("orders", number), b"x" * 50)
            simulation.run_for(10)
        elapsed = time.process_time() - started
        return elapsed, simulation.runtime.events_run, simulation.now_ms


def _slowdown() -> float:
    """How much more CPU time a recorded run takes: the shortest of some, in turns."""
    from fakekafka.tracing.header import build_header
    from fakekafka.tracing.recording.recorder import Recorder
    from fakekafka.tracing.recording.writer import TraceWriter

    plain_s: list[float] = []
    recorded_s: list[float] = []
    header = build_header(mode="sim", kafka_version="3.9", seed=1)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            for recorded in (False, True):
                writer = TraceWriter(Path(folder) / "short.fktrace", header) if recorded else None
                recorder = Recorder(writer) if recorded else None
                elapsed_s, _, _ = _run(recorder, lambda simulation: simulation.now_ms >= ROUND_MS)
                (recorded_s if recorded else plain_s).append(elapsed_s)
    return min(recorded_s) / min(plain_s) - 1


def record_long(path: Path, events: int) -> int:
    """Record a run of so many events, or a few more; how many they are."""
    from fakekafka.tracing.header import build_header
    from fakekafka.tracing.recording.recorder import Recorder
    from fakekafka.tracing.recording.writer import TraceWriter

    recorder = Recorder(TraceWriter(path, build_header(mode="sim", kafka_version="3.9", seed=1)))
    _run(recorder, lambda _: len(recorder) >= events)
    recorder.close()
    return len(recorder)


def measure() -> None:
    """Print the costs of recording and of reading."""
    from fakekafka import open_trace

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.fktrace"
        slowdown = _slowdown()
        line("recording, in CPU time", f"+{slowdown:.0%}", "<= 30 %", slowdown <= 0.3)
        count = record_long(path, EVENTS)
        size = path.stat().st_size / count
        line("  size of an event", f"{size:.1f} bytes", "<= 40", size <= 40)
        with open_trace(path) as trace:
            rng = random.Random(1)
            questions: dict[str, Callable[[int], object]] = {
                "event": trace.event,
                "state_at": trace.state_at,
                "why": trace.why,
            }
            for name, ask in questions.items():
                times = []
                for _ in range(QUESTIONS):
                    seq = rng.randrange(count)
                    started = time.perf_counter()
                    ask(seq)
                    times.append((time.perf_counter() - started) * 1000)
                worst = sorted(times)[-2]
                line(f"  {name}, the second worst of {QUESTIONS}", f"{worst:.1f} ms", "<= 50 ms",
                     worst <= 50)  # fmt: skip
            started = time.perf_counter()
            for _ in trace.stored.events():
                pass
            line("  a scan of the whole", f"{time.perf_counter() - started:.1f} s", "", True)
            started = time.perf_counter()
            trace.story()
            told_s = time.perf_counter() - started
            line("  story of the whole", f"{told_s:.1f} s", "<= 15 s", told_s <= 15)
