"""Producer ids: when callers wait for a block, and when they are refused."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka import Simulation
from fakekafka.actors.broker.producer_ids import PrefetchedProducerIds, ProducerIds
from fakekafka.protocol.awaiting import Pending, Task
from fakekafka.protocol.data import InitProducerIdRequest
from fakekafka.protocol.errors import ErrorCode, FakeKafkaError, KafkaError
from fakekafka.tests.support.run_now import run_now


class Blocks:
    """A ZooKeeper that allocates a block when the test says so."""

    def __init__(self) -> None:
        self.asked: list[Pending[tuple[int, int]]] = []

    async def allocate(self, _broker_id: int) -> tuple[int, int]:
        self.asked.append(Pending())
        return await self.asked[-1]


pytestmark = pytest.mark.pure  # replaces the broker, which compiled code takes for an actor


class Host:
    """The part of a node that producer ids use."""

    start_task = staticmethod(Task)

    def __init__(self, clock: list[int]) -> None:
        self.now_ms = lambda: clock[0]
        self.lines: list[str] = []

    def log(self, _level: str, text: str) -> None:
        self.lines.append(text)


def source(blocks: Blocks, clock: list[int]) -> PrefetchedProducerIds:
    host: Any = Host(clock)
    return PrefetchedProducerIds(host, 1, blocks.allocate)


def refused(ids: PrefetchedProducerIds) -> bool:
    """Return True if the caller is refused with a retriable error."""
    with pytest.raises(KafkaError) as refusal:
        run_now(ids.next_id())
    return refusal.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_the_next_block_is_requested_when_nine_tenths_are_used() -> None:
    """The next block is requested once, at 90 %; callers before it are refused (KAFKA-14694)."""
    blocks = Blocks()
    ids = source(blocks, [0])
    assert refused(ids)
    assert refused(ids)
    assert len(blocks.asked) == 1
    blocks.asked[0].set_result((0, 999))
    assert [run_now(ids.next_id()) for _ in range(900)] == list(range(900))
    assert len(blocks.asked) == 1
    assert [run_now(ids.next_id()) for _ in range(100)] == list(range(900, 1000))
    assert len(blocks.asked) == 2
    assert refused(ids)
    blocks.asked[1].set_result((5000, 5999))
    assert run_now(ids.next_id()) == 5000
    assert len(blocks.asked) == 2


def test_until_3_5_a_caller_waits_for_the_next_block_when_all_of_one_are_used() -> None:
    """Until 3.5 callers wait for the next block, which is requested after the last id is used."""
    blocks = Blocks()
    ids = ProducerIds(1, blocks.allocate)
    given: list[int] = []

    async def take() -> None:
        given.append(await ids.next_id())

    waiting = [Task(take()), Task(take())]
    assert len(blocks.asked) == 1
    blocks.asked[0].set_result((0, 2))
    assert given == [0, 1]
    assert all(task.done for task in waiting)
    assert [run_now(ids.next_id())] == [2]
    assert len(blocks.asked) == 1
    late = Task(take())
    assert len(blocks.asked) == 2
    blocks.asked[1].set_result((3000, 3999))
    assert (given[2:], late.done) == ([3000], True)


def test_a_failure_is_followed_by_a_pause() -> None:
    """After a failure no block is requested for 50 ms."""
    blocks, clock = Blocks(), [0]
    ids = source(blocks, clock)
    assert refused(ids)
    blocks.asked[0].set_exception(FakeKafkaError("no ZooKeeper"))
    clock[0] = 49
    assert refused(ids)
    assert len(blocks.asked) == 1
    clock[0] = 50
    assert refused(ids)
    assert len(blocks.asked) == 2


@pytest.mark.parametrize(
    ("version", "first"),
    [
        ("1.1", ErrorCode.NONE),
        ("2.8", ErrorCode.NONE),
        ("3.9", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    ],
)
def test_the_first_producer_of_a_broker_is_sent_away_since_3_6(
    version: str, first: ErrorCode
) -> None:
    """Since 3.6 a broker's first producer gets a retriable error, and succeeds on its retry."""
    with Simulation(1, kafka_version=version) as simulation:

        async def ask() -> ErrorCode:
            request = InitProducerIdRequest(None, 60_000)
            answer = await simulation.running.admin.ask("broker-1", request, 60_000)
            return ErrorCode(answer.error)

        assert simulation.call(ask, 60_000) is first
        simulation.run_for(10)
        assert simulation.call(ask, 60_000) is ErrorCode.NONE
