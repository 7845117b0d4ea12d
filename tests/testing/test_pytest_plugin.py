"""The fixtures of the pytest plugin, run in test suites of their own."""

from __future__ import annotations

import pytest
from fakekafka.cli.main import main
from fakekafka.tests.support.pytest_suites import run


def test_every_test_gets_a_fresh_cluster(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
        def test_one(kafka_cluster):
            assert kafka_cluster.broker_ids == (1, 2, 3)
            kafka_cluster.create_topic("mine")

        def test_other(kafka_cluster):
            assert kafka_cluster.topics() == []
        """,
    )
    result.assert_outcomes(passed=2)


def test_the_mark_sets_the_arguments_of_the_cluster(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
        import pytest

        @pytest.mark.kafka(
            brokers=2, kafka_version="1.1", topics={"orders": 4}, config={"log.retention.ms": 5000}
        )
        def test_marked(kafka_cluster):
            assert kafka_cluster.broker_ids == (1, 2)
            assert kafka_cluster.kafka_version == "1.1"
            assert kafka_cluster.topics() == ["orders"]
            assert kafka_cluster.partition("orders", 3).replicas
        """,
        "--strict-markers",
    )
    result.assert_outcomes(passed=1)


def test_the_shared_cluster_is_one_and_emptied_after_every_test(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
        import pytest

        seen = []

        def test_one(shared_kafka_cluster):
            seen.append(shared_kafka_cluster)
            shared_kafka_cluster.create_topic("left", replication_factor=3)
            shared_kafka_cluster.broker(2).kill()

        @pytest.mark.kafka(topics={"orders": 2, "audit": {"replication_factor": 1}})
        def test_other(shared_kafka_cluster):
            assert shared_kafka_cluster is seen[0]
            assert shared_kafka_cluster.broker(2).is_alive
            assert shared_kafka_cluster.topics() == ["audit", "orders"]
            assert len(shared_kafka_cluster.partition("orders", 1).replicas) == 3
            assert len(shared_kafka_cluster.partition("audit", 0).replicas) == 1

        def test_last(shared_kafka_cluster):
            assert shared_kafka_cluster.topics() == []
        """,
    )
    result.assert_outcomes(passed=3)


def test_topics_of_a_broken_mark_are_removed_before_the_next_test(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
        import pytest

        @pytest.mark.kafka(topics={"good": 1, "bad name": 1})
        def test_broken(shared_kafka_cluster):
            pass

        def test_next(shared_kafka_cluster):
            assert shared_kafka_cluster.topics() == []
        """,
    )
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(["*INVALID_TOPIC_EXCEPTION*bad name*"])


