"""Small recorded runs for tests of traces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fakekafka.protocol.control import LeaderAndIsrPartitionState, LeaderAndIsrRequest
from fakekafka.protocol.data import (
    FetchPartition,
    FetchRequest,
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import TopicPartition
from fakekafka.tracing.header import build_header
from fakekafka.tracing.recording.recorder import Recorder
from fakekafka.tracing.recording.writer import TraceWriter
from fakekafka.zkfake.messages import EventType, WatchEvent

ORDERS_0 = TopicPartition("orders", 0)


def header(**more: Any) -> dict[str, Any]:
    known = {"mode": "sim", "kafka_version": "3.9", "seed": 42, "scenario": "name = 'x'"}
    return build_header(**{**known, **more})


def fetch(offset: int) -> FetchRequest:
    return FetchRequest(2, 500, 1, 1048576, (FetchPartition(ORDERS_0, offset),))


def produce(data: bytes = b"x" * 100) -> ProduceRequest:
    return ProduceRequest(-1, 30000, (ProducePartition(ORDERS_0, data),))


def acknowledge(offset: int, error: ErrorCode = ErrorCode.NONE) -> ProduceResponse:
    return ProduceResponse((ProducePartitionResponse(ORDERS_0, error, offset),))


def leader_and_isr(
    leader: int, epoch: int, isr: tuple[int, ...], controller_epoch: int = 1
) -> LeaderAndIsrRequest:
    state = LeaderAndIsrPartitionState(
        "orders", 0, controller_epoch, leader, epoch, isr, epoch, (1, 2, 3)
    )
    return LeaderAndIsrRequest(3, controller_epoch, 7, (state,))


class Scribe:
    """Records sends and deliveries as the runtime does, with causes and message ids."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.messages = 0

    def message(
        self,
        time_us: int,
        source: str,
        target: str,
        message: object,
        cause: int | None = None,
        delay_us: int = 250,
    ) -> int:
        """Send and deliver a message; return the number of the delivery."""
        self.messages += 1
        number = self.messages
        event = self.recorder.event
        event(time_us, "send", source, target, message, number, cause)
        return event(time_us + delay_us, "deliver", target, source, message, number, None)

    def state(self, seq: int, prefix: str, **changes: tuple[Any, Any]) -> None:
        """Record changes of state (old, new) at an event."""
        for name, (old, new) in changes.items():
            self.recorder.state(seq, f"{prefix}/{name}", old, new)

    def decide(
        self,
        time_us: int,
        target: str,
        new: tuple[int, int, tuple[int, ...]],
        old: tuple[int, int, tuple[int, ...]] | None = None,
        controller_epochs: tuple[int | None, int] = (None, 1),
        cause: int | None = None,
    ) -> int:
        """Have controller 3 change (leader, epoch, ISR) of orders-0 and inform a broker."""
        request = leader_and_isr(*new, controller_epochs[1])
        told = self.message(time_us, "controller-3", target, request, cause)
        before = old or (None, None, None)
        names = ("leader", "leader_epoch", "isr")
        changes: dict[str, tuple[Any, Any]] = {
            name: pair
            for name, pair in zip(names, zip(before, new, strict=True), strict=True)
            if pair[0] != pair[1]
        }
        if controller_epochs[0] != controller_epochs[1]:
            changes["controller_epoch"] = controller_epochs
        self.state(told - 1, "controller-3/orders-0", **changes)
        return told


def record_failover(recorder: Recorder) -> Recorder:
    """Record broker 1's death at 1 s, noticed at 7 s, and the new leader 2 of orders-0."""
    scribe = Scribe(recorder)
    event = recorder.event
    event(0, "spawn", "broker-1", "broker-1", None, None, None)
    first = (1, 0, (1, 2, 3))
    told = scribe.decide(1_000, "broker-1", first)
    scribe.state(told, "broker-1/orders-0", role=(None, "leader"), leader=(None, 1))
    asked = scribe.message(900_000, "producer-1", "broker-1", produce())
    scribe.message(900_500, "broker-1", "producer-1", acknowledge(0), asked)
    event(1_000_000, "crash", "broker-1", None, None, None, None, "broker-1 is killed")
    event(1_100_000, "drop", "producer-1", "broker-1", produce(), None, None, "not running")
    noticed = scribe.message(
        7_000_000,
        "zk-1",
        "controller-3",
        WatchEvent(1, 1, 9, EventType.NODE_CHILDREN_CHANGED, "/brokers/ids"),
    )
    told = scribe.decide(7_001_000, "broker-2", (2, 1, (2, 3)), first, (1, 1), noticed)
    scribe.state(
        told,
        "broker-2/orders-0",
        role=("follower", "leader"),
        leader=(1, 2),
        leader_epoch=(0, 1),
        isr=((), (2, 3)),
    )
    scribe.message(7_001_300, "controller-3", "broker-3", leader_and_isr(2, 1, (2, 3)), noticed)
    asked = scribe.message(7_100_000, "producer-1", "broker-2", produce())
    scribe.message(7_100_500, "broker-2", "producer-1", acknowledge(1), asked)
    event(9_000_000, "restart", "broker-1", None, None, None, None, "broker-1 starts again")
    fetched = scribe.message(9_500_000, "broker-1", "broker-2", fetch(2))
    scribe.state(fetched, "broker-2/orders-0", isr=((2, 3), (2, 3, 1)))
    return recorder


def record_fetches(recorder: Recorder, count: int, changed: int = -1) -> Recorder:
    """Record ``count`` fetch requests, of which the one at ``changed`` has another offset."""
    for number in range(count):
        offset = number if number != changed else number + 1_000_000
        recorder.event(number * 10, "send", "broker-2", "broker-1", fetch(offset), number, None)
    return recorder


def write_failover(path: Path, **more: Any) -> Recorder:
    recorder = Recorder(TraceWriter(path, header(**more)))
    record_failover(recorder)
    recorder.close()
    return recorder
