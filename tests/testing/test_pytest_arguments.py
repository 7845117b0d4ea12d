"""Sources of the pytest fixtures' arguments: marks, ini file, conftest and seeds."""

from __future__ import annotations

import pytest
from fakekafka.tests.support.pytest_suites import run

# -- where the arguments come from -------------------------------------------------------------


def test_marks_of_module_class_and_test_add_up_and_the_nearest_wins(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
        import pytest

        pytestmark = pytest.mark.kafka(
            brokers=1, kafka_version="1.1", topics={"a": 1, "b": 1}, config={"num.partitions": 2}
        )

        @pytest.mark.kafka(topics={"b": 2}, config={"log.retention.ms": 3})
        class TestOne:
            @pytest.mark.kafka(brokers=2, topics={"c": 3})
            def test_marked(self, kafka_simulation):
                assert kafka_simulation.broker_ids == (1, 2)
                assert kafka_simulation.kafka_version == "1.1"
                assert kafka_simulation.topics() == ["a", "b", "c"]
                assert kafka_simulation.partition("b", 1).replicas
                config = kafka_simulation.processes[1].broker.config
                assert (config["num.partitions"], config["log.retention.ms"]) == (2, 3)

        def test_of_the_module_alone(kafka_simulation):
            assert kafka_simulation.broker_ids == (1,)
            assert kafka_simulation.topics() == ["a", "b"]
        """,
    )
    result.assert_outcomes(passed=2)


def test_a_module_mark_may_have_arguments_for_only_some_of_its_tests(
    suite: pytest.Pytester,
) -> None:
    """A module's mark may have arguments that some fixtures do not take; a test's own may not."""
    result = run(
        suite,
        """
        import pytest

        pytestmark = pytest.mark.kafka(brokers=1, seed=7, ports=[0])

        def test_cluster(kafka_cluster):
            assert kafka_cluster.broker_ids == (1,)

        def test_simulation(kafka_simulation):
            assert kafka_simulation.seed == 7

        @pytest.mark.kafka(seed=8)
        def test_own(kafka_cluster):
            pass
        """,
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*kafka mark*kafka_cluster*unknown argument 'seed'*"])


def test_an_unknown_argument_is_refused_with_the_nearest_name(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
        import pytest

        pytestmark = pytest.mark.kafka(kafka_verison="2.8")

        def test_one(kafka_cluster):
            pass
        """,
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*unknown argument 'kafka_verison'; did you mean 'kafka_version'*"]
    )


INI = """[pytest]
addopts = -p no:cacheprovider -p no:fakekafka
kafka_brokers = 5, 6
kafka_version = 2.8
kafka_topics =
    orders=2
kafka_config =
    num.partitions=4
    message.max.bytes = 5000
"""


def test_the_ini_file_shapes_every_cluster_of_the_session(suite: pytest.Pytester) -> None:
    """Arguments of the ini file yield to a conftest's ``kafka_arguments``, and both to a mark."""
    suite.makeini(INI)
    suite.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def kafka_arguments():
            return {"config": {"num.partitions": 8}, "topics": {"audit": 1}, "seed": 4}
        """
    )
    result = run(
        suite,
        """
        import pytest

        def check(cluster):
            assert cluster.broker_ids == (5, 6)
            assert cluster.kafka_version == "2.8"
            assert cluster.topics() == ["audit", "orders"]
            config = cluster.processes[5].broker.config
            return config["num.partitions"], config["message.max.bytes"]

        def test_simulation(kafka_simulation):
            assert check(kafka_simulation) == (8, 5000)
            assert kafka_simulation.seed == 4

        @pytest.mark.kafka(config={"num.partitions": 9})
        def test_cluster(kafka_cluster):
            assert check(kafka_cluster) == (9, 5000)

        def test_shared(shared_kafka_cluster):
            assert check(shared_kafka_cluster) == (8, 5000)

        @pytest.mark.kafka(topics={"orders": 3})
        def test_shared_again(shared_kafka_cluster):
            assert check(shared_kafka_cluster) == (8, 5000)
            assert shared_kafka_cluster.partition("orders", 2).replicas
        """,
    )
    result.assert_outcomes(passed=4)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("kafka_brokers = many", "*kafka_brokers must be a whole number, not 'many'*"),
        ("kafka_config = num.partitions", "*kafka_config: write a line such as num.partitions=4*"),
        ("kafka_topics = orders=x", "*kafka_topics: orders must be a whole number, not 'x'*"),
        ("kafka_version = 2.9", "*kafka_version '2.9' is not emulated*"),
    ],
)
def test_a_bad_line_of_the_ini_file_is_named(
    suite: pytest.Pytester, line: str, message: str
) -> None:
    suite.makeini(f"[pytest]\naddopts = -p no:cacheprovider -p no:fakekafka\n{line}\n")
    result = run(suite, "def test_one(kafka_simulation): pass")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([message])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("{'broker': 3}", "*kafka_arguments gives an unknown argument 'broker'; did you mean*"),
        ("3", "*kafka_arguments must give a dict of arguments, not 3*"),
    ],
)
def test_an_invalid_fixture_of_arguments_is_refused(
    suite: pytest.Pytester, given: str, message: str
) -> None:
    result = run(
        suite,
        f"""
        import pytest

        @pytest.fixture(scope="session")
        def kafka_arguments():
            return {given}

        def test_one(kafka_simulation):
            pass
        """,
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([message])


# -- seeds -------------------------------------------------------------------------------------


def test_a_test_runs_once_for_each_seed(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
        import pytest

        pytestmark = pytest.mark.kafka(brokers=1, seeds=range(3))

        def test_each(kafka_simulation, request):
            assert request.node.name == f"test_each[seed{kafka_simulation.seed}]"

        @pytest.mark.kafka(seed=9)
        def test_one(kafka_simulation):
            assert kafka_simulation.seed == 9

        @pytest.mark.parametrize("other", "ab")
        @pytest.mark.kafka(seeds=[5])
        def test_both(kafka_simulation, other):
            assert kafka_simulation.seed == 5

        def test_without():
            pass
        """,
    )
    result.assert_outcomes(passed=7)


# -- addresses, and the shared cluster ---------------------------------------------------------


def test_address_fixtures_belong_to_the_cluster_of_the_test(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
        import pytest

        shared = set()

        @pytest.mark.kafka(topics={"orders": 1})
        def test_shared(kafka_bootstrap_servers, shared_kafka_cluster):
            assert kafka_bootstrap_servers == shared_kafka_cluster.bootstrap_servers
            assert shared_kafka_cluster.topics() == ["orders"]
            shared.add(kafka_bootstrap_servers)

        def test_alone(kafka_bootstrap_servers):
            assert kafka_bootstrap_servers in shared

        def test_own(kafka_cluster, kafka_bootstrap_servers):
            assert kafka_bootstrap_servers == kafka_cluster.bootstrap_servers

        @pytest.mark.kafka(brokers=1)
        def test_marked(kafka_bootstrap_servers):
            assert kafka_bootstrap_servers.count(":") == 1
        """,
    )
    result.assert_outcomes(passed=4)


def test_after_a_shared_cluster_that_cannot_be_emptied_there_is_a_new_one(
    suite: pytest.Pytester,
) -> None:
    result = run(
        suite,
        """
        def test_breaks_it(shared_kafka_cluster):
            shared_kafka_cluster.reset = lambda: 1 / 0

        def test_next(shared_kafka_cluster):
            assert shared_kafka_cluster.produce is not None
            shared_kafka_cluster.create_topic("mine")
        """,
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*ZeroDivisionError*"])
