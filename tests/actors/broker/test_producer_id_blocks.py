"""Blocks of producer ids: from the controller since 3.0 (KIP-730), before from ZooKeeper."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from fakekafka import Simulation
from fakekafka.protocol.control import AllocateProducerIdsRequest
from fakekafka.protocol.data import InitProducerIdRequest
from fakekafka.protocol.errors import ErrorCode, KafkaError
from fakekafka.tests.support.present import present
from fakekafka.tests.support.run_now import run_now

RELOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
CONFIG = {"zookeeper.session.timeout.ms": 3000, "request.timeout.ms": 4000}


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    with Simulation(3, config=CONFIG) as simulation:
        assert simulation.controller.id == 1
        yield simulation
        assert simulation.failures == []


def ask(simulation: Simulation, broker_id: int) -> tuple[ErrorCode, int]:
    answer = simulation.ask(broker_id, InitProducerIdRequest(None, 60_000))
    return ErrorCode(answer.error), answer.producer_id


def first_id(simulation: Simulation, broker_id: int) -> int:
    """Return the first id of a broker's first block."""
    assert ask(simulation, broker_id)[0] is RELOADING
    simulation.run_for(20)
    error, producer_id = ask(simulation, broker_id)
    assert error is ErrorCode.NONE
    return producer_id


def use_up(simulation: Simulation, broker_id: int, count: int) -> int:
    """Allocate ``count`` ids and return the last."""
    ids = present(simulation.processes[broker_id].broker).producer_ids

    async def take() -> int:
        last = -1
        for _ in range(count):
            last = await ids.next_id()
        return last

    return simulation.call(take, 1000)


def stored(simulation: Simulation) -> tuple[int, str, str]:
    block = json.loads(simulation.zookeeper.get("/latest_producer_id_block") or b"")
    return block["broker"], block["block_start"], block["block_end"]


def block_requests(simulation: Simulation) -> list[tuple[str, str | None]]:
    """Return (sender, receiver) of every AllocateProducerIds request."""
    return [
        (event.actor, event.peer)
        for event in simulation.events
        if event.kind == "send" and event.type == "AllocateProducerIdsRequest"
    ]


def test_the_controller_writes_the_block_that_a_broker_asks_for(simulation: Simulation) -> None:
    """The controller writes a broker's block to ZooKeeper, and the znode names the broker."""
    assert first_id(simulation, 2) == 0
    assert stored(simulation) == (2, "0", "999")
    assert first_id(simulation, 1) == 1000
    assert stored(simulation) == (1, "1000", "1999")
    assert block_requests(simulation) == [("broker-2", "broker-1"), ("broker-1", "broker-1")]


@pytest.mark.parametrize("version", ["1.1", "2.8"])
def test_before_3_0_brokers_write_their_blocks_themselves(version: str) -> None:
    """A broker allocates a block when it starts (``ProducerIdManager``'s constructor in 2.8.2)."""
    with Simulation(3, kafka_version=version) as simulation:
        assert stored(simulation)[1:] == ("2000", "2999")
        firsts = [ask(simulation, broker_id) for broker_id in (1, 2, 3)]
        assert sorted(firsts) == [(ErrorCode.NONE, first) for first in (0, 1000, 2000)]
        assert block_requests(simulation) == []
        assert use_up(simulation, 2, 1000) == 3000
        assert stored(simulation) == (2, "3000", "3999")


@pytest.mark.parametrize("version", ["1.1", "2.8"])
def test_before_3_0_a_new_producer_needs_no_zookeeper(version: str) -> None:
    """A broker without ZooKeeper still allocates ids of its block."""
    with Simulation(3, kafka_version=version) as simulation:
        simulation.network.partition([2], ["zk-1"])
        assert ask(simulation, 2)[0] is ErrorCode.NONE


