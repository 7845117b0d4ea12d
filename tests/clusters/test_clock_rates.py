"""Clocks of brokers and ZooKeeper servers that run at other rates (docs/guides/faults.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fakekafka import Cluster, Simulation, UsageError
from fakekafka.actors.runtime.runtime import VIRTUAL_EPOCH_MS
from fakekafka.cli.main import main

TOPICS = {
    "t": {
        "assignment": {0: [1, 2], 1: [2, 1]},
        "config": {"message.timestamp.type": "LogAppendTime"},
    }
}
LAG_MS, SESSION_MS = 4000, 18_000
CONFIG = {"replica.lag.time.max.ms": LAG_MS, "zookeeper.session.timeout.ms": SESSION_MS}


@pytest.fixture
def cluster() -> Iterator[Simulation]:
    with Simulation(2, topics=TOPICS, config=CONFIG, seed=1) as simulation:
        yield simulation


def takes_ms(cluster: Simulation, condition: Callable[[], object]) -> float:
    """Return the time in milliseconds of the simulation until a condition holds."""
    began_ms = cluster.now_ms
    cluster.run_until(condition)
    return cluster.now_ms - began_ms


def shrinks_after_ms(cluster: Simulation) -> float:
    """Return after how many milliseconds the leader of partition 0 removes a paused follower from
    the ISR.
    """
    cluster.run_for(1000)
    cluster.broker(2).pause()
    cluster.produce("t", "value", partition=0, acks=1)
    return takes_ms(cluster, lambda: cluster.partition("t", 0).isr == (1,))


@pytest.mark.parametrize("rate", [1, 2, 0.5])
def test_a_leader_measures_the_lag_by_its_own_clock(cluster: Simulation, rate: float) -> None:
    """A leader with a fast clock shrinks its ISR sooner. It checks at every half of the allowed
    lag.
    """
    cluster.broker(1).set_clock_rate(rate)
    took_ms = shrinks_after_ms(cluster)
    assert 0.95 * LAG_MS / rate < took_ms <= 1.55 * LAG_MS / rate


def test_the_clock_of_a_follower_does_not_shrink_the_isr(cluster: Simulation) -> None:
    """A follower with a slow or fast clock still fetches soon enough."""
    changes = []
    for rate in (0.3, 5):
        cluster.broker(2).set_clock_rate(rate)
        cluster.run_for(10 * LAG_MS)
        changes.append(cluster.partition("t", 0).isr)
    assert changes == [(1, 2), (1, 2)]


@pytest.mark.parametrize("rate", [1, 0.5, 2])
def test_a_coordinator_expires_members_by_its_own_clock(rate: float) -> None:
    """A slow clock expires a member later, also if the rate changes during the session."""
    with Simulation(1, topics={"t": {}}, seed=1) as simulation:
        member = simulation.group_consumer("readers", ["t"], session_timeout_ms=6000)
        simulation.run_until(lambda: simulation.group("readers").state == "Stable")
        simulation.run_for(3500)
        member.halt()
        simulation.run_for(500)
        simulation.broker(1).set_clock_rate(rate)
        took_ms = takes_ms(simulation, lambda: not simulation.group("readers").members)
    # The last heartbeat came half a second to three and a half before the change.
    assert 2400 / rate <= took_ms <= 5600 / rate


def test_a_session_ends_when_its_pings_come_late(cluster: Simulation) -> None:
    """A client pings after a third of its session timeout. A clock at half the rate is harmless; at
    a quarter the session is lost, unless other requests renew it.
    """
    broker = 2 if cluster.controller.id == 1 else 1
    sessions = [session_id(cluster, broker)]
    for rate in (0.5, 0.25):
        cluster.broker(broker).set_clock_rate(rate)
        cluster.run_for(6 * SESSION_MS)
        sessions.append(session_id(cluster, broker))
    assert sessions[0] == sessions[1] != sessions[2]


def session_id(cluster: Simulation, broker: int) -> int:
    node = cluster.processes[broker].controller_node
    assert node is not None
    return node.zk_client.session_id


@pytest.mark.parametrize("rate", [1, 3, 0.5])
def test_a_server_ends_sessions_by_its_own_clock(cluster: Simulation, rate: float) -> None:
    cluster.zookeeper.server(1).set_clock_rate(rate)
    cluster.broker(2).kill()
    took_ms = takes_ms(cluster, lambda: cluster.zookeeper.children("/brokers/ids") == ["1"])
    assert 0.6 * SESSION_MS / rate <= took_ms <= 1.3 * SESSION_MS / rate


def appended_ms(cluster: Simulation, partition: int) -> float:
    """Return by how many milliseconds the time of the next record is ahead of the cluster's."""
    cluster.produce("t", "value", partition=partition)
    record = cluster.records("t", partition)[-1]
    return record.timestamp - VIRTUAL_EPOCH_MS - cluster.now_ms


