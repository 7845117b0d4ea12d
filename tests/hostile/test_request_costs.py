"""The cost of each request is proportional to its size, whichever of its arrays is long."""

from __future__ import annotations

import struct

import pytest
from fakekafka import Cluster
from fakekafka.tests.support.coordinator_shapes import (
    Sender,
    find_coordinator,
    init_producer_id,
    join_group,
    member_shapes,
    transaction_shapes,
)
from fakekafka.tests.support.growing_requests import NAMES, PARTITION_KINDS, Shape
from fakekafka.tests.support.request_shapes import shapes
from fakekafka.tests.support.timed_answers import answer, cost_unanswered
from fakekafka.wire.kafka.registry import CODEC_RANGES

UNANSWERED = {"AlterConfigs: same name", "JoinGroup: same name"}
"""Requests at which Kafka fails without an answer (docs/kafka/clients.md)."""
SHAPES = {shape.name: shape for shape in shapes()}
CHEAP_S = 0.25
"""Seconds for 4,000 elements below which the cost is accepted without a second measurement; a
quadratic cost takes longer.
"""


def assert_is_cheap(cluster: Cluster, shape: Shape) -> None:
    """Check that the cost is proportional, measuring again before failing, as the machine may be
    busy.
    """

    def cost_s(size: int) -> float:
        if shape.name in UNANSWERED:
            return cost_unanswered(cluster, shape.frame(size))
        return answer(cluster, shape.frame(size))[1]

    large_s = cost_s(4000)
    if large_s < CHEAP_S:
        return
    small_s = min(cost_s(500) for _ in range(2))
    large_s = min(large_s, cost_s(4000))
    assert large_s < 24 * small_s


@pytest.fixture(scope="module")
def sender(cluster: Cluster) -> Sender:
    """Prepare a member that leads its group, and a producer with a transactional id."""

    def ask(shape: Shape, error_at: int) -> bytes:
        body = b""

        def is_answered() -> bool:
            nonlocal body
            body, _ = answer(cluster, shape.frame(1))
            return body[error_at : error_at + 2] == b"\0\0"

        cluster.wait_until(is_answered)
        return body

    ask(find_coordinator(0, "led"), 4)
    ask(find_coordinator(1, "begun"), 4)
    joined = ask(Shape("", 11, 0, join_group("led", 300_000, [{"name": "range"}])), 0)
    (generation,) = struct.unpack_from(">i", joined, 2)
    at = 6
    for _ in ("protocol", "leader"):
        at += 2 + int.from_bytes(joined[at : at + 2], "big")
    member_id = joined[at + 2 : at + 2 + int.from_bytes(joined[at : at + 2], "big")].decode()
    begun = ask(init_producer_id("begun"), 4)
    return Sender("led", generation, member_id, "begun", *struct.unpack_from(">qh", begun, 6))


@pytest.mark.usefixtures("sender")
@pytest.mark.parametrize("name", SHAPES)
def test_eight_times_the_request_costs_about_eight_times_as_much(
    cluster: Cluster, name: str
) -> None:
    """20,000 partitions in ListOffsets took 35 s, 6,000 names in AlterConfigs 13 s."""
    assert_is_cheap(cluster, SHAPES[name])


@pytest.mark.parametrize("kind", PARTITION_KINDS)
def test_the_cost_is_linear_for_a_producer_with_a_transaction(
    cluster: Cluster, sender: Sender, kind: str
) -> None:
    """Such requests are not refused early, but reach the coordinator."""
    for shape in transaction_shapes(sender, kind):
        assert_is_cheap(cluster, shape)


@pytest.mark.parametrize("kind", NAMES)
def test_the_cost_is_linear_for_a_member_of_a_group(
    cluster: Cluster, sender: Sender, kind: str
) -> None:
    """The leader's SyncGroup has thousands of assignments."""
    for shape in member_shapes(sender, kind):
        body, _ = answer(cluster, shape.frame(1))
        assert body[4:6] == b"\0\0"
        assert_is_cheap(cluster, shape)


def test_every_api_has_a_shape() -> None:
    """New APIs need a shape, too."""
    assert {shape.key for shape in SHAPES.values()} == set(CODEC_RANGES)
