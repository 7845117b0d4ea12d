"""Caches through which many partitions share equal values.

A cluster of 100,000 partitions has few different assignments and leaderships: most differ only in
the partition they belong to. The values are immutable, so partitions can share them. A cache that
grows too large is emptied, as it only serves to save memory.
"""

from __future__ import annotations

from ...protocol import znode_payloads
from ...protocol.values import LeaderAndIsr, LeaderIsrAndControllerEpoch, ReplicaAssignment
from ...zkfake.messages import ZkResponse

_ENTRIES_MAX = 10_000
_Decision = tuple[int, int, tuple[int, ...], bool, int]
"""(leader, leader epoch, ISR, whether the leader is recovering, controller epoch)."""


class SharedValues:
    """Caches of one ZooKeeper client's decoded and encoded values."""

    def __init__(self) -> None:
        self._assignments: dict[tuple[int, ...], ReplicaAssignment] = {}
        self._first: dict[tuple[tuple[int, ...], int], LeaderIsrAndControllerEpoch] = {}
        self._leadership: dict[tuple[bytes, int], LeaderIsrAndControllerEpoch] = {}
        self._payloads: dict[_Decision, bytes] = {}

    def assignments(self) -> dict[tuple[int, ...], ReplicaAssignment]:
        """Return the cache of assignments without a reassignment, by replicas, to which the decoder
        adds."""
        if len(self._assignments) > _ENTRIES_MAX:
            self._assignments = {}
        return self._assignments

    def first_leadership(
        self, isr: tuple[int, ...], controller_epoch: int
    ) -> LeaderIsrAndControllerEpoch:
        """Return the leadership of a new partition: the first ISR member leads in epoch 0."""
        found = self._first.get((isr, controller_epoch))
        if found is None:
            if len(self._first) > _ENTRIES_MAX:
                self._first = {}
            found = LeaderIsrAndControllerEpoch(LeaderAndIsr(isr[0], 0, isr, 0), controller_epoch)
            self._first[isr, controller_epoch] = found
        return found

    def payload(self, decision: LeaderIsrAndControllerEpoch) -> bytes:
        """Return the content of a partition's state node."""
        value = decision.leader_and_isr
        epoch = decision.controller_epoch
        key = (value.leader, value.leader_epoch, value.isr, value.is_recovering, epoch)
        payload = self._payloads.get(key)
        if payload is None:
            if len(self._payloads) > _ENTRIES_MAX:
                self._payloads = {}
            payload = znode_payloads.encode_partition_state(value, epoch)
            self._payloads[key] = payload
        return payload

    def leadership(self, response: ZkResponse) -> LeaderIsrAndControllerEpoch | None:
        """Return the leadership in the answer of a successful read; None if the node is empty."""
        version = 0 if response.stat is None else response.stat.version
        if response.data is None:
            return None
        key = (response.data, version)
        found = self._leadership.get(key)
        if found is None:
            if len(self._leadership) > _ENTRIES_MAX:
                self._leadership = {}
            found = znode_payloads.decode_partition_state(response.data, version)
            if found is not None:
                self._leadership[key] = found
        return found
