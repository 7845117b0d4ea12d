"""Waits for leaders, replicas and records, and the messages of waits that time out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fakekafka import Cluster, ConsumerRecord, KafkaError, Simulation, UsageError, WaitTimeout
from fakekafka.protocol.errors import ErrorCode, NotThereYet
from fakekafka.tests.support.present import present

SHAPE = {"orders": {"assignment": {0: [1, 2], 1: [2, 3]}}}


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    with Simulation(3, seed=3, topics=SHAPE) as made:
        yield made


def test_the_wait_for_a_leader_ends_with_its_id(simulation: Simulation) -> None:
    assert simulation.wait_for_leader("orders") == 1
    assert simulation.wait_for_leader("orders", 1) == 2


def test_the_wait_for_another_leader_lasts_until_it_serves(simulation: Simulation) -> None:
    simulation.broker(1).kill()
    leader = simulation.wait_for_leader("orders", other_than=1, timeout_s=60)
    assert leader == 2
    assert simulation.partition("orders", 0).replica(2).role == "leader"


def test_a_leader_that_is_cut_off_is_replaced_in_the_wait(simulation: Simulation) -> None:
    """The wait finds the new leader even if the isolated one still believes that it leads."""
    simulation.network.isolate(1)
    assert simulation.wait_for_leader("orders", other_than=1, timeout_s=60) == 2


def test_a_wait_for_a_leader_that_times_out_reports_leader_isr_and_offsets(
    simulation: Simulation,
) -> None:
    simulation.produce("orders", ["a", "b"], partition=1)
    simulation.run_for(1000)
    simulation.broker(3).kill()
    with pytest.raises(WaitTimeout) as late:
        simulation.wait_for_leader("orders", 1, other_than=2, timeout_s=1)
    text = str(late.value)
    assert text.startswith(
        "a leader of orders-1 other than broker 2 not there within 1 virtual s; "
        "orders-1: leader 2 (epoch 0), ISR [2, 3] of [2, 3]; "
        "broker 2 ends at 2 (high watermark 2), broker 3 has no log (controller "
    )


def test_a_topic_that_comes_later_is_waited_for() -> None:
    """A wait for a missing topic lasts to its timeout: another thread may create the topic."""
    with Simulation(1, seed=1) as simulation:
        with pytest.raises(WaitTimeout, match="there is no partition later-0; topics are"):
            simulation.wait_for_leader("later", timeout_s=0.5)
        with pytest.raises(WaitTimeout, match="there are 0; the topic does not exist"):
            simulation.wait_for_records("later", 1, timeout_s=0.5)


def test_the_wait_for_records_returns_them_partition_by_partition(simulation: Simulation) -> None:
    simulation.produce("orders", "second", partition=1)
    simulation.produce("orders", ["first", "too"], partition=0)
    found = simulation.wait_for_records("orders", 3)
    assert [record.value for record in found] == [b"first", b"too", b"second"]
    only = simulation.wait_for_records("orders", 1, partition=1)
    assert [record.value for record in only] == [b"second"]


def test_a_record_has_its_partition_and_everything_that_was_sent(simulation: Simulation) -> None:
    simulation.produce("orders", "second", partition=1)
    simulation.produce("orders", "first", key="k", headers=[("trace", b"1")])
    first, second = simulation.records("orders")
    assert first == ConsumerRecord(
        "orders", 0, 0, first.timestamp, b"k", b"first", (("trace", b"1"),)
    )
    assert (second.topic, second.partition, second.offset) == ("orders", 1, 0)
    assert simulation.records("orders", 1) == simulation.consume("orders", 1) == [second]


def test_records_of_a_replica_are_those_of_its_partitions(
    simulation: Simulation,
) -> None:
    simulation.produce("orders", "first")
    simulation.produce("orders", "second", partition=1)
    simulation.wait_for_records("orders", 2)
    assert [r.value for r in simulation.records("orders", replica=1)] == [b"first"]
    simulation.create_topic("of-two", assignment={0: [2]})
    with pytest.raises(NotThereYet, match="broker 1 holds no replica of 'of-two'"):
        simulation.records("of-two", replica=1)


def test_records_of_an_unknown_topic_are_an_error_with_the_nearest_name(
    simulation: Simulation,
) -> None:
    with pytest.raises(
        NotThereYet, match=r"there is no topic 'order'; topics are \['orders'\]; did"
    ):
        simulation.records("order")


def test_without_a_count_the_wait_is_for_all_records_of_the_leaders(simulation: Simulation) -> None:
    assert simulation.wait_for_records("orders", 0) == []
    simulation.network.partition([2], [1, 3])
    simulation.produce("orders", "alone", partition=1, acks=1)
    with pytest.raises(WaitTimeout) as late:
        simulation.wait_for_records("orders", 0, timeout_s=1)
    assert "all records of orders replicated not there within 1 virtual s" in str(late.value)
    simulation.network.heal()
    assert [r.value for r in simulation.wait_for_records("orders", count=0)] == [b"alone"]


def test_records_that_are_not_replicated_do_not_count(simulation: Simulation) -> None:
    """A record above the high watermark does not count; a follower in the ISR is cut off here."""
    simulation.network.partition([2], [1, 3])
    simulation.produce("orders", "alone", partition=1, acks=1)
    with pytest.raises(WaitTimeout) as late:
        simulation.wait_for_records("orders", 1, partition=1, timeout_s=1)
    assert "1 records in orders-1 not there within 1 virtual s; there are 0" in str(late.value)
    assert "broker 2 ends at 1 (high watermark 0)" in str(late.value)


def test_the_wait_for_replicas_in_sync_ends_when_the_follower_is_back(
    simulation: Simulation,
) -> None:
    simulation.broker(3).kill()
    simulation.run_until(lambda: 3 not in simulation.partition("orders", 1).isr)
    simulation.broker(3).start(wait=False)
    simulation.wait_for_in_sync("orders", timeout_s=120)
    assert set(simulation.partition("orders", 1).isr) == {2, 3}


def test_in_real_time_the_waits_are_the_same() -> None:
    with Cluster(brokers=3, topics=SHAPE) as cluster:
        cluster.produce("orders", ["a", "b"])
        assert len(cluster.wait_for_records("orders", 2)) == 2
        cluster.broker("leader:orders-0").kill(expire_session=True)
        assert cluster.wait_for_leader("orders", other_than=1) == 2
        with pytest.raises(WaitTimeout, match=r"3 records in orders not there within 0.05 s; "):
            cluster.wait_for_records("orders", 3, timeout_s=0.05)


@pytest.mark.parametrize("every_ms", [None, 10])
def test_a_condition_that_raises_not_there_yet_is_evaluated_again(
    simulation: Simulation, every_ms: float | None
) -> None:
    """A condition that raises NotThereYet, as with no active controller, is evaluated again."""
    controller = present(simulation.controller.id)
    before = simulation.controller.epoch
    simulation.broker(controller).kill()
    with pytest.raises(NotThereYet):
        _ = simulation.controller.epoch
    simulation.run_until(lambda: simulation.controller.epoch > before, every_ms=every_ms)
    assert simulation.controller.epoch == before + 1


def test_in_real_time_a_condition_may_raise_not_there_yet() -> None:
    asked: list[int] = []
    with Cluster(brokers=1) as cluster:

        def has_leader() -> bool:
            if len(asked) == 3:
                cluster.create_topic("late")
            asked.append(1)
            return cluster.partition("late", 0).leader == 1

        cluster.wait_until(has_leader)
        assert len(asked) > 3

        def never() -> bool:
            return cluster.partition("no", 0).leader == 1

        with pytest.raises(WaitTimeout, match="it raised NotThereYet: there is no partition no-0"):
            cluster.wait_until(never, 0.01)


def test_a_condition_that_raises_a_retriable_error_is_evaluated_again(
    simulation: Simulation,
) -> None:
    def retriable() -> bool:
        if simulation.now_ms < begun_ms + 5:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, "it moves")
        return True

    begun_ms = simulation.now_ms
    simulation.run_until(retriable)
    assert simulation.now_ms >= begun_ms + 5


@pytest.mark.parametrize("error", [UsageError("wrong"), KeyError("mine"), AssertionError("no")])
def test_any_other_error_of_a_condition_ends_the_wait(
    simulation: Simulation, error: Exception
) -> None:
    def broken() -> bool:
        raise error

    with pytest.raises(type(error), match=str(error.args[0])):
        simulation.run_until(broken)


@pytest.mark.parametrize(("version", "waited_ms"), [("0.10", 1000), ("3.9", 1000)])
def test_a_kill_may_expire_the_session_at_once(version: str, waited_ms: float) -> None:
    """With ``expire_session`` the controller learns of a kill at once, not seconds later."""
    with Simulation(3, seed=3, kafka_version=version, topics=SHAPE) as simulation:
        begun_ms = simulation.now_ms
        simulation.broker(1).kill(expire_session=True)
        simulation.wait_for_leader("orders", other_than=1)
        assert simulation.now_ms - begun_ms < waited_ms


def test_a_kill_cannot_expire_a_session_without_zookeeper(simulation: Simulation) -> None:
    simulation.zookeeper.server(1).kill()
    with pytest.raises(NotThereYet, match="no ZooKeeper server is running"):
        simulation.broker(1).kill(expire_session=True)
    assert simulation.broker(1).is_alive
