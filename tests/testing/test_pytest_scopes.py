"""Clusters of class, module and session scope, and clusters created by the tests themselves."""

from __future__ import annotations

import pytest
from fakekafka.tests.support.pytest_suites import PLUGIN, run


def test_a_class_a_module_and_the_session_have_a_cluster_each(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
        import pytest

        pytestmark = pytest.mark.kafka(brokers=2)
        seen = {}

        @pytest.mark.kafka(topics={"orders": 3})
        class TestOrders:
            def test_first(self, class_kafka_cluster, module_kafka_cluster):
                class_kafka_cluster.produce("orders", b"kept")
                module_kafka_cluster.create_topic("of-the-module")
                assert module_kafka_cluster.broker_ids == (1, 2)
                assert "orders" not in module_kafka_cluster.topics()
                seen["class"] = class_kafka_cluster

            def test_second(self, class_kafka_cluster, kafka_bootstrap_servers):
                assert class_kafka_cluster is seen["class"]
                assert [r.value for r in class_kafka_cluster.records("orders")] == [b"kept"]
                assert kafka_bootstrap_servers == class_kafka_cluster.bootstrap_servers

        class TestOther:
            def test_third(self, class_kafka_cluster, module_kafka_cluster):
                assert not seen["class"].is_started
                assert class_kafka_cluster.topics() == []
                assert module_kafka_cluster.topics() == ["of-the-module"]

        def test_fourth(session_kafka_cluster):
            assert session_kafka_cluster.broker_ids == (1, 2, 3)  # of no module
        """,
        "-W",
        "error",
    )
    result.assert_outcomes(passed=4)


def test_the_failure_report_covers_every_cluster_of_a_fixture(
    suite: pytest.Pytester,
) -> None:
    """The report covers clusters of users' fixtures, of any scope, even used indirectly."""
    result = run(
        suite,
        """
        import pytest
        from fakekafka import Cluster

        @pytest.fixture(scope="module")
        def mine():
            with Cluster(brokers=1, topics={"of-mine": 1}, trace=1000) as cluster:
                yield cluster

        @pytest.fixture
        def wrapped(mine):
            return [mine]

        @pytest.mark.kafka(brokers=1, topics={"of-the-fixture": 1})
        def test_two(wrapped, kafka_cluster):
            assert False

        def test_none():
            assert False
        """,
    )
    result.assert_outcomes(failed=2)
    text = result.stdout.str()
    assert text.count("of-mine-0  leader 1") == text.count("of-the-fixture-0  leader 1") == 1
    kept = sorted(path.name for path in (suite.path / ".fakekafka-traces").iterdir())
    stem = "test_the_failure_report_covers_every_cluster_of_a_fixture.py-test_two"
    assert kept == [f"{stem}-1.fktrace", f"{stem}-2.fktrace"]


def test_a_cluster_passed_to_kafka_watch_is_in_the_failure_report(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
        from fakekafka import Cluster, Simulation

        def test_made(kafka_watch):
            with kafka_watch(Simulation(1, seed=5, topics={"orders": 1})) as simulation:
                simulation.produce("orders", "x")
            assert False

        def test_not_kept(kafka_watch):
            with kafka_watch(Cluster(brokers=1)):
                assert False

        def test_misuse(kafka_watch):
            kafka_watch("cluster")
        """,
    )
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(
        [
            "*seed 5; trace kept, open it with*",
            "*without keeping events (Cluster(trace=20_000) does): no trace kept*",
            "*kafka_watch takes a Cluster or a Simulation, not 'cluster'*",
        ]
    )


def test_an_observers_error_fails_only_the_test_in_which_it_was_raised(
    suite: pytest.Pytester,
) -> None:
    """An observer's error fails the test in which it was raised, and not the next of the class."""
    result = run(
        suite,
        """
        class TestObserved:
            def test_raises(self, class_kafka_cluster):
                def observer(message):
                    raise RuntimeError("observed")
                end = class_kafka_cluster.observe(observer)
                class_kafka_cluster.create_topic("t")
                end()

            def test_next(self, class_kafka_cluster):
                assert class_kafka_cluster.failures
        """,
    )
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["*failed during the test: RuntimeError('observed')*"])


def test_stopping_the_shared_cluster_is_an_error_in_one_line(
    suite: pytest.Pytester,
) -> None:
    result = run(
        suite,
        """
        def test_stops(shared_kafka_cluster):
            shared_kafka_cluster.stop()

        def test_next(shared_kafka_cluster):
            assert shared_kafka_cluster.topics() == []
        """,
    )
    result.assert_outcomes(passed=2, errors=1)
    text = result.stdout.str()
    assert "the test stopped the cluster that it shares; the next test gets another" in text
    assert "Traceback" not in text
    assert "reset" not in text


@pytest.mark.parametrize(
    ("file", "text", "arguments"),
    [
        ("pytest.ini", "[pytest]\nkafka_topic = orders=3", ()),
        ("setup.cfg", "[tool:pytest]\nkafka_topic = orders=3", ()),
        ("pyproject.toml", "[tool.pytest.ini_options]\nkafka_topic = ['orders=3']", ()),
        ("pytest.ini", "[pytest]", ("-o", "kafka_topic=orders=3")),
    ],
)
def test_an_option_of_the_ini_file_that_is_misspelt_is_an_error(
    pytester: pytest.Pytester, file: str, text: str, arguments: tuple[str, ...]
) -> None:
    """A misspelt ``kafka_`` option of the ini file is an error; pytest itself only warns."""
    (pytester.path / file).write_text(f"{text}\n")
    result = run(pytester, "def test_any(): pass", *PLUGIN, "-p", "no:fakekafka", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*unknown option 'kafka_topic' (there are kafka_brokers, *); did you mean 'kafka_topics'?"]
    )


def test_an_option_of_another_plugin_is_not_misspelt(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("def pytest_addoption(parser): parser.addini('kafka_jar', 'of theirs')")
    pytester.makeini("[pytest]\naddopts = -p no:cacheprovider -p no:fakekafka\nkafka_jar = a.jar\n")
    run(pytester, "def test_any(): pass").assert_outcomes(passed=1)


@pytest.mark.slow
def test_each_worker_of_xdist_shares_a_cluster_of_its_own(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("number", range(4))
        def test_alone(shared_kafka_cluster, number):
            assert shared_kafka_cluster.topics() == []
            shared_kafka_cluster.create_topic("orders")

        def test_fails(kafka_cluster):
            assert False
        """
    )
    result = suite.runpytest_subprocess(*PLUGIN, "-n", "2")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["*trace kept, open it with*"])


def test_a_coroutine_takes_the_fixtures(suite: pytest.Pytester) -> None:
    """Coroutines take the fixtures, both as tests and as fixtures."""
    result = run(
        suite,
        """
        import asyncio
        import pytest

        @pytest.fixture
        def anyio_backend():
            return "asyncio"

        @pytest.fixture
        async def topic(kafka_cluster, anyio_backend):
            await asyncio.to_thread(kafka_cluster.create_topic, "orders")
            yield "orders"

        @pytest.mark.anyio
        async def test_coroutine(kafka_cluster, topic):
            kafka_cluster.produce(topic, b"x")
            found = await asyncio.to_thread(kafka_cluster.wait_for_records, topic, 1)
            assert found[0].value == b"y"
        """,
        "-p",
        "anyio",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*orders-0  leader*", "*trace kept, open it with*"])
