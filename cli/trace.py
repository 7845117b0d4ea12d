"""``fakekafka trace``: look into a recorded run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from ..protocol.errors import FakeKafkaError, UsageError
from ..tracing import queries
from ..tracing.events import Event, jsonable
from ..tracing.expressions import parse_duration_us
from ..tracing.text import format_event, format_time
from ..tracing.trace import Trace, TraceReader
from .exits import DOES_NOT_HOLD, end_with_error

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Look into a recorded run. Events are addressed by seq (#1234), times are virtual.",
)

File = Annotated[Path, typer.Argument(help="a .fktrace file")]
Seq = Annotated[str, typer.Argument(help="seq of an event, such as 1234 or #1234")]
Json = Annotated[bool, typer.Option("--json", help="machine-readable output")]
Verbose = Annotated[
    int, typer.Option("-v", "--verbose", count=True, help="-v whole payload, -vv state changes")
]


@contextmanager
def _opened(file: Path) -> Iterator[TraceReader]:
    """The trace in a file; what is wrong with it or with the question ends with status 2."""
    try:
        with TraceReader(file) as trace:
            if trace.problem is not None:
                print(f"warning: {trace.problem}; showing what is whole", file=sys.stderr)
            yield trace
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has seen enough
        raise typer.Exit(0) from None
    except FakeKafkaError as error:
        end_with_error(str(error))


def _seq(text: str) -> int:
    digits = text.removeprefix("#")
    if not digits.isdigit():
        raise UsageError(f"{text!r} is no event; write its seq, such as 1234 or #1234")
    return int(digits)


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False))


def _print_events(events: Iterable[Event], verbose: int, as_json: bool) -> int:
    count = 0
    for event in events:
        count += 1
        if as_json:
            _print_json(event.as_dict())
        else:
            print(format_event(event, verbose))
    return count


@app.command()
def info(file: File, as_json: Json = False) -> None:
    """Header, counts, duration, faults, fingerprint, and how to run it again."""
    with _opened(file) as trace:
        kinds, types = trace.counts()
        interesting = [trace.event(seq) for seq in trace.interesting()]
        if as_json:
            _print_json(
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
    trace: Trace, kinds: dict[str, int], types: dict[str, int], interesting: list[Event]
) -> None:
    header = trace.header
    for name in ("mode", "seed", "kafka_version", "fakekafka", "python", "part"):
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
        print(f"{'outline':<14} {trace.outline} (order of events only, as batches report it)")
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


# A range may begin with a minus, which must not be taken for an option.
@app.command(context_settings={"ignore_unknown_options": True})
def show(
    file: File,
    range_: Annotated[
        str | None, typer.Argument(metavar="RANGE", help="100:200, #100, 1.5s:2s, :50, -20:")
    ] = None,
    verbose: Verbose = 0,
    as_json: Json = False,
) -> None:
    """One line per event, in fixed columns."""
    with _opened(file) as trace:
        start, stop = queries.parse_range(range_, trace)
        _print_events(trace.events(start, stop), verbose, as_json)


@app.command()
def grep(
    file: File,
    expression: Annotated[
        str, typer.Argument(help="such as: type==LeaderAndIsrRequest and actor=='broker-3'")
    ],
    then: Annotated[str | None, typer.Option(help="an event that must follow")] = None,
    within: Annotated[str | None, typer.Option(help="how soon: 5s, 200ms")] = None,
    range_: Annotated[str | None, typer.Option("--range", help="only events there")] = None,
    count: Annotated[bool, typer.Option("--count", help="only how many")] = False,
    verbose: Verbose = 0,
    as_json: Json = False,
) -> None:
    """Events for which an expression holds; exit status 1 when there is none.

    Columns: seq, t (seconds), kind, actor, peer, type, msg, cause, op, epochs.controller,
    epochs.leader, epochs.zk_version, why, payload.FIELD (or just FIELD).
    """
    with _opened(file) as trace:
        if within is not None and then is None:
            raise UsageError("--within belongs to --then EXPRESSION")
        start, stop = queries.parse_range(range_, trace)
        first = queries.compile_filter(expression, trace)
        if then is None:
            events = queries.grep(trace, first, start, stop)
            found = sum(1 for _ in events) if count else _print_events(events, verbose, as_json)
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
            _print_json([one.as_dict(), other.as_dict()])
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
    """State after an event: recorded changes, and what messages told (marked ~)."""
    from ..tracing.told_state import MESSAGE, state_at

    with _opened(file) as trace:
        state = state_at(trace, _seq(seq), actor, path)
        if as_json:
            _print_json(
                {
                    name: {"value": jsonable(c.new), "seq": c.event.seq, "source": c.source}
                    for name, c in state.items()
                }
            )
        for name, change in () if as_json else state.items():
            mark = "~" if change.source == MESSAGE else " "
            print(f"{mark} {name} = {jsonable(change.new)}  (#{change.event.seq})")
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
    """Every change of a piece of state; ~ marks what only a message told."""
    from ..tracing.told_state import MESSAGE, changes

    found = 0
    with _opened(file) as trace:
        for change in changes(trace, path):
            found += 1
            event, old, new = change.event, jsonable(change.old), jsonable(change.new)
            if as_json:
                _print_json(
                    {
                        "seq": event.seq,
                        "time_us": event.time_us,
                        "path": change.path,
                        "old": old,
                        "new": new,
                        "source": change.source,
                    }
                )
                continue
            mark = "~" if change.source == MESSAGE else " "
            when = format_time(event.time_us)
            print(f"{mark} #{event.seq:<7d} {when:>13} {change.path}: {old} -> {new}")
    if not found:
        print(f"nothing in this trace changes {path}", file=sys.stderr)
        raise typer.Exit(DOES_NOT_HOLD)


@app.command()
def why(file: File, seq: Seq, verbose: Verbose = 0, as_json: Json = False) -> None:
    """The chain of causes that led to an event, the event first."""
    with _opened(file) as trace:
        chain = queries.why(trace, _seq(seq))
        if as_json:
            _print_json([event.as_dict() for event in chain])
            return
        for depth, event in enumerate(chain):
            print(("" if depth == 0 else "because ") + format_event(event, verbose))


@app.command()
def effects(
    file: File,
    seq: Seq,
    limit: Annotated[int, typer.Option(help="at most so many events")] = 200,
    depth: Annotated[int | None, typer.Option(help="at most so many steps")] = None,
    as_json: Json = False,
) -> None:
    """What an event led to, as a tree."""
    with _opened(file) as trace:
        root, cut = queries.effects(trace, _seq(seq), limit, depth)
        if as_json:
            _print_json({"tree": _tree(root), "complete": not cut})
            return
        waiting = [root]
        while waiting:
            node = waiting.pop()
            print("  " * node.depth + format_event(node.event))
            waiting += reversed(node.children)
        if cut:
            print(f"... cut off after {limit} events; --limit shows more")


def _tree(root: queries.Effect) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    waiting: list[tuple[queries.Effect, dict[str, Any]]] = [(root, tree)]
    while waiting:
        node, place = waiting.pop()
        place.update(node.event.as_dict())
        place["effects"] = [{} for _ in node.children]
        waiting += zip(node.children, place["effects"], strict=True)
    return tree


@app.command()
def diff(
    left: File,
    right: Annotated[Path, typer.Argument(help="another .fktrace file")],
    lines: Annotated[int, typer.Option(help="events of each run to align")] = 30,
    as_json: Json = False,
) -> None:
    """Where two runs part: the first differing event, then both aligned; status 1 if different."""
    from ..tracing.diff import aligned, first_difference

    with _opened(left) as a, _opened(right) as b:
        difference = first_difference(a, b)
        if as_json:
            _print_json(
                {
                    "different": difference is not None,
                    "seq": difference.seq if difference else None,
                    "columns": list(difference.columns) if difference else [],
                    "left": _maybe(difference.left if difference else None),
                    "right": _maybe(difference.right if difference else None),
                }
            )
        elif difference is None:
            print(f"the same {len(a)} events")
        else:
            print(f"first difference at {difference.describe()}")
            for line in aligned(a, b, difference.seq, lines):
                if line.left is not None:
                    print(f"{line.mark if line.mark != '~' else '<'} {format_event(line.left)}")
                if line.right is not None and line.mark in "+~":
                    print(f"{line.mark if line.mark != '~' else '>'} {format_event(line.right)}")
    if difference is not None:
        raise typer.Exit(DOES_NOT_HOLD)


def _maybe(event: Event | None) -> dict[str, Any] | None:
    return None if event is None else event.as_dict()


def _runner() -> Callable[[dict[str, Any], Any], object]:
    from ..testing.scenarios import run_from_header

    return run_from_header


@app.command()
def verify(file: File, as_json: Json = False) -> None:
    """Run the scenario of a trace again and compare fingerprints; status 1 if they differ."""
    from ..tracing.verify import verify as run_again

    with _opened(file) as trace:
        verdict = run_again(trace, _runner())
        difference = verdict.difference
        if as_json:
            _print_json(
                {
                    "holds": verdict.holds,
                    "recorded": verdict.recorded,
                    "replayed": verdict.replayed,
                    "events": verdict.events,
                    "first_difference": difference.describe() if difference else None,
                }
            )
        elif verdict.holds:
            print(f"verified: {verdict.events} events, fingerprint {verdict.recorded}")
        else:
            print(f"the run came out otherwise: {verdict.recorded} in the file,")
            print(f"{verdict.replayed} now ({verdict.events} events)")
            print(f"first difference at {difference.describe()}" if difference else "")
    if not verdict.holds:
        raise typer.Exit(DOES_NOT_HOLD)


@app.command("slice")
def slice_(
    file: File,
    out: Annotated[Path, typer.Option("-o", "--out", help="the smaller trace")],
    actor: Annotated[list[str] | None, typer.Option(help="events at or with it")] = None,
    op: Annotated[int | None, typer.Option(help="events of this client operation")] = None,
    time: Annotated[str | None, typer.Option(help="a span such as 1.5s:2s")] = None,
) -> None:
    """A smaller trace of some events, still valid; seqs stay what they were."""
    from ..tracing.slices import write_slice

    with _opened(file) as trace:
        if not actor and op is None and time is None:
            raise UsageError("slice needs --actor, --op or --time")
        if out.exists() and out.samefile(file):
            raise UsageError(f"{out} is the trace itself; give -o another name")
        lanes = trace.actors()
        for name in actor or ():
            if name not in lanes:
                raise UsageError(f"no actor {name!r} in this trace; there are {', '.join(lanes)}")
        start_us, stop_us = _span(time)
        source = trace.events() if op is None else iter(queries.of_operation(trace, op))
        chosen = queries.selected(
            source,
            actors=frozenset(actor) if actor else None,
            start_us=start_us,
            stop_us=stop_us,
        )
        words = [f"--actor {name}" for name in actor or ()]
        words += [f"--op {op}"] if op is not None else []
        words += [f"--time {time}"] if time is not None else []
        try:
            count = write_slice(trace, chosen, out, " ".join(words))
        except OSError as error:
            raise UsageError(f"{out}: cannot be written: {error.strerror}") from None
        print(f"{count} of {len(trace)} events written to {out}")


def _span(text: str | None) -> tuple[int | None, int | None]:
    if text is None:
        return None, None
    first, colon, last = text.partition(":")
    if not colon:
        raise UsageError(f"--time takes a span such as 1.5s:2s, not {text!r}")
    return (
        parse_duration_us(first) if first else None,
        parse_duration_us(last) if last else None,
    )


@app.command()
def export(
    file: File,
    to: Annotated[str, typer.Option("--to", help="text")] = "text",
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="default: standard output")
    ] = None,
) -> None:
    """The trace in another form: ``text`` is what golden files hold."""
    with _opened(file) as trace:
        if to != "text":
            raise UsageError(f"cannot export to {to!r}; there is: text")
        if out is None:
            _print_events(trace.events(), 0, False)
            return
        try:
            with out.open("w", encoding="utf-8") as stream:
                stream.writelines(format_event(event) + "\n" for event in trace.events())
        except OSError as error:
            raise UsageError(f"{out}: cannot be written: {error.strerror}") from None
        print(f"{len(trace)} events written to {out}")


@app.command()
def story(file: File, as_json: Json = False) -> None:
    """Who died, who noticed, who was elected, how long partitions were unavailable."""
    from ..tracing.timeline import timeline

    with _opened(file) as trace:
        lines = timeline(trace.events())
        if as_json:
            _print_json([{"time_ms": time_ms, "text": text} for time_ms, text in lines])
            return
        for time_ms, text in lines:
            print(f"{time_ms:12.3f} ms  {text}")
