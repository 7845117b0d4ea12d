"""``fakekafka trace``: inspects a recorded run.

Verbs that query one run are here; verbs that compare runs are in ``trace_comparison``, those that
write files in ``trace_files``, shrinking and the full-screen view in ``debug``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from ..protocol.errors import UsageError
from ..tracing.events import Event, jsonable
from ..tracing.expressions import parse_duration_us
from ..tracing.fingerprint import UNSEEN_KINDS
from ..tracing.reading import causes, queries
from ..tracing.reading.places import seq_of
from ..tracing.reading.state_history import changes, state_at
from ..tracing.text import format_event, format_time
from ..tracing.trace import StoredTrace
from . import trace_comparison, trace_files
from .debug import trace_verbs
from .exits import DOES_NOT_HOLD
from .trace_app import File, Json, Seq, Verbose, app, opened, print_events, print_json

__all__ = ["app", "trace_comparison", "trace_files", "trace_verbs"]


@app.command()
def info(file: File, as_json: Json = False) -> None:
    """Show header, counts, duration, faults, fingerprint, and the command that repeats the run."""
    with opened(file) as trace:
        kinds, types = trace.counts()
        interesting = [trace.event(seq) for seq in trace.interesting()]
        if as_json:
            print_json(
                {
                    "header": jsonable(trace.header),
                    "events": len(trace),
                    "duration_us": trace.duration_us,
                    "complete": trace.problem is None,
                    "fingerprint": trace.fingerprint,
                    "outline": trace.outline,
                    "actors": trace.actors(),
                    "kinds": kinds,
                    "types": types,
                    "interesting": [event.as_dict() for event in interesting],
                }
            )
            return
        _print_info(trace, kinds, types, interesting)


def _print_info(
    trace: StoredTrace, kinds: dict[str, int], types: dict[str, int], interesting: list[Event]
) -> None:
    header = trace.header
    for name in ("mode", "seed", "hash_seed", "kafka_version", "fakekafka", "python", "part"):
        if header.get(name) not in (None, ""):
            print(f"{name:<14} {header[name]}")
    for name in ("parameters", "config"):
        for key, value in (header.get(name) or {}).items():
            print(f"{name:<14} {key} = {value}")
    first = (header.get("scenario") or "").strip().splitlines()
    if first:
        print(f"{'scenario':<14} {len(first)} lines, beginning: {first[0]}")
    print(f"{'events':<14} {len(trace)} in {len(trace.chunks)} chunks")
    print(f"{'duration':<14} {format_time(trace.duration_us)} s")
    print(f"{'fingerprint':<14} {trace.fingerprint or 'none: the run did not end in order'}")
    if trace.outline:
        seen = sum(number for kind, number in kinds.items() if kind not in UNSEEN_KINDS)
        print(f"{'outline':<14} {trace.outline} (order of {seen} events, as batches report both)")
    print(f"{'actors':<14} {', '.join(trace.actors())}")
    print(f"{'kinds':<14} " + ", ".join(f"{kind} {n}" for kind, n in kinds.items()))
    print("types")
    for name, number in sorted(types.items(), key=lambda item: (-item[1], item[0])):
        print(f"  {number:>9}  {name}")
    if interesting:
        print("faults")
        for event in interesting:
            print("  " + format_event(event))
    if header.get("reproduce"):
        print(f"{'reproduce':<14} {header['reproduce']}")


# A range may begin with a minus, which must not be parsed as an option.
@app.command(context_settings={"ignore_unknown_options": True})
def show(
    file: File,
    range_: Annotated[
        str | None, typer.Argument(metavar="RANGE", help="100:200, #100, 1.5s:2s, :50, -20:")
    ] = None,
    verbose: Verbose = 0,
    as_json: Json = False,
) -> None:
    """Print one line per event, in fixed columns."""
    with opened(file) as trace:
        start, stop = queries.parse_range(range_, trace)
        print_events(trace.events(start, stop), verbose, as_json)


@app.command()
def grep(
    file: File,
    expression: Annotated[
        str, typer.Argument(help="for example: type==LeaderAndIsrRequest and actor=='broker-3'")
    ],
    then: Annotated[
        str | None, typer.Option(help="expression for an event that must follow")
    ] = None,
    within: Annotated[str | None, typer.Option(help="how soon it must follow: 5s, 200ms")] = None,
    range_: Annotated[
        str | None, typer.Option("--range", help="only these events: 100:200, 1.5s:2s")
    ] = None,
    count: Annotated[bool, typer.Option("--count", help="print only the number of events")] = False,
    verbose: Verbose = 0,
    as_json: Json = False,
) -> None:
    """Print the events that match an expression. The exit status is 1 if there are none.

    Columns: seq, t (seconds), kind, actor, peer, type, msg, cause, epochs.controller,
    epochs.leader, epochs.zk_version, why, delta, payload.FIELD (or just FIELD).
    """
    with opened(file) as trace:
        if within is not None and then is None:
            raise UsageError("--within belongs to --then EXPRESSION")
        start, stop = queries.parse_range(range_, trace)
        first = queries.compile_filter(expression, trace)
        if then is None:
            events = queries.grep(trace, first, start, stop)
            found = sum(1 for _ in events) if count else print_events(events, verbose, as_json)
        else:
            limit = None if within is None else parse_duration_us(within)
            second = queries.compile_filter(then, trace)
            pairs = queries.grep_then(trace, first, second, limit, start, stop)
            found = _print_pairs(pairs, 0 if count else 1, verbose, as_json)
        if count:
            print(json.dumps({"count": found}) if as_json else found)
    if not found:
        raise typer.Exit(DOES_NOT_HOLD)


def _print_pairs(
    pairs: Iterable[tuple[Event, Event]], shown: int, verbose: int, as_json: bool
) -> int:
    found = 0
    for one, other in pairs:
        found += 1
        if not shown:
            continue
        if as_json:
            print_json([one.as_dict(), other.as_dict()])
        else:
            print(format_event(one, verbose))
            print(format_event(other, verbose))
            print(f"  after {(other.time_us - one.time_us) / 1000:.3f} ms")
    return found


@app.command()
def at(
    file: File,
    seq: Seq,
    path: Annotated[
        str | None, typer.Argument(help="broker-1/orders-0, with * as wildcard")
    ] = None,
    actor: Annotated[str | None, typer.Option(help="only this actor's state")] = None,
    as_json: Json = False,
) -> None:
    """Show the recorded state after an event."""
    with opened(file) as trace:
        state = state_at(trace, seq_of(trace, seq), actor, path)
        if as_json:
            print_json(
                {
                    name: {"value": jsonable(value), "seq": state.changed_at(name)}
                    for name, value in state.items()
                }
            )
        for name, value in () if as_json else state.items():
            print(f"{name} = {jsonable(value)}  (#{state.changed_at(name)})")
        if not state:
            print(f"nothing is known of {path or actor or 'any state'} at {seq}", file=sys.stderr)
    if not state:
        raise typer.Exit(DOES_NOT_HOLD)


@app.command()
def watch(
    file: File,
    path: Annotated[str, typer.Argument(help="broker-1/orders-0/leader, with * as wildcard")],
    as_json: Json = False,
) -> None:
    """Show every change of a piece of state."""
    found = 0
    with opened(file) as trace:
        for change in changes(trace, path):
            found += 1
            event, old, new = change.event, jsonable(change.old), jsonable(change.new)
            if as_json:
                print_json(
                    {
                        "seq": event.seq,
                        "time_us": event.time_us,
                        "path": change.path,
                        "old": old,
                        "new": new,
                    }
                )
                continue
            when = format_time(event.time_us)
            print(f"#{event.seq:<7d} {when:>13} {change.path}: {old} -> {new}")
    if not found:
        print(f"nothing in this trace changes {path}", file=sys.stderr)
        raise typer.Exit(DOES_NOT_HOLD)


@app.command()
def why(
    file: File,
    seq: Seq,
    every: Annotated[bool, typer.Option("--all", help="every step, including sends")] = False,
    verbose: Verbose = 0,
    as_json: Json = False,
) -> None:
    """Show the causes that led to an event, the event first."""
    with opened(file) as trace:
        chain = causes.why(trace, seq_of(trace, seq), is_folded=not every)
        if as_json:
            print_json([event.as_dict() for event in chain])
            return
        for depth, event in enumerate(chain):
            print(("" if depth == 0 else "because ") + format_event(event, verbose))


@app.command()
def effects(
    file: File,
    seq: Seq,
    limit: Annotated[int, typer.Option(help="maximum number of events")] = 200,
    depth: Annotated[int | None, typer.Option(help="maximum number of steps")] = None,
    as_json: Json = False,
) -> None:
    """Show the effects of an event as a tree."""
    with opened(file) as trace:
        root = causes.effects(trace, seq_of(trace, seq), limit, depth)
        if as_json:
            print_json({"tree": _tree(root), "complete": root.is_whole})
            return
        waiting = [root]
        while waiting:
            node = waiting.pop()
            print("  " * node.depth + format_event(node.event))
            waiting += reversed(node.children)
        if not root.is_whole:
            print(f"... cut off after {limit} events; --limit shows more")


def _tree(root: causes.Effect) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    waiting: list[tuple[causes.Effect, dict[str, Any]]] = [(root, tree)]
    while waiting:
        node, place = waiting.pop()
        place.update(node.event.as_dict())
        place["effects"] = [{} for _ in node.children]
        waiting += zip(node.children, place["effects"], strict=True)
    return tree


@app.command()
def story(file: File, as_json: Json = False) -> None:
    """Tell which brokers died, who noticed, who was elected, and how long partitions were
    unavailable."""
    from ..tracing.story.timeline import timeline

    with opened(file) as trace:
        lines = timeline(trace)
        if as_json:
            print_json([{"time_ms": time_ms, "text": text} for time_ms, text in lines])
            return
        for time_ms, text in lines:
            print(f"{time_ms:12.3f} ms  {text}")
