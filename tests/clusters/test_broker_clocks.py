"""Wall clocks of brokers that are shifted (docs/guides/faults.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fakekafka import Cluster, Simulation, UsageError
from fakekafka.actors.runtime.runtime import VIRTUAL_EPOCH_MS

HOUR_MS = 3_600_000
TOPICS = {
    "t": {
        "assignment": {0: [1, 2], 1: [2, 1]},
        "config": {"message.timestamp.type": "LogAppendTime"},
    }
}


@pytest.fixture
def cluster() -> Iterator[Simulation]:
    with Simulation(2, topics=TOPICS, seed=1) as simulation:
        yield simulation


def appended_ms(cluster: Simulation, partition: int) -> float:
    """Return by how many milliseconds the time of the next record is ahead of the cluster's."""
    cluster.produce("t", "value", partition=partition)
    record = cluster.records("t", partition)[-1]
    return record.timestamp - VIRTUAL_EPOCH_MS - cluster.now_ms


@pytest.mark.parametrize("shift_ms", [HOUR_MS, -2000])
def test_log_append_time_is_the_leaders(cluster: Simulation, shift_ms: int) -> None:
    """Only records in partitions that the broker leads get the time of its clock."""
    cluster.broker(1).shift_clock(shift_ms)
    assert appended_ms(cluster, 0) == pytest.approx(shift_ms, abs=100)
    assert appended_ms(cluster, 1) == pytest.approx(0, abs=100)


def test_shifts_add_up_and_stay(cluster: Simulation) -> None:
    """A machine keeps its clock during a restart of the broker, and while the broker is down."""
    broker = cluster.broker(1)
    broker.shift_clock(50_000)
    broker.kill(expire_session=True)
    broker.shift_clock(-10_000.4)
    broker.start()
    cluster.run_until(lambda: cluster.partition("t", 0).isr == (1, 2))
    cluster.elect_leaders()
    assert broker.clock_shift_ms == 40_000
    assert appended_ms(cluster, 0) == pytest.approx(40_000, abs=5000)


def test_a_reset_undoes_shifts_of_clocks() -> None:
    """``reset`` undoes a shifted clock like other faults."""
    with Cluster(1) as cluster:
        cluster.broker(1).shift_clock(5000)
        cluster.reset()
        assert cluster.broker(1).clock_shift_ms == 0


def test_retention_follows_the_clock_of_the_broker() -> None:
    """A leader whose clock is eight days ahead deletes records that are a week old by it; its
    follower copies the log start.
    """
    config = {"log.retention.check.interval.ms": 1000}
    with Simulation(2, topics={"t": {"assignment": {0: [1, 2]}}}, config=config) as simulation:
        simulation.produce("t", "value")
        simulation.run_for(60_000)
        assert simulation.partition("t", 0).replica(2).log_start_offset == 0
        simulation.broker(1).shift_clock(8 * 24 * HOUR_MS)
        simulation.run_for(60_000)
        view = simulation.partition("t", 0)
        assert [view.replica(broker).log_start_offset for broker in (1, 2)] == [1, 1]


def test_elapsed_time_is_not_shifted() -> None:
    """Sessions, requests and the ISR use the monotonic clock, which cannot be set
    (``Time.nanoseconds``).
    """
    with Simulation(3, seed=2, topics={"t": {}}) as simulation:
        isr = simulation.partition("t", 0).isr
        for broker, shift_ms in ((1, -HOUR_MS), (2, HOUR_MS)):
            simulation.broker(broker).shift_clock(shift_ms)
        simulation.run_for(60_000)
        assert simulation.partition("t", 0).isr == isr
        assert simulation.zookeeper.children("/brokers/ids") == ["1", "2", "3"]


def test_a_committed_offset_has_the_time_of_its_coordinator(cluster: Simulation) -> None:
    """Groups read the clock as it is set at each use."""
    coordinators: list[Any] = [
        process.broker.groups for process in cluster.processes.values() if process.broker
    ]
    before = [groups._store.environment.wall_ms() for groups in coordinators]
    cluster.broker(2).shift_clock(HOUR_MS)
    after = [groups._store.environment.wall_ms() for groups in coordinators]
    assert [late - early for early, late in zip(before, after, strict=True)] == [0, HOUR_MS]


def test_nothing_changes_while_no_clock_is_set(cluster: Simulation) -> None:
    """Nodes use the runtime's own clock, also after a shift was undone."""
    broker = cluster.broker(1)
    broker.shift_clock(500)
    broker.shift_clock(-500)
    for node in broker._process.process.nodes.values():
        assert node.wall_ms == cluster.runtime.wall_ms  # type: ignore[attr-defined]


def test_a_shift_is_recorded_in_the_trace_and_validated(cluster: Simulation) -> None:
    """The trace records the shift as a fault; a shift that is no number of milliseconds
    is refused.
    """
    cluster.broker(1).shift_clock(-500)
    told = [event.why for event in cluster.trace().filter("kind == fault")]
    assert told == ["the clock of broker-1 is set -500 ms"]
    with pytest.raises(UsageError, match="shift_ms"):
        cluster.broker(1).shift_clock(float("nan"))
