"""Expressions, filters, causes and effects, ranges, and state of a trace."""

from __future__ import annotations

import pytest
from fakekafka.protocol.errors import UsageError
from fakekafka.tests.support.traces import ORDERS_0, record_failover, record_fetches
from fakekafka.tracing.expressions import compile_expression, parse_duration_us
from fakekafka.tracing.reading import causes, queries
from fakekafka.tracing.reading.positions import first_seq_at
from fakekafka.tracing.reading.state_history import changes, path_matches, state_at
from fakekafka.tracing.recording.recorder import Recorder
from fakekafka.tracing.trace import StoredTrace

assert ORDERS_0


@pytest.fixture
def trace() -> StoredTrace:
    return record_failover(Recorder()).trace()


def seqs(trace: StoredTrace, text: str) -> list[int]:
    return [event.seq for event in queries.grep(trace, queries.compile_filter(text, trace))]


FILTERS = {
    "kind == crash": 1,
    "type==LeaderAndIsrRequest and actor=='broker-2'": 1,
    'type=="LeaderAndIsrRequest" and kind == deliver': 3,
    "type==LeaderAndIsrRequest and epochs.leader > 0": 4,
    "partition_states[0].leader == 2": 4,
    "payload.partition_states.leader == [2]": 4,
    "leader > 0": 0,
    "t >= 9": 3,
    "time_us < 1000": 1,
    "why != None and not contains(why, 'killed')": 2,
    "matches(actor, '^broker-[23]$') and kind in (deliver, send)": 5,
    "peer == 'zk-1' or actor == 'zk-1'": 2,
    "msg == 1": 2,
    "7.0 <= t < 7.1": 6,
    "len(partitions) == 1 and acks == -1": 5,
    "1 if kind == crash else 0": 1,
}


@pytest.mark.parametrize(("text", "count"), FILTERS.items())
def test_filters(trace: StoredTrace, text: str, count: int) -> None:
    """Filter expressions of ``grep`` select the expected number of events."""
    assert len(seqs(trace, text)) == count


REFUSED = {
    "tpye == 3": r"unknown name 'tpye' at column 1; the nearest .*; did you mean 'type'\?$",
    "xyzzy == 3": r"'xyzzy' at column 1; the nearest of \d+ names are( [^, ]+,){9} [^, ]+$",
    "leaderepoch == 3": " names are leader_epoch, .*; did you mean 'leader_epoch'",
    "type = 3": "write == to compare",
    "__import__('os')": r"unknown function __import__\(\)",
    "actor.__class__": "names beginning with _ are not allowed",
    "actor.upper()": "only plain calls of the known functions",
    "[x for x in actor]": "is not part of the expression language",
    "lambda: 1": "is not part of the expression language",
    "f'{actor}'": "is not part of the expression language",
    "actor[1:2]": "slices are not allowed",
    "len(x=actor)": "only plain calls",
    "2 ** 9999": "is not allowed",
    "...": "is not allowed",
    "lenn(actor)": r"did you mean len\(\)\?",
    "": "at column",
    "not " * 999 + "seq": "nested too deeply|too many|parser",
    "seq + " * 3000 + "1": "longer than",
}


@pytest.mark.parametrize(("text", "message"), REFUSED.items(), ids=range(len(REFUSED)))
def test_refused_expressions(trace: StoredTrace, text: str, message: str) -> None:
    """An expression outside the filter language is refused, with a message about the mistake."""
    with pytest.raises(UsageError, match=message):
        queries.compile_filter(text, trace)


def test_attributes_cannot_reach_methods() -> None:
    """An attribute that is callable evaluates to None."""
    expression = compile_expression("x.upper", lambda scope, name: scope, ["x"])
    assert expression.evaluate("text") is None


def test_huge_values_are_not_built() -> None:
    """Multiplication of strings is not evaluated."""
    expression = compile_expression("'a' * 999999999 == 1", lambda scope, name: None, [])
    assert not expression.holds(None)


def test_filters_skip_chunks_that_cannot_match() -> None:
    """A filter on an actor does not decode chunks without the actor."""
    recorder = record_fetches(Recorder(), 3000)
    recorder.event(0, "note", "someone", None, None, None, None, "x")
    trace = recorder.trace()
    decoded: list[int] = []
    body = trace._body

    def watched(index: int) -> object:
        decoded.append(index)
        return body(index)

    trace._body = watched  # type: ignore[method-assign]
    assert seqs(trace, "actor == someone and seq > 5") == [3000]
    assert decoded == [3]


def test_then_within(trace: StoredTrace) -> None:
    """``grep_then`` finds an event followed by a second one within a duration."""
    first = queries.compile_filter("kind == crash", trace)
    then = queries.compile_filter("type == WatchEvent and kind == deliver", trace)
    pairs = list(queries.grep_then(trace, first, then, 7_000_000))
    assert [(a.kind, b.type) for a, b in pairs] == [("crash", "WatchEvent")]
    assert list(queries.grep_then(trace, first, then, 5_000_000)) == []
    assert len(list(queries.grep_then(trace, first, then, None))) == 1


