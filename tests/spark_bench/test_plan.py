"""Suites and plans: the content of a batch, and what is refused before it runs."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from fakekafka import UsageError
from fakekafka.spark_bench.planning.past_costs import PastCosts
from fakekafka.spark_bench.planning.plan import labels, make_plan, reproduce_command
from fakekafka.spark_bench.planning.schedule import CostModel
from fakekafka.spark_bench.planning.suite import SUITES, find_source, load_suite
from fakekafka.tests.spark_bench.suites_for_tests import SCENARIO, SMALL, written


def test_every_configuration_has_the_same_seeds() -> None:
    """All configurations have the same seeds, so that their runs can be compared in pairs."""
    plan = make_plan("failover", 3, 40, matrix={"brokers": [3, 4]})
    assert [(s.run_id, s.configuration, s.seed) for s in plan.specs] == [
        (0, 0, 40), (1, 0, 41), (2, 0, 42), (3, 1, 40), (4, 1, 41), (5, 1, 42),
    ]  # fmt: skip
    assert [dict(spec.parameters)["brokers"] for spec in plan.specs] == [3, 3, 3, 4, 4, 4]


def test_tables_of_a_matrix_vary_one_thing_after_the_other() -> None:
    """Tables of a matrix are varied one after the other; common configurations run once."""
    own = {(3, 3, 18_000), (3, 3, 6_000), (2, 3, 18_000), (3, 30, 18_000)}

    def configurations(**values: Any) -> list[tuple[int, ...]]:
        plan = make_plan("failover", 1, values=values)
        names = ("replication_factor", "partitions", "session_timeout_ms")
        return [tuple(dict(spec.parameters)[name] for name in names) for spec in plan.specs]

    assert set(configurations()) == own
    assert len(configurations()) == len(own)
    assert set(configurations(session_timeout_ms=9000)) == {(3, 3, 9000), (2, 3, 9000),
                                                            (3, 30, 9000)}  # fmt: skip


@pytest.mark.parametrize(
    ("suite", "runs", "values", "message"),
    [
        ("failovr", 1, {}, "there is no suite 'failovr'; did you mean 'failover'"),
        ("xyz", 1, {}, "there is no suite 'xyz'; there are .*; or name a file, .toml or .py"),
        ("nowhere.toml", 1, {}, "nowhere.toml cannot be read: No such file"),
        ("nowhere.py", 1, {}, "nowhere.py cannot be read: No such file"),
        ("tests", 1, {}, r"tests is a directory: name a suite's file in it, \.toml or \.py"),
        ("failover", 0, {}, "runs must be at least 1, not 0"),
        ("failover", 1, {"broker": 3}, "failover has no parameter 'broker'; did you mean"),
        ("failover", 1, {"brokers": 2}, "replication_factor 3 needs as many brokers, there are 2"),
        ("failover", 1, {"replication_factor": 1}, "replication_factor must be at least 2, not 1"),
        ("failover", 1, {"brokers": "many"}, "brokers must be int, not 'many'"),
        ("failover", 1, {"brokers": 3.5}, "brokers must be int, not 3.5"),
        ("failover", 1, {"brokers": True}, "brokers must be int, not True"),
        ("failover", 1, {"partitions": 0}, "partitions must be at least 1, not 0"),
        ("failover", 1, {"rate_per_s": 0}, "rate_per_s must be at least 1, not 0"),
        ("failover", 1, {"rate_per_s": 1_000_001}, "must be at most 1e.06, not 1000001"),
        ("failover", 1, {"latency_sigma": "wide"}, "latency_sigma must be float, not 'wide'"),
        ("failover", 1, {"latency_median_ms": -1}, "latency_median_ms must be at least 0.001"),
        ("failover", 1, {"latency_sigma": float("nan")}, "latency_sigma must be a finite number"),
        ("failover", 1, {"kafka_version": "4.0"}, "kafka_version must be one of .*, not '4.0'"),
    ],
)
def test_an_impossible_plan_is_refused_before_any_run(
    suite: str, runs: int, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        make_plan(suite, runs, 0, values=values)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ({"brokers": []}, "the matrix has no value for brokers"),
        ({"broker": [3]}, "failover has no parameter 'broker'"),
        ({"brokers": [3, 0]}, "brokers must be at least 1, not 0"),
        ({"partitions": [1, 2]}, "partitions is both set and in the matrix"),
    ],
)
def test_a_matrix_of_wrong_values_is_refused(matrix: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_plan("failover", 1, values={"partitions": 3}, matrix=matrix)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "has no function scenario; write def scenario"),
        ("def scenario(): pass", "scenario takes no argument"),
        ("def scenario(run, n): pass", "parameter n has no default; write n: int = 3"),
        ("def scenario(run, **more): pass", r"scenario has \*more; name each parameter"),
        ("def scenario(run, n: list = []): pass", "parameter n is .*; it can be int, float"),
        ("def scenario(run, n: int = 1.5): pass", "n must be int, not 1.5"),
        ("def scenario(run, n: Unknown = 1): pass", "NameError"),
        ("import nothing_like_that", "cannot be run: ModuleNotFoundError"),
        ("def scenario(run, n: int = 1): pass\nMATRIX = {'m': [1]}", "MATRIX has 'm'"),
        ("def scenario(run, n: int = 1): pass\nMATRIX = {'n': 1}", "'n' must be a list, not 1"),
        ("def scenario(run, n: int = 1): pass\nMATRIX = {'n': ['x']}", "n must be int, not 'x'"),
        (
            "def scenario(run): pass\nBUDGET = {'wall': 1}",
            "no budget 'wall'; did you mean 'wall_s'",
        ),
        ("def scenario(run): pass\nBUDGET = {'wall_s': 0}", "wall_s must be a number > 0, not 0"),
    ],
)
def test_a_python_file_that_is_no_suite_says_why(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        make_plan(written(tmp_path, text, "own.py"))


def test_a_python_file_is_a_suite(tmp_path: Path) -> None:
    """The parameters of a Python suite have the defaults and types of its function."""
    plan = make_plan(written(tmp_path, SMALL, "small.py"))
    suite = plan.suite
    assert (suite.name, suite.about) == ("small", "A cluster of one broker takes some records")
    assert [(p.name, p.kind, p.default) for p in suite.parameters.values()] == [
        ("records", int, 2), ("name", str, "t"), ("fast", bool, True), ("wait_ms", float, 1.0),
    ]  # fmt: skip
    assert len(plan.specs) == 2 * 3
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_a_scenario_file_is_a_suite(tmp_path: Path) -> None:
    """A scenario file is a suite with its own matrix, and each of its keys can be set."""
    path = written(tmp_path, SCENARIO, "dies.toml")
    plan = make_plan(path, values={"workload.rate_per_s": 50})
    assert plan.suite.about == "a leader dies and comes back"
    assert [spec.parameters for spec in plan.specs[::2]] == [
        (("workload.rate_per_s", 50), ("cluster.brokers", 2)),
        (("workload.rate_per_s", 50), ("cluster.brokers", 3)),
    ]
    with pytest.raises(UsageError, match=r"workload\.rate_per_hour: unknown key"):
        make_plan(path, values={"workload.rate_per_hour": 50})
    story = written(tmp_path, "[story]\ntopic='t'", "story.toml")
    with pytest.raises(UsageError, match=r"story"):
        make_plan(story)


def test_the_reproduce_command_names_what_differs_from_the_defaults(tmp_path: Path) -> None:
    plan = make_plan("failover", 1, 7, matrix={"brokers": [4], "kafka_version": ["1.1", "3.9"]})
    assert [reproduce_command(plan.source, spec) for spec in plan.specs] == [
        "fakekafka bench run failover --seed 7 --runs 1 --no-matrix --engine serial"
        " --set brokers=4 --set kafka_version=1.1",
        "fakekafka bench run failover --seed 7 --runs 1 --no-matrix --engine serial"
        " --set brokers=4",
    ]
    path = written(tmp_path, SCENARIO, "dies.toml")
    (spec, *_) = make_plan(path).specs
    assert reproduce_command(find_source(path), spec, "trace") == (
        f"fakekafka bench trace {path} --seed 0 --set cluster.brokers=2"
    )


def test_the_longest_runs_start_first_and_durations_are_learned(tmp_path: Path) -> None:
    plan = make_plan(written(tmp_path, SMALL, "small.py"), 2, matrix={"records": [1, 9, 3]})
    model = CostModel(plan)
    assert [spec.run_id for spec in model.longest_first(plan.specs)] == [2, 3, 4, 5, 0, 1]
    assert model.estimate_s(plan.specs[2]) == pytest.approx(0.09)
    model.observe(plan.specs[0], 5000)  # 500 times as long as expected
    assert model.estimate_s(plan.specs[1]) == 5
    assert model.estimate_s(plan.specs[2]) == pytest.approx(0.09 * 500)
    for _ in range(2):
        model.observe(plan.specs[2], 100)
    assert [spec.run_id for spec in model.longest_first(plan.specs)][:2] == [0, 1]


def test_an_earlier_batch_predicts_the_duration_of_other_runs(tmp_path: Path) -> None:
    """An earlier batch predicts durations: 0.5 s per partition, and twice that for one release."""
    matrix: dict[str, list[Any]] = {"partitions": [3, 6, 12], "kafka_version": ["1.1", "3.9"]}
    plan = make_plan("failover", 1, matrix=matrix)
    earlier = [
        ({"partitions": n, "kafka_version": version, "brokers": 3}, n * seconds)
        for n in (2, 4, 8, 16)
        for version, seconds in (("1.1", 1.0), ("3.9", 0.5))
    ]
    model = CostModel(plan, PastCosts(earlier))
    for spec in plan.specs:
        values = dict(spec.parameters)
        seconds = values["partitions"] * (1.0 if values["kafka_version"] == "1.1" else 0.5)
        assert model.estimate_s(spec) == pytest.approx(seconds, rel=0.25)
    order = [dict(spec.parameters) for spec in model.longest_first(plan.specs)]
    ends = [(one["partitions"], one["kafka_version"]) for one in (order[0], order[-1])]
    assert ends == [(12, "1.1"), (3, "3.9")]


def test_equal_plans_have_equal_ids_and_others_have_not() -> None:
    """Plans have equal ids only if they are equal, and ``--resume`` requires the same id."""
    batch_id = make_plan("failover", 2, 1).batch_id
    assert make_plan("failover", 2, 1).batch_id == batch_id
    others = [
        make_plan("failover", 3, 1),
        make_plan("failover", 2, 2),
        make_plan("failover", 2, 1, values={"brokers": 4}),
        make_plan("failover", 2, 1, budget={"events": 5}),
    ]
    assert batch_id not in [plan.batch_id for plan in others]


@pytest.mark.parametrize("name", SUITES)
def test_every_suite_describes_its_subject_and_its_measures(name: str) -> None:
    suite = load_suite(find_source(name))
    assert suite.about
    assert suite.measures
    assert all(suite.measures.values())
    assert suite.headline
    names = labels(make_plan(name, 1))
    assert len(set(names)) == len(names)  # the defaults occur once


def test_a_whole_number_in_a_matrix_equals_the_same_float(tmp_path: Path) -> None:
    """0 and 0.0 in a matrix are one value; otherwise its run would be done and drawn twice."""
    suite = written(tmp_path, SMALL, "small.py")
    plan = make_plan(suite, 1, matrix={"wait_ms": [1.0, 1, 2]})
    assert [dict(spec.parameters)["wait_ms"] for spec in plan.specs] == [1.0, 2.0]
