"""Members of the classic protocol in groups that change to the consumer protocol (KIP-848)."""

from __future__ import annotations

import struct
from typing import Any

from fakekafka.protocol.errors import ErrorCode
from fakekafka.tests.support.consumer_group_rig import ConsumerGroupRig

NONE = ErrorCode.NONE


def subscription(*owned: int) -> tuple[tuple[str, bytes], ...]:
    """Return the metadata, version 1, of a classic consumer of ``orders``."""
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


def classic_pair(policy: str, **config: Any) -> ConsumerGroupRig:
    """Return a stable classic group of ``c`` and ``d`` with two partitions each."""
    rig = ConsumerGroupRig(group_consumer_migration_policy=policy, **config)
    for name in "cd":
        rig.join(name, protocols=subscription())
    rig.host.advance(0)
    rig.join("c", protocols=subscription())
    rig.host.advance(0)
    rig.sync("d")
    rig.sync("c", {"c": assignment(0, 1), "d": assignment(2, 3)})
    assert rig.state == "Stable"
    return rig


def epoch_of(rig: ConsumerGroupRig, name: str) -> int:
    return int(rig.consumer_group.members[rig.ids[name]].member_epoch)


def rejoin(rig: ConsumerGroupRig, name: str, *owned: int) -> bytes:
    """Join and sync as a classic member of the converted group; return its assignment."""
    joined = rig.join(name, protocols=subscription(*owned))
    assert joined is not None
    assert joined.error is NONE, joined
    synced = rig.sync(name, generation=joined.generation, protocol_type="consumer")
    assert synced is not None
    assert synced.error is NONE
    return synced.assignment