def test_the_block_ahead_serves_while_there_is_no_controller(simulation: Simulation) -> None:
    """Prefetched blocks serve without a controller; then clients get COORDINATOR_LOAD_IN_PROGRESS
    until the next one allocates a block.
    """
    assert first_id(simulation, 2) == 0
    assert use_up(simulation, 2, 900) == 900  # requests the next block
    simulation.run_for(20)
    simulation.broker(1).kill()
    assert use_up(simulation, 2, 99 + 1000) == 1999
    assert ask(simulation, 2)[0] is RELOADING
    simulation.run_for(100)
    assert ask(simulation, 2)[0] is RELOADING
    simulation.run_until(lambda: simulation.controller.id in (2, 3))
    simulation.run_for(500)
    assert ask(simulation, 2) == (ErrorCode.NONE, 2000)
    assert stored(simulation) == (2, "2000", "2999")


def test_a_broker_refused_by_a_former_controller_asks_the_new_one(simulation: Simulation) -> None:
    """A broker refused by the former controller retries until its metadata name the new one."""
    simulation.network.hold(
        lambda delivery: (
            type(delivery.message).__name__ == "UpdateMetadataRequest"
            and delivery.target.name == "broker-3"
        )
    )
    simulation.controller.resign()
    simulation.run_until(lambda: simulation.controller.id == 2)
    assert ask(simulation, 3)[0] is RELOADING
    simulation.run_for(300)
    assert ask(simulation, 3)[0] is RELOADING
    simulation.network.release()
    simulation.run_for(300)
    assert ask(simulation, 3) == (ErrorCode.NONE, 0)
    asked_by_3 = [peer for actor, peer in block_requests(simulation) if actor == "broker-3"]
    assert asked_by_3[0] == "broker-1"
    assert asked_by_3[-1] == "broker-2"
    assert asked_by_3.count("broker-2") == 1


def test_an_unanswered_request_ends_after_the_request_timeout(
    simulation: Simulation,
) -> None:
    """After an unanswered request timed out, the next caller triggers a new one at once."""
    simulation.network.isolate("broker-3")
    broker = present(simulation.processes[3].broker)

    def next_id() -> None:
        with pytest.raises(KafkaError) as refusal:
            run_now(broker.producer_ids.next_id())
        assert refusal.value.code is RELOADING

    next_id()
    simulation.run_for(3900)
    next_id()
    sent = len(block_requests(simulation))
    simulation.run_for(200)
    assert len(block_requests(simulation)) == sent
    next_id()
    assert len(block_requests(simulation)) == sent + 1


@pytest.mark.parametrize(
    ("broker_id", "epoch_change", "error"),
    [(9, 0, "BROKER_ID_NOT_REGISTERED"), (2, 1, "STALE_BROKER_EPOCH"), (2, 0, "NONE")],
)
def test_the_controller_refuses_unregistered_brokers_and_stale_epochs(
    simulation: Simulation, broker_id: int, epoch_change: int, error: str
) -> None:
    """The controller refuses a block to an unregistered broker id or a stale broker epoch."""
    epoch = present(simulation.processes[2].broker).controller.broker_epoch + epoch_change
    answer = simulation.ask(1, AllocateProducerIdsRequest(broker_id, epoch))
    assert answer.error is ErrorCode[error]
    assert answer.count == (1000 if error == "NONE" else 0)
    assert simulation.ask(2, AllocateProducerIdsRequest(2, epoch)).error is (
        ErrorCode.NOT_CONTROLLER
    )


def test_a_refusal_is_followed_by_a_pause(simulation: Simulation) -> None:
    """After a refusal the broker asks for a block again after 50 ms."""
    simulation.inject("AllocateProducerIds", error="STALE_BROKER_EPOCH")
    assert ask(simulation, 2)[0] is RELOADING
    simulation.run_for(5)
    assert ask(simulation, 2)[0] is RELOADING
    assert len(block_requests(simulation)) == 1
    simulation.run_for(60)
    assert first_id(simulation, 2) == 0
    assert len(block_requests(simulation)) == 2
