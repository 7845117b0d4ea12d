"""Questions "why did this (not) happen": the chain of causes names the fault or the rule.

A question about something that did not happen is asked of the event at which it happened at last:
what led to that one is what had been missing.
"""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka import Simulation, Trace
from fakekafka.tracing.events import Event
from fakekafka.tracing.text import format_event

ORDERS = ("orders", 0)


def _run_cut() -> Trace:
    """The only follower outside is cut off, then the other one dies; min.insync.replicas is 2."""
    topics = {"orders": {"assignment": {0: [1, 2, 3]}}}
    config = {"min.insync.replicas": 2}
    with Simulation(3, seed=1, topics=topics, config=config, kafka_version="3.9") as simulation:
        producer = simulation.producer(name="p", acks="all")
        simulation.consumer([ORDERS], name="c")
        producer.produce(ORDERS, b"a")
        simulation.run_for(500)
        simulation.network.isolate(3)
        producer.produce(ORDERS, b"b")
        simulation.run_for(43_000)
        simulation.broker(2).kill()
        simulation.run_for(25_000)
        producer.produce(ORDERS, b"c")
        simulation.run_for(3_000)
        return simulation.trace()


def _run_unclean() -> Trace:
    """The last member of the ISR dies with two records that nobody else has; both come back."""
    topics = {"orders": {"assignment": {0: [1, 2]}}}
    config = {"unclean.leader.election.enable": "true"}
    with Simulation(3, seed=1, topics=topics, config=config, kafka_version="3.9") as simulation:
        simulation.produce("orders", "a")
        simulation.broker(2).kill()
        simulation.run_for(30_000)
        simulation.produce("orders", ["b", "c"])
        simulation.broker(1).kill()
        simulation.broker(2).start()
        simulation.run_for(30_000)
        simulation.broker(1).start()
        simulation.run_for(30_000)
        simulation.broker(2).shutdown()
        simulation.run_for(1_000)
        return simulation.trace()


@pytest.fixture(scope="module")
def runs() -> dict[str, Trace]:
    return {"cut": _run_cut(), "unclean": _run_unclean()}


def _change(trace: Trace, path: str, wanted: Any) -> Event:
    """The first event at which a value became so; ``wanted`` may be a test of old and new."""
    for change in trace.changes(path):
        if wanted(change.old, change.new) if callable(wanted) else change.new == wanted:
            return change.event
    raise AssertionError(f"{path} never became {wanted}")


def _is_shorter(old: Any, new: Any) -> bool:
    return old is not None and new is not None and new < old


QUESTIONS: list[tuple[str, str, str | tuple[str, Any], tuple[str, ...]]] = [
    (
        "why did the ISR shrink?", "cut",
        ("broker-1/orders-0/isr", [1, 2]),
        ("session", "partition [['broker-3']"),
    ),
    (
        "why did the high watermark not move for 20 s?", "cut",
        ("broker-1/orders-0/high_watermark", 2),
        ("LeaderAndIsrRequest", "expires", "partition [['broker-3']"),
    ),
    (
        "why did only the leader stay in the ISR?", "cut",
        ("broker-1/orders-0/isr", [1]),
        ("expires", "broker-2 is killed"),
    ),
    (
        "why was this produce refused?", "cut",
        ("p", "NOT_ENOUGH_REPLICAS"),
        ("NOT_ENOUGH_REPLICAS", "client_invoke"),
    ),
    (
        "why did this producer send again?", "cut",
        "kind == client_retry",
        ("timer_fire", "client_invoke"),
    ),
    (
        "why did this session expire?", "cut",
        "kind == expire",
        ("controller-3", "partition [['broker-3']"),
    ),
    (
        "why was this record acknowledged?", "cut",
        "kind == client_ok and type == produce",
        ("ProduceResponse", "client_invoke"),
    ),
    (
        "why does a replica lead that was not in the ISR?", "unclean",
        ("broker-2/orders-0/role", "leader"),
        ("LeaderAndIsrRequest", "expires", "broker-1 is killed"),
    ),
    (
        "why were these records lost?", "unclean",
        ("broker-1/orders-0/log_end_offset", _is_shorter),
        ("diverging_epoch", "LeaderAndIsrRequest", "leader=2"),
    ),
    (
        "why was the partition without a leader?", "unclean",
        ("controller-*/orders-0/state", "OfflinePartition"),
        ("expires", "broker-1 is killed"),
    ),
    (
        "why is another broker the controller?", "unclean",
        ("zk-1/znodes/controller", lambda old, new: new and '"brokerid":3' in str(new)),
        ("NodeDeleted path=/controller", "expires", "broker-1 is killed"),
    ),
    (
        "why did the leader move while all were well?", "unclean",
        ("broker-1/orders-0/role", "leader-again"),
        ("ControlledShutdownRequest", "step"),
    ),
]  # fmt: skip


def _event(trace: Trace, place: str | tuple[str, Any]) -> Event:
    if isinstance(place, str):
        return next(trace.filter(place))
    path, wanted = place
    if path == "p":
        answers = trace.filter("type == ProduceResponse and kind == deliver and actor == p")
        return next(event for event in answers if wanted in format_event(event))
    if wanted == "leader-again":
        return [change.event for change in trace.changes(path) if change.new == "leader"][-1]
    return _change(trace, path, wanted)


@pytest.mark.parametrize(
    ("run", "place", "answers"), [row[1:] for row in QUESTIONS], ids=[row[0] for row in QUESTIONS]
)
def test_the_causes_name_the_fault_or_the_rule(
    runs: dict[str, Trace], run: str, place: Any, answers: tuple[str, ...]
) -> None:
    trace = runs[run]
    chain = trace.why(_event(trace, place))
    told = "\n".join(format_event(event) for event in chain)
    positions = [told.find(answer) for answer in answers]
    assert -1 not in positions, f"{answers} not all in\n{told}"
    assert len(chain) <= 8, told
