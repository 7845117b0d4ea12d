"""The suite ``failover`` and the story of its trace give one account of what was unavailable."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakekafka.spark_bench.measuring.run import PHASES
from fakekafka.spark_bench.planning.carry_out import carry_out
from fakekafka.spark_bench.planning.plan import make_plan
from fakekafka.spark_bench.planning.recording import record
from fakekafka.tracing.story.timeline import read_story
from fakekafka.tracing.trace_file import TraceReader


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kafka_version", "seed", "more"),
    [
        ("0.10", 1, {}),
        ("1.1", 2, {}),
        ("2.8", 3, {"partitions": 5}),
        ("3.9", 4, {}),
        ("3.9", 5, {"rate_per_s": 1}),
    ],
)
def test_the_story_of_a_run_tells_the_figures_of_its_row(
    kafka_version: str, seed: int, more: dict[str, int], tmp_path: Path
) -> None:
    """Unavailability and its phases are the same in a batch, which keeps no event, and in the
    trace of that run; and the phases add up to the whole."""
    values = {"kafka_version": kafka_version, "session_timeout_ms": 6000, **more}
    plan = make_plan("failover", 1, seed, values=values, matrix={})
    row = carry_out(plan, plan.specs[0]).row
    assert row["status"] == "ok", row["problems"]
    path = tmp_path / "run.fktrace"
    assert record("failover", seed, values, path) == []
    with TraceReader(path) as trace:
        story = read_story(trace.events())
    crash = story.crashes[0]
    worst = crash.worst
    assert worst is not None
    assert worst.unavailable_us is not None
    assert worst.took_over_us is not None
    assert worst.first_ack_us is not None
    assert crash.noticed_us is not None
    assert len(crash.outages) == row["partitions_led"]
    assert row["unavailable_ms"] == worst.unavailable_us / 1000
    assert row["detect_ms"] == (crash.noticed_us - crash.crashed_us) / 1000
    assert row["elect_ms"] + row["propagate_ms"] == pytest.approx(
        (worst.took_over_us - crash.noticed_us) / 1000
    )
    assert row["client_ms"] == (worst.first_ack_us - worst.took_over_us) / 1000
    assert sum(row[name] for name in PHASES) == pytest.approx(row["unavailable_ms"])
    if worst.last_ack_us is not None:
        told = f"{worst.partition} takes records again"
        text = next(text for _, text in story.lines if text.startswith(told))
        assert text.endswith(f"unavailable for {row['unavailable_ms']:.1f} ms")


@pytest.mark.slow
def test_a_failover_is_felt_about_as_long_as_the_session_times_out() -> None:
    """Four seconds to nine with a session timeout of six, each phase at its place."""
    plan = make_plan("failover", 3, 1, values={"session_timeout_ms": 6000}, matrix={})
    rows = [carry_out(plan, spec).row for spec in plan.specs]
    assert all(row["status"] == "ok" for row in rows)
    assert 4_000 <= sorted(row["unavailable_ms"] for row in rows)[1] <= 9_000
    for row in rows:
        assert row["detect_ms"] > 10 * (row["elect_ms"] + row["propagate_ms"])
        assert min(row["elect_ms"], row["client_ms"]) > 0
        assert row["full_isr_ms"] > row["unavailable_ms"]
