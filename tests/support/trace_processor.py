"""A run as Perfetto's trace processor reads it.

Run it as ``python -m fakekafka.tests.support.trace_processor BINARY [TRACE]``.

Opens the Perfetto export of a trace with the library of the ``perfetto`` package and a binary of
``trace_processor_shell``, queries tracks, events, arrows and counters by SQL, and compares them
with the trace. The binary is in no package that pip, npm or apt could install, so no test needs it.
Without TRACE a failover is recorded.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from fakekafka import Simulation, Trace, open_trace
from fakekafka.tracing.exports import forms

_WITH_ARROWS = frozenset({"send", "release", "deliver", "drop"})
_NAMES_OF_TRACKS = "select name from process_track union all select name from track"
_INSTANTS = """
select track.name as track, slice.category as kind, count(*) as n from slice
join track on slice.track_id = track.id where slice.dur = 0 group by 1, 2
"""
_ARROWS = """
select t1.name as source, t2.name as target, count(*) as n from flow
join slice s1 on flow.slice_out = s1.id join track t1 on s1.track_id = t1.id
join slice s2 on flow.slice_in = s2.id join track t2 on s2.track_id = t2.id
group by 1, 2
"""
_COUNTERS = """
select counter_track.name as name, max(counter.value) as most from counter
join counter_track on counter.track_id = counter_track.id group by 1
"""
_ERRORS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"


def record(path: Path) -> None:
    """Record a run with a client, a crash and an election."""
    with Simulation(3, seed=1, topics={"orders": 2}) as simulation:
        producer = simulation.producer(acks="all")
        for number in range(20):
            producer.produce(("orders", number % 2), b"x" * 50)
        simulation.run_for(2_000)
        simulation.broker(2).kill()
        simulation.run_for(20_000)
        simulation.save(path)


def _ways(trace: Trace) -> Counter[tuple[str, str]]:
    """Return the ways of messages from sender to receiver, including where they were held."""
    ways: Counter[tuple[str, str]] = Counter()
    last: dict[int, str] = {}
    for event in trace.events:
        if event.kind not in _WITH_ARROWS or not event.message_id:
            continue
        before = last.get(event.message_id)
        if before is not None:
            ways[before, event.actor] += 1
        last[event.message_id] = event.actor
    return ways


def compare(trace: Trace, processor: Any) -> list[str]:
    """Return the differences between a trace and its export as the trace processor reads it."""

    def rows(sql: str) -> list[Any]:
        return [row.__dict__ for row in processor.query(sql)]

    differences = [f"the trace processor says {row}" for row in rows(_ERRORS)]
    tracks = {row["name"] for row in rows(_NAMES_OF_TRACKS)}
    differences += [f"there is no track {name}" for name in trace.actors if name not in tracks]
    events = Counter((event.actor, event.kind) for event in trace.events)
    shown = Counter({(row["track"], row["kind"]): row["n"] for row in rows(_INSTANTS)})
    differences += [
        f"{actor} has {count} events {kind!r}, shown are {shown[actor, kind]}"
        for (actor, kind), count in events.items()
        if shown[actor, kind] != count
    ]
    ways = _ways(trace)
    arrows = Counter({(row["source"], row["target"]): row["n"] for row in rows(_ARROWS)})
    differences += [
        f"{ways[way]} messages went from {way[0]} to {way[1]}, there are {arrows[way]} arrows"
        for way in sorted(ways.keys() | arrows.keys())
        if arrows[way] != ways[way]
    ]
    ends: dict[str, int] = {}
    for event in trace.events:
        for path, _, new in event.delta:
            if path.endswith("/log_end_offset") and new is not None:
                name = path.partition("/")[2]
                ends[name] = max(ends.get(name, 0), new)
    counted = {row["name"]: row["most"] for row in rows(_COUNTERS)}
    differences += [
        f"{name} goes up to {most}, its counter to {counted.get(name)}"
        for name, most in ends.items()
        if counted.get(name) != most
    ]
    print(
        f"{len(tracks)} tracks, {shown.total()} instants, {arrows.total()} arrows, "
        f"{len(counted)} counters; {len(differences)} differences"
    )
    return differences


def main() -> None:
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("binary", type=Path)
    parser.add_argument("trace", type=Path, nargs="?")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.trace or Path(folder) / "run.fktrace"
        if arguments.trace is None:
            record(path)
        with open_trace(path) as trace:
            exported = Path(folder) / "run.perfetto"
            forms.export_file(trace.stored, "perfetto", exported)
            config = TraceProcessorConfig(bin_path=str(arguments.binary))
            with TraceProcessor(trace=str(exported), config=config) as processor:
                differences = compare(trace, processor)
    for difference in differences:
        print(difference)
    raise SystemExit(1 if differences else 0)


if __name__ == "__main__":
    main()
