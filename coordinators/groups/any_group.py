"""What a group is to the store that keeps it, of whichever protocol it is."""

from __future__ import annotations

from typing import Protocol

from ...protocol.values import TopicPartition
from .offsets import GroupOffsets


class AnyGroup(Protocol):
    """A group of either protocol."""

    group_id: str
    offsets: GroupOffsets

    @property
    def is_dead(self) -> bool: ...

    @property
    def is_empty(self) -> bool: ...

    @property
    def is_consumer_group(self) -> bool: ...

    @property
    def state_name(self) -> str: ...

    def end(self) -> None: ...

    def tombstones(self) -> list[bytes]: ...

    def is_subscribed_to(self, topic: str) -> bool: ...

    def remove_expired_offsets(self, wall_ms: int, retention_ms: int) -> list[TopicPartition]: ...
