"""The suite ``failover`` and the story of its trace give one account of what was unavailable."""

from __future__ import annotations

import pytest
from fakekafka.spark_bench.suites.failover import (
    FailoverParameters,
    outage_columns,
    run_failover,
)
from fakekafka.tracing.recorder import Recorder
from fakekafka.tracing.story.timeline import crashes, timeline


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
    kafka_version: str, seed: int, more: dict[str, int]
) -> None:
    """Unavailability and its phases come from the same account, observed or recorded."""
    parameters = FailoverParameters.checked(
        kafka_version=kafka_version, session_timeout_ms=6000, **more
    )
    recorder = Recorder()
    recorded = run_failover(seed, parameters, recorder)["row"]
    (crash,) = crashes(recorder.events)
    worst = crash.worst
    assert worst is not None
    assert len(crash.outages) == recorded["partitions_led"]
    figures = outage_columns(crash, worst)
    assert figures == {name: recorded[name] for name in figures}
    assert figures["unavailable_ms"] > 0
    if worst.last_ack_us is not None:
        told = f"{worst.partition} takes records again"
        text = next(text for _, text in timeline(recorder.events) if text.startswith(told))
        assert text.endswith(f"unavailable for {recorded['unavailable_ms']:.1f} ms")


@pytest.mark.slow
def test_recording_a_run_changes_nothing_of_its_row() -> None:
    """The same row and the same histograms with a recorder and with a fingerprint alone."""
    parameters = FailoverParameters(session_timeout_ms=6000)
    assert run_failover(7, parameters, Recorder()) == run_failover(7, parameters)