def test_dates_drift_without_a_jump(cluster: Simulation) -> None:
    """The clock gains half a second in ten, and keeps it when the rate is normal again."""
    cluster.broker(1).set_clock_rate(1.05)
    assert appended_ms(cluster, 0) == pytest.approx(0, abs=30)
    cluster.run_for(10_000)
    assert appended_ms(cluster, 0) == pytest.approx(500, abs=30)
    cluster.broker(1).set_clock_rate(1)
    cluster.run_for(10_000)
    assert appended_ms(cluster, 0) == pytest.approx(500, abs=30)
    assert appended_ms(cluster, 1) == pytest.approx(0, abs=30)
    assert cluster.broker(1).clock_shift_ms == pytest.approx(500, abs=30)
    cluster.broker(1).shift_clock(-cluster.broker(1).clock_shift_ms)
    assert cluster.broker(1).clock_shift_ms == 0
    assert appended_ms(cluster, 0) == pytest.approx(0, abs=30)


def test_a_machine_keeps_its_rate(cluster: Simulation) -> None:
    """The rate stays during a restart of the broker, and while the broker is down."""
    broker = cluster.broker(1)
    broker.set_clock_rate(2)
    broker.kill(expire_session=True)
    cluster.run_for(10_000)
    broker.start()
    assert broker.clock_rate == 2
    assert broker.clock_shift_ms >= 10_000
    cluster.run_until(lambda: sorted(cluster.partition("t", 0).isr) == [1, 2])


def drift(seed: int) -> str:
    """Return the fingerprint of a run in which the clocks have different rates."""
    with Simulation(3, topics={"t": 2}, seed=seed) as simulation:
        simulation.trace()
        for broker, rate in ((1, 1.1), (2, 0.4), (3, 3)):
            simulation.broker(broker).set_clock_rate(rate)
        simulation.zookeeper.server(1).set_clock_rate(0.7)
        simulation.group_consumer("readers", ["t"])
        for value in range(20):
            simulation.produce("t", str(value))
            simulation.run_for(500)
        simulation.broker(2).set_clock_rate(1)
        simulation.broker(3).kill()
        simulation.run_for(20_000)
        return simulation.fingerprint


def test_the_same_seed_gives_the_same_run_with_clock_rates() -> None:
    fingerprints = [drift(seed) for seed in (1, 1, 2)]
    assert fingerprints[0] == fingerprints[1] != fingerprints[2]


SCENARIO = """
name = "drift"

[cluster]
brokers = 3

[cluster.topics.orders]
assignment = [[1, 2, 3]]

[workload]
topic = "orders"
rate_per_s = 20

[[faults]]
at_ms = 1000
action = "set_clock_rate"
broker = 2
rate = 0.4

[[faults]]
at_ms = 2000
action = "set_zookeeper_clock_rate"
rate = 1.5
"""


def test_a_trace_of_rates_is_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, trace = tmp_path / "drift.toml", tmp_path / "drift.fktrace"
    path.write_text(SCENARIO, encoding="utf-8")
    for command in (["run", path, "--seed", 3, "-o", trace], ["trace", "verify", trace]):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in command])
        assert ended.value.code == 0
    assert "verified" in capsys.readouterr().out


def test_a_clock_rate_is_recorded_in_the_trace_and_validated(cluster: Simulation) -> None:
    """The trace records the rate as a fault; an invalid rate is refused."""
    broker = cluster.broker(1)
    assert broker.clock_rate == 1
    broker.set_clock_rate(1.02)
    assert broker.clock_rate == 1.02
    told = [event.why for event in cluster.trace().filter("kind == fault")]
    assert told == ["the clock of broker-1 runs at rate 1.02"]
    for wrong in (0, -1, 0.09, 11, float("nan"), True):
        with pytest.raises(UsageError, match="rate"):
            broker.set_clock_rate(wrong)
        with pytest.raises(UsageError, match="rate"):
            cluster.zookeeper.server(1).set_clock_rate(wrong)
    assert (broker.clock_rate, cluster.zookeeper.server(1).clock_rate) == (1.02, 1)


@pytest.mark.parametrize("mode", ["live", "threaded"])
def test_a_reset_ends_the_clock_rates_of_a_served_cluster(mode: str) -> None:
    """``reset`` ends rates like other faults, and records appended afterwards have the
    right date.
    """
    with Cluster(1, runtime=mode, topics={"t": {}}) as cluster:
        cluster.broker(1).set_clock_rate(10)
        cluster.zookeeper.server(1).set_clock_rate(0.9)
        cluster.produce("t", "value")
        cluster.reset()
        assert (cluster.broker(1).clock_rate, cluster.zookeeper.server(1).clock_rate) == (1, 1)
        assert cluster.broker(1).clock_shift_ms == 0
