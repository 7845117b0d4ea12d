"""Assignment of replicas to brokers (docs/kafka/topics.md#replica-assignment, KIP-36)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from ..protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    import random

BrokerRack = tuple[int, str | None]
"""(broker id, rack or None)."""


class RackAwareMode(Enum):
    """How to treat racks when some brokers have none."""

    DISABLED = "disabled"
    """Ignore racks."""
    ENFORCED = "enforced"
    """Use racks, and fail if only some brokers have one. The default."""
    SAFE = "safe"
    """Use racks only if every broker has one."""


def broker_metadatas(
    brokers: Iterable[BrokerRack],
    rack_aware_mode: RackAwareMode = RackAwareMode.ENFORCED,
    broker_list: Iterable[int] | None = None,
) -> list[BrokerRack]:
    """Return the brokers to assign to, sorted by id, with or without racks depending on the mode.

    ``broker_list`` restricts the choice. Raises ``KafkaError`` in ``ENFORCED`` mode when only some
    brokers have racks (UNKNOWN_SERVER_ERROR, the code for Kafka's ``AdminOperationException``).
    """
    wanted = None if broker_list is None else set(broker_list)
    chosen = sorted(
        (broker for broker in brokers if wanted is None or broker[0] in wanted),
        key=lambda broker: broker[0],
    )
    without_rack = [broker_id for broker_id, rack in chosen if rack is None]
    if rack_aware_mode is RackAwareMode.ENFORCED and 0 < len(without_rack) < len(chosen):
        raise _partial_racks(chosen)
    if rack_aware_mode is RackAwareMode.DISABLED or without_rack:
        return [(broker_id, None) for broker_id, _rack in chosen]
    return chosen


def assign_replicas_to_brokers(
    brokers: Sequence[BrokerRack],
    partitions: int,
    replication_factor: int,
    fixed_start_index: int = -1,
    start_partition_id: int = -1,
    rng: random.Random | None = None,
) -> dict[int, tuple[int, ...]]:
    """Spread leaders and followers evenly over the brokers (and racks).

    ``brokers`` is used in the order given when no broker has a rack. With ``fixed_start_index``
    below zero the start and the shift are drawn from ``rng`` (both are 0 without one). Returns
    the replicas of each partition, numbered from ``start_partition_id``.

    Raises ``KafkaError``: INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR, or
    UNKNOWN_SERVER_ERROR when some but not all brokers have racks; checked in this order.
    """
    if partitions <= 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0."
        )
    if replication_factor <= 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."
        )
    if replication_factor > len(brokers):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor: {replication_factor} larger than available brokers: "
            f"{len(brokers)}.",
        )
    racks = [rack for _id, rack in brokers if rack is not None]
    if racks and len(racks) < len(brokers):
        raise _partial_racks(brokers)
    if fixed_start_index >= 0:
        start = shift = fixed_start_index
    elif rng is not None:
        start, shift = rng.randrange(len(brokers)), rng.randrange(len(brokers))
    else:
        start = shift = 0
    first = max(0, start_partition_id)
    numbers = range(first, first + partitions)
    if racks:
        return _assign_rack_aware(brokers, numbers, replication_factor, start, shift)
    return _assign_rack_unaware(brokers, numbers, replication_factor, start, shift)


def assign_added_partitions(
    existing: Mapping[int, Sequence[int]], brokers: Sequence[BrokerRack], new_partition_count: int
) -> dict[int, tuple[int, ...]]:
    """Return the replicas of partitions added to a topic, continuing its rotation of leaders.

    ``existing`` is the topic's assignment, ``brokers`` is sorted by id, and ``new_partition_count``
    partitions are added. The start (and the shift) is the index of the first broker whose id is not
    below the first replica of partition 0 (docs/kafka/topics.md#expansion). Raises ``KafkaError``:
    UNKNOWN_SERVER_ERROR if there is no partition 0, and all that ``assign_replicas_to_brokers``
    raises.
    """
    first_replicas = existing.get(0)
    if first_replicas is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Unexpected existing replica assignment, partition id 0 is missing. Assignment: "
            f"{ {p: list(r) for p, r in sorted(existing.items())} }",
        )
    leader = first_replicas[0]
    start = next((i for i, (broker_id, _) in enumerate(brokers) if broker_id >= leader), 0)
    return assign_replicas_to_brokers(
        brokers, new_partition_count, len(first_replicas), start, len(existing)
    )


def rack_alternated_list(brokers: Iterable[BrokerRack]) -> list[int]:
    """Return broker ids in an order in which neighbours are in different racks where possible.

    Takes one broker of each rack in turn: racks by name, the brokers of a rack by id.
    """
    by_rack: dict[str, list[int]] = {}
    for broker_id, rack in sorted(brokers, key=lambda broker: broker[0]):
        by_rack.setdefault(rack or "", []).append(broker_id)
    columns = [by_rack[rack] for rack in sorted(by_rack)]
    return [
        column[row]
        for row in range(max(map(len, columns), default=0))
        for column in columns
        if row < len(column)
    ]


def _partial_racks(brokers: Iterable[BrokerRack]) -> KafkaError:
    return KafkaError(
        ErrorCode.UNKNOWN_SERVER_ERROR,
        "Not all brokers have rack information for replica rack aware assignment: "
        + ", ".join(str(broker_id) for broker_id, rack in brokers if rack is None)
        + " have none.",
    )


def _assign_rack_unaware(
    brokers: Sequence[BrokerRack], numbers: range, replication_factor: int, start: int, shift: int
) -> dict[int, tuple[int, ...]]:
    ids = [broker_id for broker_id, _rack in brokers]
    count = len(ids)
    assignment = {}
    for number in numbers:
        if number > 0 and number % count == 0:
            shift += 1
        first = (number + start) % count
        replicas = [ids[first]]
        for j in range(replication_factor - 1):
            replicas.append(ids[(first + 1 + (shift + j) % (count - 1)) % count])
        assignment[number] = tuple(replicas)
    return assignment


def _assign_rack_aware(
    brokers: Sequence[BrokerRack], numbers: range, replication_factor: int, start: int, shift: int
) -> dict[int, tuple[int, ...]]:
    rack_of = dict(brokers)
    ids = rack_alternated_list(brokers)
    count = len(ids)
    rack_count = len(set(rack_of.values()))
    assignment = {}
    for number in numbers:
        if number > 0 and number % count == 0:
            shift += 1
        first = (number + start) % count
        replicas = [ids[first]]
        racks_used = {rack_of[ids[first]]}
        tried = 0  # grows from replica to replica: reset only between partitions
        while len(replicas) < replication_factor:
            offset = (shift * rack_count + tried) % (count - 1)
            broker_id = ids[(first + 1 + offset) % count]
            tried += 1
            rack = rack_of[broker_id]
            rack_is_fresh = rack not in racks_used or len(racks_used) == rack_count
            if rack_is_fresh and broker_id not in replicas:
                replicas.append(broker_id)
                racks_used.add(rack)
        assignment[number] = tuple(replicas)
    return assignment
