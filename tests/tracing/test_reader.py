"""``Trace``, the public API of a recorded run."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakekafka import Event, Simulation, Trace, TraceError, UsageError, open_trace
from fakekafka.tests.support.traces import write_failover
from fakekafka.tracing.chunk_view import column_places
from fakekafka.tracing.reading.state_history import State


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    path = tmp_path / "run.fktrace"
    write_failover(path)
    return open_trace(path)


def test_events_are_a_sequence(trace: Trace) -> None:
    """``events`` has a length, indexes and slices, and event numbers find the same events."""
    assert len(trace) == len(trace.events)
    assert isinstance(trace.events[0], Event)
    assert trace.events[-1].seq == trace.event(len(trace) - 1).seq
    assert [event.seq for event in trace.events[3:5]] == [3, 4]
    assert [event.seq for event in trace.between("#3", 4)] == [3, 4]


def test_a_position_is_a_number_an_event_or_a_time(trace: Trace) -> None:
    """A position may be a time, which selects the last event at or before it."""
    crash = next(trace.filter("kind == crash"))
    for position in (crash.seq, str(crash.seq), f"#{crash.seq}", crash, "1s", "1.05s", "1000ms"):
        assert trace.event(position).seq == crash.seq
    assert trace.event("999.999ms").seq == crash.seq - 1
    assert trace.event("1h".replace("h", "m")).seq == len(trace) - 1


def test_refused_positions(trace: Trace) -> None:
    """The error for a bad position shows a valid one; a missing event is named."""
    for position in ("soon", "9.5", "-1", "9 h", True, 1.5):
        with pytest.raises(UsageError, match=r"such as 1234 or #1234, or a time such as 9\.5s"):
            trace.event(position)  # type: ignore[arg-type]
    with pytest.raises(TraceError, match="there is no event #999"):
        trace.state_at(999)


def test_state_is_a_mapping_that_knows_its_changed_paths(trace: Trace) -> None:
    """A state maps paths to values, and knows the paths that its event changed."""
    took_over = next(trace.changes("broker-2/orders-0/role")).event
    state = trace.state_at(took_over, "broker-2")
    assert state["broker-2/orders-0/role"] == "leader"
    assert "broker-2/orders-0/isr" in state.changed
    assert all(path.startswith("broker-2/") for path in state)
    later = trace.state_at("9.4s")
    assert not later.changed
    assert later.last_change("broker-2/orders-0/role").event.seq == took_over.seq


def test_causes_and_effects(trace: Trace) -> None:
    """``why`` ends at the event's root, and ``effects`` returns the tree below an event."""
    request = [e for e in trace.filter("type == LeaderAndIsrRequest") if e.actor == "broker-2"]
    chain = trace.why(request[-1])
    assert [event.seq for event in chain] == sorted((e.seq for e in chain), reverse=True)
    tree = trace.effects(chain[-1])
    assert tree.is_whole
    assert tree.event.seq == chain[-1].seq
    assert not trace.effects(chain[-1], limit=1).is_whole


def test_a_trace_has_its_header_actors_and_duration(trace: Trace) -> None:
    """A trace has header, fingerprint, actors, duration and interesting events."""
    assert trace.header["seed"] == 42
    assert trace.problem is None
    assert trace.cannot_replay is None
    assert trace.duration_us == 9_500_250
    assert "broker-2" in trace.actors
    assert [event.kind for event in trace.interesting] == ["crash", "restart"]
    assert any("broker-1 is killed" in text for _, text in trace.story())
    trace.check()
    trace.close()


def test_an_event_read_alone_is_the_event_of_its_chunk(trace: Trace) -> None:
    """An event read alone equals the event read with its chunk: payload, epochs and changes."""
    stored = trace.stored
    assert any(event.epochs for event in trace.events)
    for index, info in enumerate(stored.chunks):
        view = None
        for is_kept in (True, False):
            view = stored.new_view(index, is_kept=is_kept)
            assert view is not None
            for whole in stored.chunk_events(index):
                alone = stored.event_of(view, whole.seq)
                assert alone.as_dict() == whole.as_dict()
                assert alone.payload == whole.payload
        assert view is not None
        told = [(e.seq, *change) for e in stored.chunk_events(index) for change in e.delta]
        named = [(seq, stored.strings[path], old, new) for seq, path, old, new in view.changes()]
        assert named == told
        assert info.events == len(view.heads())


def test_queries_decode_no_whole_chunk(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """``why``, ``state_at``, ``changes`` and ``story`` decode columns but no whole chunk."""
    expected = [event.as_dict() for event in trace.why(len(trace) - 1)]
    story = trace.story()
    trace.stored._cache.clear()
    monkeypatch.setattr(type(trace.stored), "raw_events", lambda *_: pytest.fail("decoded"))
    assert [event.as_dict() for event in trace.why(len(trace) - 1)] == expected
    assert trace.state_at(len(trace) - 1)["broker-2/orders-0/role"] == "leader"
    assert [change.new for change in trace.changes("broker-2/orders-0/role")][-1] == "leader"
    assert trace.story() == story


def test_positions_of_columns_in_the_index_match_the_body(trace: Trace) -> None:
    """The index has the places of a chunk's columns; without it they are computed."""
    stored = trace.stored
    said = list(stored._column_places)
    assert len(said) == len(stored.chunks)
    assert said == [column_places(stored._packed_body(n)) for n in range(len(said))]
    with pytest.raises(ValueError, match="parts"):
        column_places(b"\x90")


def test_malformed_columns_are_a_trace_error(trace: Trace) -> None:
    """An index with wrong places of columns causes a ``TraceError`` and no other error."""
    stored = trace.stored
    for places in stored._column_places:
        assert places is not None
        places[5:] = [1 << 40] * (len(places) - 5)
    with pytest.raises(TraceError, match="holds no events"):
        trace.why(len(trace) - 1)


def test_a_deleted_replica_has_no_state() -> None:
    """The state of a deleted replica is removed, and other replicas of the broker keep theirs."""
    with Simulation(2, topics={"old": 1, "orders": 1}, seed=1) as simulation:
        simulation.run_for(500)
        before = simulation.trace().state_at(len(simulation.trace()) - 1)
        simulation.delete_topic("old")
        simulation.run_for(3000)
        after = simulation.trace().state_at(len(simulation.trace()) - 1)

    def names(state: State, topic: str) -> set[str]:
        start = tuple(f"broker-{number}/{topic}-0/" for number in (1, 2))
        return {path.rpartition("/")[2] for path in state if path.startswith(start)}

    assert {"role", "leader", "leader_epoch", "isr"} <= names(before, "old")
    assert names(after, "old") == set()
    assert names(after, "orders") == names(before, "orders")
