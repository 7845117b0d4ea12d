"""The modelled producer: its arguments and its timeouts."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka import Simulation
from fakekafka.protocol.errors import ErrorCode, UsageError
from fakekafka.protocol.values import TopicPartition
from fakekafka.tests.support.present import present


def test_a_partition_is_a_pair_or_its_value() -> None:
    """A pair and a TopicPartition name the same queue, whose records keep their order."""
    with Simulation(1) as simulation:
        simulation.create_topic("orders", 1, 1)
        producer = simulation.producer(linger_ms=5)
        answers: list[Any] = []
        for where in (("orders", 0), TopicPartition("orders", 0), ("orders", 0)):
            producer.produce(where, b"x", callback=lambda *answer: answers.append(answer))
        simulation.run_until(lambda: len(answers) == 3)
        assert answers == [(ErrorCode.NONE, 0), (ErrorCode.NONE, 1), (ErrorCode.NONE, 2)]


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        ("orders", b"x", r"write a partition as \('orders', 0\), not 'orders'"),
        (("orders", "0"), b"x", r"not \('orders', '0'\)"),
        (("orders", -1), b"x", r"not \('orders', -1\)"),
        (None, b"x", "not None"),
        (("orders", 0), "text", "value and key must be bytes or None, not 'text' and None"),
    ],
)
def test_invalid_records_are_refused_at_once(where: Any, value: Any, message: str) -> None:
    with Simulation(1) as simulation:
        producer = simulation.producer()
        with pytest.raises(UsageError, match=message):
            producer.produce(where, value)
        with pytest.raises(UsageError, match="must be bytes or None, not b'x' and 5"):
            producer.produce(("orders", 0), b"x", 5)  # type: ignore[arg-type]
        assert producer.unfinished == 0


def test_a_record_without_metadata_expires_after_max_block_ms() -> None:
    """A record fails after ``max_block_ms`` without metadata, even if no response wakes the
    producer (``KafkaProducer.waitOnMetadata``).
    """
    with Simulation(2, topics={"t": 1}, trace=False) as simulation:
        producer = simulation.producer(max_block_ms=7000, delivery_timeout_ms=40_000)
        for broker in (1, 2):
            simulation.network.drop(1, source=producer.name, target=broker)
        outcomes: list[tuple[str, float]] = []
        began_ms = simulation.now_ms
        producer.produce(
            ("t", 0),
            b"a",
            callback=lambda error, _: outcomes.append((error.name, simulation.now_ms)),
        )
        simulation.run_until(lambda: outcomes, 60_000)
        assert outcomes == [("REQUEST_TIMED_OUT", began_ms + 7000)]


def test_the_delivery_timeout_counts_from_the_moment_the_partition_is_known() -> None:
    """The delivery timeout starts when metadata name the partition, even without a leader."""
    config = {"zookeeper.session.timeout.ms": 6000}
    with Simulation(2, config=config, trace=False) as simulation:
        simulation.create_topic("t", assignment={0: [2]})
        simulation.broker(2).kill()
        simulation.run_until(lambda: simulation.partition("t", 0).leader is None)
        producer = simulation.producer(max_block_ms=1000, delivery_timeout_ms=5000, linger_ms=300)
        simulation.network.latency(200, source=producer.name, target="broker-1")
        outcomes: list[tuple[str, float]] = []
        began_ms = simulation.now_ms
        producer.produce(
            ("t", 0),
            b"a",
            callback=lambda error, _: outcomes.append((error.name, simulation.now_ms)),
        )
        simulation.run_until(lambda: outcomes, 60_000)
        ((error, at_ms),) = outcomes
        assert error == "REQUEST_TIMED_OUT"
        assert 5200 <= at_ms - began_ms <= 5202


@pytest.mark.parametrize("heals", [False, True])
def test_a_machine_that_is_cut_off_sends_no_refusal(heals: bool) -> None:
    """A request to an isolated machine is not refused: it fails at the request timeout, or is
    delivered when the link heals, as TCP retransmits.
    """
    with Simulation(2, topics={"t": 1}, trace=False) as simulation:
        dead = present(simulation.partition("t", 0).leader)
        producer = simulation.producer(request_timeout_ms=40_000)
        outcomes: list[tuple[str, float]] = []

        def send(value: bytes) -> None:
            began_ms = simulation.now_ms
            producer.produce(
                ("t", 0),
                value,
                callback=lambda error, _: outcomes.append(
                    (error.name, simulation.now_ms - began_ms)
                ),
            )

        send(b"a")
        simulation.run_until(lambda: outcomes)
        simulation.network.isolate(dead)
        simulation.broker(dead).kill()
        simulation.run_until(lambda: simulation.partition("t", 0).leader not in (None, dead))
        simulation.run_for(1000)
        send(b"b")
        simulation.run_for(20_000)
        assert len(outcomes) == 1
        if heals:
            simulation.network.heal()
        simulation.run_until(lambda: len(outcomes) == 2, 60_000)
        error, waited_ms = outcomes[1]
        assert error == "NONE"
        least_ms = 20_000 if heals else 40_000
        assert least_ms <= waited_ms < least_ms + 500