def test_the_shared_cluster_takes_no_other_shape(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
        import pytest

        @pytest.mark.kafka(brokers=5, config={})
        def test_marked(shared_kafka_cluster):
            pass
        """,
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*shared_kafka_cluster takes only topics, not brokers, config; use kafka_cluster*"]
    )


@pytest.mark.parametrize("fixture", ["kafka_cluster", "shared_kafka_cluster", "kafka_simulation"])
def test_positional_arguments_of_the_mark_are_refused(suite: pytest.Pytester, fixture: str) -> None:
    result = run(
        suite,
        f"""
        import pytest

        @pytest.mark.kafka(3)
        def test_marked({fixture}):
            pass
        """,
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*the kafka mark takes keyword arguments only*"])


@pytest.mark.parametrize(
    ("arguments", "fixture", "message"),
    [
        ("broker=3", "kafka_cluster", "*kafka mark*kafka_cluster*'broker'*brokers*"),
        ("sed=3", "kafka_simulation", "*kafka mark*kafka_simulation*'sed'*seed*"),
        ("brokers=0", "kafka_cluster", "*at least one broker, not 0*"),
        ("config={'no.such': 1}", "kafka_cluster", "*no.such*"),
        ("kafka_version='4.0'", "kafka_simulation", "*kafka_version '4.0' is not emulated*"),
        ("seeds=20", "kafka_simulation", "*seeds must be whole numbers, such as range(20), not 20"),
        ("seeds='12'", "kafka_simulation", "*seeds must be whole numbers*'12'"),
        ("seeds=[1]", "kafka_cluster", "*gives seeds, but the test has no kafka_simulation*"),
        ("seeds=[1], seed=2", "kafka_simulation", "*takes seed or seeds, not both*"),
        ("seeds=['x']", "kafka_simulation", "*seed must be a whole number*'x'*"),
    ],
)
def test_bad_arguments_of_the_mark_are_named(
    suite: pytest.Pytester, arguments: str, fixture: str, message: str
) -> None:
    result = run(
        suite,
        f"""
        import pytest

        @pytest.mark.kafka({arguments})
        def test_marked({fixture}):
            pass
        """,
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([message])


SIMULATED = """
import pytest

@pytest.mark.kafka(brokers=1, seed=77, topics={"orders": 1})
def test_simulated(kafka_simulation):
    assert kafka_simulation.seed == 77
    kafka_simulation.produce("orders", "hello")
    assert kafka_simulation.consume("orders")[0].value == b"world"
"""


def test_a_failed_test_keeps_its_trace_and_says_how_to_open_it(
    suite: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run(suite, SIMULATED)
    result.assert_outcomes(failed=1)
    (trace,) = (suite.path / ".fakekafka-traces").iterdir()
    result.stdout.fnmatch_lines(
        [
            "*seed 77; trace kept, open it with*",
            f"*fakekafka trace show .fakekafka-traces/{trace.name}*",
        ]
    )
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(["trace", "show", str(trace)])
    assert ended.value.code == 0
    assert "Produce" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("mode", "value", "kept"),
    [("always", "hello", 1), ("failed", "hello", 0), ("never", "world", 0)],
)
def test_the_option_decides_which_traces_are_kept(
    suite: pytest.Pytester, mode: str, value: str, kept: int
) -> None:
    result = run(suite, SIMULATED.replace("world", value), "--kafka-trace", mode)
    result.assert_outcomes(passed=value == "hello", failed=value != "hello")
    assert len(list(suite.path.glob(".fakekafka-traces/*.fktrace"))) == kept


def test_an_unknown_mode_of_the_option_is_refused(suite: pytest.Pytester) -> None:
    result = run(suite, SIMULATED, "--kafka-trace", "sometimes")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--kafka-trace*sometimes*"])


def test_traces_of_parametrised_tests_do_not_overwrite_each_other(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
        import pytest

        @pytest.mark.kafka(brokers=1)
        @pytest.mark.parametrize("way", ["a/b", "a b"])
        def test_both(kafka_simulation, way):
            assert way == "c"
        """,
    )
    result.assert_outcomes(failed=2)
    assert len(list(suite.path.glob(".fakekafka-traces/*.fktrace"))) == 2


UNRECORDED = """
import pytest

@pytest.mark.kafka(brokers=1, seed=77, trace=False)
def test_unrecorded(kafka_simulation):
    assert kafka_simulation.seed == 78

def test_next():
    pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [(), ("-p", "xdist", "-n", "1")], ids=["alone", "xdist"])
def test_a_failed_test_without_recording_does_not_end_the_session(
    suite: pytest.Pytester, arguments: tuple[str, ...]
) -> None:
    suite.makepyfile(UNRECORDED)
    result = suite.runpytest_subprocess("-p", "fakekafka.testing.pytest_plugin", *arguments)
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["seed 77; it ran without recording (trace=False): no trace kept"])
    assert not (suite.path / ".fakekafka-traces").exists()


def test_a_passing_test_without_recording_says_nothing(suite: pytest.Pytester) -> None:
    result = run(suite, UNRECORDED.replace("78", "77"), "--kafka-trace", "always", "-rP")
    result.assert_outcomes(passed=2)
    result.stdout.no_fnmatch_line("*seed 77*")


def test_a_trace_that_cannot_be_saved_is_reported(suite: pytest.Pytester) -> None:
    """A trace that cannot be saved is reported, and the next tests still run."""
    (suite.path / ".fakekafka-traces").write_text("in the way")
    result = run(suite, SIMULATED + "\ndef test_next():\n    pass\n")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["seed 77; the trace could not be kept: *.fakekafka-traces*"])


def test_a_test_that_changes_directory_keeps_its_trace_in_the_project(
    suite: pytest.Pytester,
) -> None:
    suite.mkdir("below")
    changing = SIMULATED.replace("(kafka_simulation):", "(kafka_simulation, monkeypatch, tmp_path):"
        "\n    monkeypatch.chdir(tmp_path)")  # fmt: skip
    run(suite, changing).assert_outcomes(failed=1)
    (trace,) = (suite.path / ".fakekafka-traces").iterdir()
    trace.unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(suite.path / "below")
        result = suite.runpytest_inprocess("-p", "fakekafka.testing.pytest_plugin", "..")
    assert trace.exists()
    result.stdout.fnmatch_lines([f"*fakekafka trace show ../.fakekafka-traces/{trace.name}"])


def test_the_mark_is_listed(suite: pytest.Pytester) -> None:
    result = run(suite, "", "--markers")
    result.stdout.fnmatch_lines(["@pytest.mark.kafka(**arguments)*"])
