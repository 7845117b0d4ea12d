"""docs/reference/scenarios.md has every key, action and question, and its example runs."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest
from fakekafka.scenarios import spec
from fakekafka.scenarios.actions import ACTIONS
from fakekafka.scenarios.conditions import NAMES, QUESTIONS
from fakekafka.scenarios.file import parse_scenario
from fakekafka.scenarios.run import ScenarioRun
from fakekafka.scenarios.verdict import METRICS
from fakekafka.tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "reference" / "scenarios.md").read_text("utf-8")
NOT_KEYS = {"workloads", "topics", "story", "text", "source", "parameters", "arguments", "settings"}
"""Fields that are not keys of the file under the same name."""


def keys() -> list[str]:
    """Return the names of the fields of all parts of a scenario."""
    parts = (
        spec.ScenarioSpec, spec.ClusterSpec, spec.TopicSpec, spec.NetworkSpec, spec.LinkSpec,
        spec.WorkloadSpec, spec.GroupSpec, spec.TransformerSpec, spec.FaultSpec, spec.StopSpec,
        spec.ExpectSpec,
    )  # fmt: skip
    names = {field.name for part in parts for field in fields(part)} - NOT_KEYS
    return sorted(names | {"workload"})


def is_documented(name: str) -> bool:
    """Return True if the page has the key in a table, in a section's title or in running text."""
    return re.search(rf"`{name}[`( ]|^## {name}$", PAGE, re.MULTILINE) is not None


@pytest.mark.parametrize("name", [*keys(), *ACTIONS, *METRICS, *NAMES, *QUESTIONS])
def test_every_name_of_a_scenario_is_in_the_reference(name: str) -> None:
    assert is_documented(name), f"docs/reference/scenarios.md does not have `{name}`"


def test_a_name_that_is_missing_is_noticed() -> None:
    assert not is_documented("nothing_of_this_name")


def test_the_example_of_the_reference_holds() -> None:
    """The one TOML block of the reference is a scenario that runs and meets its expectations."""
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    run = ScenarioRun(parse_scenario(example, "reference.toml"), seed=1)
    assert run.run().problems == []
    assert run.result.metrics["acknowledged"] == 2001


def test_the_defaults_in_the_reference_equal_those_of_the_parser() -> None:
    scenario = parse_scenario("[cluster.topics.orders]\n[workload]\n", "least.toml")
    (workload,) = scenario.workloads
    told = {
        "brokers": scenario.cluster.brokers,
        "zookeepers": scenario.cluster.zookeepers,
        "loss": scenario.network.loss,
        "rate_per_s": workload.rate_per_s,
        "in_flight": workload.in_flight,
        "record_bytes": workload.record_bytes[0],
        "linger_ms": workload.linger_ms,
        "at_ms": scenario.stop.at_ms,
        "settle_timeout_ms": scenario.stop.settle_timeout_ms,
        "seed": scenario.seed,
    }
    for name, value in told.items():
        assert f"| `{name}` | {value:,.10g} |" in PAGE, name
    assert f"constant_ms = {scenario.network.latency['constant_ms']:g}" in PAGE
    assert (workload.producers, workload.consumers, workload.idempotent) == (1, 0, True)
    assert scenario.stop.settle
