"""A fault acts at its time, even while the expectation of an earlier fault is awaited."""

from __future__ import annotations

from fakekafka.scenarios.file import parse_scenario
from fakekafka.scenarios.run import ScenarioRun
from fakekafka.tracing.recording.recorder import Recorder

SCENARIO = """
[cluster]
brokers = 3
[cluster.topics.orders]
assignment = [[1, 2, 3]]
[[faults]]
at_ms = 500
action = "kill"
broker = 1
expect = "leader('orders', 0) == 2"
expect_within_ms = 30_000
[[faults]]
at_ms = 2000.251
action = "note"
text = "meanwhile"
[stop]
at_ms = 40_000
settle = false
"""


def test_a_fault_does_not_wait_for_a_pending_expectation() -> None:
    """The leader is elected after 18 s, when the session has expired; the second fault acts before
    that."""
    recorder = Recorder()
    run = ScenarioRun(parse_scenario(SCENARIO), 1, recorder)
    result = run.run()
    assert result.problems == []
    begun_us = run.begun_us
    assert begun_us is not None
    notes = [e.time_us - begun_us for e in recorder.events if e.why == "meanwhile"]
    assert notes == [2_000_251]


def test_a_failed_expectation_is_reported_when_its_time_is_over() -> None:
    """A fault in between does not prolong an expectation: its failure is reported when its time is
    over."""
    text = SCENARIO.replace("expect_within_ms = 30_000", "expect_within_ms = 5_000")
    result = ScenarioRun(parse_scenario(text), 1).run()
    assert result.problems == [
        "at 5500 ms: after kill: leader('orders', 0) == 2 does not hold within 5000 ms"
    ]
