"""What the report of a failed test says about its cluster, and what fails a test."""

from __future__ import annotations

import pytest
from fakekafka import Cluster, Simulation, UsageError, open_trace
from fakekafka.testing.recording.failure_report import failure_report

PLUGIN = "fakekafka.testing.pytest_plugin"


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """Return a directory for a suite, whose plugin is loaded by hand as in this project."""
    pytester.makeini("[pytest]\naddopts = -p no:cacheprovider -p no:fakekafka\n")
    return pytester


def run(suite: pytest.Pytester, source: str, *arguments: str) -> pytest.RunResult:
    suite.makepyfile(source)
    return suite.runpytest_inprocess("-p", PLUGIN, *arguments)


def _report(simulation: Simulation) -> dict[str, list[str]]:
    parts: dict[str, list[str]] = {}
    title = ""
    for line in failure_report(simulation, simulation.trace().stored).splitlines():
        if line.startswith("    "):
            parts[title].append(line.strip())
        else:
            title = line.rstrip(":")
            parts[title] = []
    return parts


def test_a_partition_that_lacks_replicas_comes_first_with_leader_isr_and_offsets() -> None:
    topics = {"a": {"assignment": {0: [2, 3]}}, "b": {"assignment": {0: [1, 2]}}}
    with Simulation(3, topics=topics) as simulation:
        simulation.produce("b", "x")
        simulation.broker(1).kill()
        simulation.run_until(lambda: simulation.partition("b", 0).leader == 2)
        simulation.run_for(1000)
        first, second = _report(simulation)["partitions"]
    assert first == (
        "b-0  leader 2, epoch 2, ISR [2] of [1, 2], high watermark 1, log ends {1: down, 2: 1}"
    )
    assert second.startswith("a-0  leader 2, epoch 0, ISR [2, 3] of [2, 3], high watermark 0")


def test_the_report_lists_every_fault_in_force_and_none_that_has_ended() -> None:
    with Simulation(3, zookeepers=3) as simulation:
        assert _report(simulation)["active faults"] == ["none"]
        simulation.broker(1).kill()
        simulation.broker(2).pause()
        simulation.zookeeper.server(3).kill()
        simulation.network.partition([3], ["zk-1"], both_ways=False)
        simulation.network.latency(3)
        simulation.network.latency(40, source=3, target=1)
        simulation.network.bandwidth(5)
        simulation.network.drop(0.25)
        simulation.inject("Produce", error="NOT_ENOUGH_REPLICAS", times=2)
        assert _report(simulation)["active faults"] == [
            "broker-1 is not running",
            "broker-2 is paused",
            "zk-3 is down",
            "network: broker-3 to zk-1 cut, loses 25% of all messages",
            "network: 3 ms on every link",
            "network: 40 ms from broker-3 to broker-1",
            "network: 5 MB/s on every link",
            "<injection 1 into Produce: 0 applied, 2 remaining>",
        ]
        simulation.network.heal()
        simulation.broker(2).resume()
        faults = " ".join(_report(simulation)["active faults"])
    assert "paused" not in faults
    assert "cut" not in faults


def test_the_last_error_of_a_client_names_the_answer_that_contained_it() -> None:
    with Simulation(1, topics={"orders": 1}) as simulation:
        simulation.inject("Produce", error="NOT_ENOUGH_REPLICAS", times=1)
        producer = simulation.producer(name="p")
        producer.produce(("orders", 0), b"x")
        simulation.run_for(2000)
        (line,) = _report(simulation)["last errors of clients"]
    assert line.startswith("p  ")
    assert "NOT_ENOUGH_REPLICAS" in line


def test_the_last_events_are_faults_and_changes_of_leadership_but_no_traffic() -> None:
    with Simulation(3, topics={"orders": {"assignment": {0: [1, 2]}}}) as simulation:
        simulation.broker(1).kill()
        simulation.run_until(lambda: simulation.partition("orders", 0).leader == 2)
        simulation.run_for(5000)
        lines = _report(simulation)["last events"]
    assert len(lines) <= 20
    crash = next(at for at, line in enumerate(lines) if "broker-1 is killed" in line)
    expiry = next(at for at, line in enumerate(lines) if " expire " in line)
    elected = next(at for at, line in enumerate(lines) if "orders-0/leader: 1 -> 2" in line)
    assert crash < expiry < elected
    assert not any("FetchRe" in line for line in lines[elected + 1 :])


