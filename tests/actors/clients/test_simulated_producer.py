"""The modelled producer: what it takes, and what it says to the rest."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka import Simulation
from fakekafka.protocol.errors import ErrorCode, UsageError
from fakekafka.protocol.values import TopicPartition


def test_a_partition_is_a_pair_or_its_value() -> None:
    """Both name one queue, whose records keep their order."""
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
def test_what_is_no_record_is_refused_at_once(where: Any, value: Any, message: str) -> None:
    with Simulation(1) as simulation:
        producer = simulation.producer()
        with pytest.raises(UsageError, match=message):
            producer.produce(where, value)
        with pytest.raises(UsageError, match="must be bytes or None, not b'x' and 5"):
            producer.produce(("orders", 0), b"x", 5)  # type: ignore[arg-type]
        assert producer.unfinished == 0