RANGES = {
    None: (0, 22),
    "3:7": (3, 7),
    "#3": (3, 4),
    ":5": (0, 5),
    "15:": (15, 22),
    "-4:": (18, 22),
    "7s:7.1s": (9, 15),
    "7s:": (9, 22),
    "9s": (19, 22),
    "99s:": (22, 22),
    "0:999": (0, 22),
}


@pytest.mark.parametrize(("text", "expected"), RANGES.items())
def test_ranges(trace: StoredTrace, text: str | None, expected: tuple[int, int]) -> None:
    """Ranges take event numbers, times, open ends and negative numbers from the end."""
    assert queries.parse_range(text, trace) == expected


@pytest.mark.parametrize("text", ["x", "1:2:3", "3q:", "--5:"])
def test_bad_ranges(trace: StoredTrace, text: str) -> None:
    """The error for a bad range shows how to write one."""
    with pytest.raises(UsageError, match="write seqs or times"):
        queries.parse_range(text, trace)


@pytest.mark.parametrize(
    ("text", "us"), [("5s", 5_000_000), ("200ms", 200_000), ("3us", 3), ("1m", 60_000_000),
                     ("1.5", 1_500_000), (".5s", 500_000)]
)  # fmt: skip
def test_durations(text: str, us: int) -> None:
    """A duration is a number with a unit; without a unit it is in seconds."""
    assert parse_duration_us(text) == us


@pytest.mark.parametrize("text", ["", "s", "5 years", "-5s", "1e3s"])
def test_bad_durations(text: str) -> None:
    """The error for a bad duration shows how to write one."""
    with pytest.raises(UsageError, match="write it like 5s"):
        parse_duration_us(text)


def test_why_walks_from_delivery_to_sending_to_cause(trace: StoredTrace) -> None:
    """The chain of a new leader's LeaderAndIsr leads to the controller's watch event."""
    arrival = seqs(trace, "type == LeaderAndIsrRequest and kind == deliver and actor == 'broker-2'")
    chain = causes.chain_of(trace, arrival[0])
    assert [(event.kind, event.type) for event in chain] == [
        ("deliver", "LeaderAndIsrRequest"),
        ("send", "LeaderAndIsrRequest"),
        ("deliver", "WatchEvent"),
        ("send", "WatchEvent"),
    ]
    assert len(causes.chain_of(trace, arrival[0], limit=1)) == 2


def test_effects_form_a_tree(trace: StoredTrace) -> None:
    """The effects of a watch event form a tree: two requests and their deliveries."""
    root = causes.effects(trace, seqs(trace, "type == WatchEvent")[0])
    assert root.is_whole
    assert [child.event.kind for child in root.children] == ["deliver"]
    sends = root.children[0].children
    assert [(s.event.peer, [a.event.kind for a in s.children]) for s in sends] == [
        ("broker-2", ["deliver"]),
        ("broker-3", ["deliver"]),
    ]


def test_effects_are_limited(trace: StoredTrace) -> None:
    """A tree of effects that a limit cut is marked as not whole."""
    seq = seqs(trace, "type == WatchEvent")[0]
    assert not causes.effects(trace, seq, limit=2).is_whole
    root = causes.effects(trace, seq, depth=1)
    assert root.is_whole
    assert root.children[0].children == []


def test_watch_yields_every_recorded_change(trace: StoredTrace) -> None:
    """``changes`` yields every recorded change of a path in order, with its event."""
    found = [
        (change.path, change.event.time_us, change.old, change.new)
        for change in changes(trace, "broker-*/orders-0/leader")
    ]
    assert found == [
        ("broker-1/orders-0/leader", 1_250, None, 1),
        ("broker-2/orders-0/leader", 7_001_250, 1, 2),
    ]


def test_state_at_a_step(trace: StoredTrace) -> None:
    """``state_at`` returns the state after an event, for all or one actor or path."""
    assert state_at(trace, 2) != {}
    early = state_at(trace, 2, actor="broker-1", pattern="broker-1/orders-0")
    assert early["broker-1/orders-0/leader"] == 1
    assert state_at(trace, 0) == {}
    assert list(state_at(trace, 21)) == sorted(state_at(trace, 21))


def test_path_patterns() -> None:
    """A path pattern matches the path itself and everything below."""
    assert path_matches("broker-1/orders-0/hw", "broker-1/orders-0")
    assert not path_matches("broker-1/orders-01/hw", "broker-1/orders-0")
    assert path_matches("broker-1/orders-0/hw", "*/hw")


def test_every_step_of_a_run_has_an_ancestor_before_it(trace: StoredTrace) -> None:
    """The parent of every event is an earlier event."""
    for event in trace.events():
        parent = causes.parent_of(trace, event)
        assert parent is None or parent.seq < event.seq


def test_events_of_long_traces_are_found_by_time() -> None:
    """A time is mapped to an event with the index of chunks."""
    trace = record_fetches(Recorder(), 5000).trace()
    assert first_seq_at(trace, 32_015) == 3202
    assert trace.event(4321).fields["partitions"][0]["fetch_offset"] == 4321
    assert next(iter(trace.backwards(2000))).seq == 2000
