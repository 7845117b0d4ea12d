"""Members of the classic protocol in groups that change to the consumer protocol (KIP-848)."""

from __future__ import annotations

import struct
from typing import Any

from fakekafka.protocol.errors import ErrorCode
from fakekafka.tests.support.consumer_group_desk import ConsumerGroupDesk

NONE = ErrorCode.NONE


def subscription(*owned: int) -> tuple[tuple[str, bytes], ...]:
    """What a classic consumer of ``orders`` says, in version 1."""
    topic = struct.pack(">h6s", 6, b"orders")
    partitions = struct.pack(f">i{len(owned)}i", len(owned), *owned)
    data = struct.pack(">hi", 1, 1) + topic + b"\xff\xff\xff\xff"
    data += struct.pack(">i", 1) + topic + partitions if owned else struct.pack(">i", 0)
    return (("range", data),)


def assignment(*numbers: int) -> bytes:
    topic = struct.pack(">h6s", 6, b"orders")
    partitions = struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
    return struct.pack(">hi", 1, 1) + topic + partitions + b"\xff\xff\xff\xff"


NOTHING = struct.pack(">hi", 1, 0) + b"\xff\xff\xff\xff"


def classic_pair(policy: str, **config: Any) -> ConsumerGroupDesk:
    """A stable classic group of ``c`` and ``d`` with two partitions each."""
    desk = ConsumerGroupDesk(group_consumer_migration_policy=policy, **config)
    for name in "cd":
        desk.join(name, protocols=subscription())
    desk.host.advance(0)
    desk.join("c", protocols=subscription())
    desk.host.advance(0)
    desk.sync("d")
    desk.sync("c", {"c": assignment(0, 1), "d": assignment(2, 3)})
    assert desk.state == "Stable"
    return desk


def epoch_of(desk: ConsumerGroupDesk, name: str) -> int:
    return int(desk.consumer_group.members[desk.ids[name]].member_epoch)


def rejoin(desk: ConsumerGroupDesk, name: str, *owned: int) -> bytes:
    """Join and sync as a classic member in the new group; its assignment."""
    joined = desk.join(name, protocols=subscription(*owned))
    assert joined is not None
    assert joined.error is NONE, joined
    synced = desk.sync(name, generation=joined.generation, protocol_type="consumer")
    assert synced is not None
    assert synced.error is NONE
    return synced.assignment
