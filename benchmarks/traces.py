"""The cost of recording a run, and the duration of queries on a long trace."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.figures import line, sized

if TYPE_CHECKING:
    from fakekafka.tracing.recording.recorder import Recorder

EVENTS = sized(1_000_000, 5_000)
WAITING = sized(150_000, 2_000)
"""Number of events of a run whose recording stays in memory unprocessed until it is read."""
PARTITIONS = 12
QUESTIONS = sized(100, 3)
ROUNDS = sized(5, 1)
OWN_EVENTS = 0.462
"""Events that the simulation handles per recorded event; sends are also recorded."""


class Costs(NamedTuple):
    """The time of a run, including the end of its recording."""

    wall_s: float
    cpu_s: float


def _run(recorder: Any, events: int) -> Costs:
    """Return the costs of a cluster under load until the simulation has run ``events`` events."""
    from fakekafka import Simulation

    topics = {"orders": PARTITIONS}
    with Simulation(3, seed=1, topics=topics, recorder=recorder, trace=False) as simulation:
        producer = simulation.producer(acks="all", linger_ms=5)
        simulation.consumer([("orders", number) for number in range(PARTITIONS)])
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        while simulation.runtime.handled < events:
            for number in range(PARTITIONS):
                producer.produce(("orders", number), b"x" * 50)
            simulation.run_for(10)
        if recorder is not None:
            recorder.close()
        return Costs(time.perf_counter() - wall_s, time.process_time() - cpu_s)


def _recorder(path: Path) -> Recorder:
    from fakekafka.tracing.header import build_header
    from fakekafka.tracing.recording.recorder import Recorder
    from fakekafka.tracing.recording.writer import TraceWriter

    return Recorder(TraceWriter(path, build_header(mode="sim", kafka_version="3.9", seed=1)))


def record_long(path: Path, events: int) -> int:
    """Record a run of about ``events`` events; return their exact number."""
    recorder = _recorder(path)
    _run(recorder, int(events * OWN_EVENTS))
    return len(recorder)


def _slowdown(recorder: Callable[[], Recorder], events: int) -> Costs:
    """Return the shares by which recording lengthens the wall time and the CPU time of a run,
    including the end of the recording. Takes the minimum of some rounds, in turns."""
    plain, recorded = [], []
    for _ in range(ROUNDS):
        plain.append(_run(None, int(events * OWN_EVENTS)))
        recorded.append(_run(recorder(), int(events * OWN_EVENTS)))
    wall, cpu = (
        min(costs[index] for costs in recorded) / min(costs[index] for costs in plain) - 1
        for index in (0, 1)
    )
    return Costs(wall, cpu)


def _report_slowdown(title: str, slowdown: Costs) -> None:
    lost_speed = slowdown.wall_s / (1 + slowdown.wall_s)
    line(f"{title}, of the simulation's speed", f"-{lost_speed:.0%}", "<= 30 %", lost_speed <= 0.3)
    line("  in wall time", f"+{slowdown.wall_s:.0%}", "", True)
    line("  in CPU time", f"+{slowdown.cpu_s:.0%}", "", True)


def _report_recording_costs(path: Path) -> None:
    """Print the cost of recording in memory, of reading the recording, and of writing a file."""
    from fakekafka.tracing.recording.recorder import Recorder

    _report_slowdown("recording that waits", _slowdown(Recorder, WAITING))
    recorder = Recorder()
    _run(recorder, int(WAITING * OWN_EVENTS))
    started = time.process_time()
    recorder.trace()
    read_us = (time.process_time() - started) * 1e6 / len(recorder)
    line("  to read it, CPU time", f"{read_us:.1f} us an event", "", True)
    _report_slowdown("recording to a file", _slowdown(lambda: _recorder(path), EVENTS))


def measure() -> None:
    """Print the costs of recording and of reading."""
    from fakekafka import open_trace

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.fktrace"
        _report_recording_costs(path)
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
            story_s = time.perf_counter() - started
            line("  story of the whole", f"{story_s:.1f} s", "<= 15 s", story_s <= 15)
