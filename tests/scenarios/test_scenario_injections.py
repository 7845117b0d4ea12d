"""Injections in scenario files: errors of single partitions, given answers, and no limit."""

from __future__ import annotations

import pytest
from fakekafka.scenarios.file import ScenarioError, parse_scenario
from fakekafka.scenarios.run import ScenarioRun

HEAD = """
[cluster.topics.orders]
assignment = [[1, 2, 3], [1, 2, 3]]
[workload]
rate_per_s = 100
[stop]
at_ms = 1000
settle = false
[[faults]]
at_ms = 0
action = "inject"
"""


def run(text: str) -> ScenarioRun:
    played = ScenarioRun(parse_scenario(HEAD + text, "injections.toml"))
    played.play()
    return played


def test_single_partitions_fail_until_the_end() -> None:
    """An injected error of one partition leaves the other partition of the topic its records."""
    played = run('api = "Produce"\nrequests = "all"\nerrors = {orders-0 = "NOT_ENOUGH_REPLICAS"}\n')
    ends = [played.simulation.partition("orders", n).log_end_offset for n in (0, 1)]
    assert ends[0] == 0
    assert ends[1] > 40
    (injection,) = played.simulation.injections
    assert injection.remaining is None
    played.simulation.stop()


def test_an_answer_is_written_as_its_fields() -> None:
    """A producer takes an injected answer for the broker's, and retries."""
    played = run(
        'api = "Produce"\nrequests = 2\n'
        "answer = {partitions = ["
        '{topic_partition = ["orders", 0], error = "NOT_ENOUGH_REPLICAS"}]}\n'
        'client_id = "workload-1-producer-1"\ntopic = "orders"\npartition = 0\n'
    )
    assert played.workloads[0].retries >= 2
    assert played.workloads[0].failed == 0
    assert played.simulation.partition("orders", 0).log_end_offset > 40
    played.simulation.stop()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("errors = {orders-7 = 'NONE'}", "errors: orders has partitions 0 to 1, not 7"),
        ("errors = {orders = 'NONE'}", "'orders' is no partition; write it like \"orders-0\""),
        ("errors = {}", "errors: must be errors by partition, such as {orders-0"),
        ("errors = {orders-0 = 'NON'}", "there is no error code 'NON'"),
        ("errors = {orders-0 = 'NONE'}\ntopic = 'orders'", "leave out topic and partition"),
        ("answer = {partition = []}", "answer has no 'partition'; did you mean 'partitions'"),
        ("answer = {}", "answer needs ['partitions']"),
        ("answer = {partitions = []}\nerror = 'NONE'", "inject takes one of error and answer"),
        ("error = 'NONE'\nrequests = 'some'", "must be a whole number >= 1, or 'all', not 'some'"),
    ],
)
def test_an_invalid_injection_is_refused(text: str, message: str) -> None:
    """A wrong injection is refused with the key at fault."""
    with pytest.raises(ScenarioError) as refused:
        parse_scenario(f'{HEAD}api = "Produce"\n{text}\n', "wrong.toml")
    assert message in str(refused.value)
    assert "faults[0]" in str(refused.value)