def test_a_part_of_the_report_that_fails_does_not_hide_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(_: object) -> list[str]:
        raise RuntimeError("torn")

    monkeypatch.setattr("fakekafka.testing.recording.failure_report._partitions", broken)
    with Simulation(1) as simulation:
        parts = _report(simulation)
    assert parts["partitions"] == ["could not be determined: RuntimeError('torn')"]
    assert parts["active faults"] == ["none"]


LIVE = """
import pytest

@pytest.mark.kafka(brokers=1, topics={"orders": 1})
def test_live(kafka_cluster):
    kafka_cluster.produce("orders", "hello")
    assert kafka_cluster.consume("orders")[0].value == b"world"
"""


def test_a_cluster_in_real_time_keeps_its_last_events(suite: pytest.Pytester) -> None:
    result = run(suite, LIVE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "partitions:",
            "    orders-0  leader 1, epoch 0, ISR *high watermark 1, log ends {1: 1}",
            "active faults:",
            "    none",
            "trace kept, open it with",
            "run it again with",
            "    pytest -p *test_a_cluster_in_real_time_keeps_its_last_events.py::test_live",
        ]
    )
    (path,) = (suite.path / ".fakekafka-traces").iterdir()
    with open_trace(path) as trace:
        assert trace.header["mode"] == "live"
        assert next(trace.filter("type == ProduceRequest"), None) is not None
        assert trace.cannot_replay


def test_the_mode_never_keeps_no_events_but_reports_the_state_of_the_cluster(
    suite: pytest.Pytester,
) -> None:
    result = run(suite, LIVE, "--kafka-trace=never")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*orders-0  leader 1*", "no trace kept (--kafka-trace=never)"])
    assert not (suite.path / ".fakekafka-traces").exists()


def test_the_mode_always_keeps_the_trace_of_a_passing_test(suite: pytest.Pytester) -> None:
    run(suite, LIVE.replace("world", "hello"), "--kafka-trace=always").assert_outcomes(passed=1)
    assert len(list(suite.path.glob(".fakekafka-traces/*.fktrace"))) == 1


@pytest.mark.parametrize("fixture", ["kafka_cluster", "shared_kafka_cluster"])
def test_an_observer_that_raises_fails_a_test_that_passes_otherwise(
    suite: pytest.Pytester, fixture: str
) -> None:
    result = run(
        suite,
        f"""
        def broken(delivery):
            raise ValueError("not mine")

        def test_first({fixture}):
            {fixture}.observe(broken)
            {fixture}.create_topic("orders")

        def test_next({fixture}):
            {fixture}.create_topic("other")
        """,
    )
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["*observer broken*ValueError*not mine*"])


def test_the_command_that_reproduces_a_run_has_its_seed_and_its_options(
    suite: pytest.Pytester,
) -> None:
    result = run(
        suite,
        """
        import pytest

        @pytest.mark.kafka(brokers=1, seeds=[3])
        def test_one(kafka_simulation):
            assert len(kafka_simulation.broker_ids) == 3
        """,
        "-o",
        "kafka_version=1.1",
        "-q",
    )
    result.stdout.fnmatch_lines(
        [
            "reproduce it with",
            "    pytest -p *plugin -o kafka_version=1.1 '*.py::test_one[[]seed3]'",
        ]
    )


def test_a_cluster_keeps_the_last_events_and_saves_them(tmp_path: object) -> None:
    with Cluster(1, trace=1000, topics={"orders": 1}) as cluster:
        for _ in range(700):
            cluster.produce("orders", "x")
        kept = cluster.trace()
        assert 1000 <= len(kept) < 3000
        assert kept.events[0].seq > 0
        path = f"{tmp_path}/last.fktrace"
        cluster.save(path)
    with open_trace(path) as trace:
        assert trace.state_at(trace.events[-1])["broker-1/orders-0/log_end_offset"] == 700


def test_a_cluster_that_keeps_nothing_says_how_to_keep_events() -> None:
    with Cluster(1) as cluster, pytest.raises(UsageError, match="trace=20_000"):
        cluster.trace()
