"""Faults of scenario files have to name existing machines, brokers and directories."""

from __future__ import annotations

import re

import pytest
from fakekafka.scenarios.context import ScenarioError
from fakekafka.scenarios.file import parse_scenario
from fakekafka.scenarios.spec import ScenarioSpec

BASE = "[cluster.topics.orders]\n"


def parse(text: str) -> ScenarioSpec:
    return parse_scenario(BASE + text, "run.toml")


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ('action = "isolate"\nmachine = "client"', "no machine 'client'; did you mean 'clients'?"),
        ('action = "isolate"\nmachine = "broker1"', "did you mean 'broker-1'?"),
        ('action = "isolate"\nmachine = "zzz"', "no machine 'zzz'; there are broker-1, broker-2,"),
        ('action = "isolate"\nmachine = "load-producer-2"', "did you mean 'load-producer-1'?"),
        ('action = "partition"\ngroups = [[1], ["zk1"]]', "did you mean 'zk-1'?"),
        (
            'action = "drop"\nprobability = 1.0\nsource = "clients"\ntarget = "brker-1"',
            "did you mean 'broker-1'?",
        ),
        ('action = "kill"\nbroker = "contoller"', "did you mean 'controller'?"),
        (
            'action = "fail_log_dir"\nbroker = 1\ndirectory = 2',
            "no log directory 2; log.dirs has those from 0 to 0",
        ),
    ],
)
def test_a_fault_without_a_target_is_refused_with_the_nearest_name(
    fault: str, problem: str
) -> None:
    """The fault is refused before the scenario runs."""
    workload = '[[workload]]\nname = "load"\ntopic = "orders"\n'
    with pytest.raises(ScenarioError, match=re.escape(problem)):
        parse(f"{workload}[[faults]]\nat_ms = 1\n{fault}")


def test_machines_of_a_workload_can_be_named() -> None:
    text = '[[workload]]\nname = "load"\ntopic = "orders"\nconsumers = 1\n'
    for name in ("load-producer-1", "load-consumer-1", "clients", "admin"):
        fault = f'[[faults]]\nat_ms = 1\naction = "isolate"\nmachine = "{name}"'
        (found,) = parse(text + fault).faults
        assert found.arguments == {"machine": name}
