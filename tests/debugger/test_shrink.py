"""Shrinking a scenario to the parts that break its promise."""

from __future__ import annotations

import pytest
from fakekafka import UsageError
from fakekafka.debugger.shrink import shrink
from fakekafka.scenarios.file import load_scenario, parse_scenario
from fakekafka.scenarios.run import ScenarioRun
from fakekafka.tests.support.scenario_texts import ORDERS_ON_THREE_BROKERS

SCENARIO = f"""
name = "long"
{ORDERS_ON_THREE_BROKERS}
[network]
latency = {{ uniform_ms = [0.1, 0.4] }}
[[workload]]
rate_per_s = 5
consumers = 1
[[faults]]
at_ms = 200
action = "note"
text = "begins"
[[faults]]
at_ms = 300
action = "pause"
broker = 3
[[faults]]
at_ms = 500
action = "kill"
broker = 1
[[faults]]
at_ms = 900
action = "resume"
broker = 3
[stop]
at_ms = 3000
settle = false
[[expect]]
that = "alive(2)"
[[expect]]
that = "alive(1)"
"""


def test_shrinking_keeps_only_the_parts_that_break_the_promise() -> None:
    """Shrinking leaves one of four faults and one of two expectations in a runnable scenario."""
    told: list[str] = []
    result = shrink(SCENARIO, None, 5, told.append)
    small = parse_scenario(result.text)
    assert [fault.action for fault in small.faults] == ["kill"]
    assert [expect.that.text for expect in small.expect] == ["alive(1)"]
    assert small.workloads == ()
    assert small.seed == 5
    assert "alive(1) does not hold" in result.problem
    assert ScenarioRun(small).run().problems == [result.problem]
    assert told == list(result.dropped)
    assert any("pause" in line for line in told)


def test_shrinking_tries_to_remove_each_part_once() -> None:
    """A part that one attempt removed does not come back with the next."""
    result = shrink(SCENARIO + "[costs]\nbroker_request_ms = 0.01\n", None, 5)
    assert len(set(result.dropped)) == len(result.dropped)
    assert {"network", "costs"} <= set(result.dropped)


def test_shrinking_refuses_a_run_without_a_broken_promise_and_a_story() -> None:
    """Shrinking refuses a run without a broken promise, and a story."""
    kept = SCENARIO.replace('that = "alive(1)"', 'that = "alive(2)"')
    with pytest.raises(UsageError, match="breaks no promise"):
        shrink(kept)
    with pytest.raises(UsageError, match="ordered script"):
        shrink(load_scenario("kip_101_loss").text)
