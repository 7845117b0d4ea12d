"""Invariants of a recorded state, and the breakpoint at a broken invariant."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.tracing.debugger.breakpoints import Watcher, parse_breakpoint
from fakekafka.tracing.debugger.invariants import broken_invariant
from fakekafka.tracing.recording.recorder import Recorder

ONE, TWO = "broker-1/orders-0", "broker-2/orders-0"
GOOD = {
    f"{ONE}/role": "leader", f"{ONE}/leader_epoch": 3,
    f"{TWO}/role": "follower", f"{TWO}/leader_epoch": 3,
    f"{ONE}/high_watermark": 7, f"{ONE}/log_end_offset": 7,
    "broker-2/orders-10/role": "leader", "broker-2/orders-10/leader_epoch": 3,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, None),
        ({f"{ONE}/high_watermark": 8}, f"{ONE}: the high watermark 8 is beyond the log's end 7"),
        ({f"{TWO}/role": "leader"}, f"{TWO} and {ONE} both lead in leader epoch 3"),
        ({f"{TWO}/role": "leader", f"{TWO}/leader_epoch": 4}, None),
        ({"zk-1/znodes/x": 8}, None),
    ],
)
def test_a_broken_invariant_is_named(changes: dict[str, Any], told: str | None) -> None:
    """A broken invariant is named; a deposed leader may still lead its old leader epoch."""
    assert broken_invariant({**GOOD, **changes}, changes) == told


def test_a_run_stops_where_an_invariant_breaks() -> None:
    """The ``invariant`` breakpoint stops at the first event after which an invariant is broken."""
    recorder = Recorder()
    for number, (path, value) in enumerate(
        [("log_end_offset", 5), ("high_watermark", 5), ("high_watermark", 6)]
    ):
        recorder.event(number, "note", "broker-1", None, None, None, None)
        recorder.state(number, f"{ONE}/{path}", None, value)
    watcher = Watcher([parse_breakpoint("invariant")], {})
    met = [
        watcher.advance(raw, recorder.strings, recorder.decoded) for raw in recorder.raw_since(0)
    ]
    assert met[:2] == [None, None]
    assert met[2] is not None
    assert "the high watermark 6 is beyond" in met[2][1]
