"""Equal values of many partitions, kept once.

A cluster of 100,000 partitions has few different assignments and leaderships: most differ in
nothing but the partition they belong to. What is handed out is immutable, so partitions share it.
The stores forget everything when they grow too large; sharing is all they are for.
"""

from __future__ import annotations

from ...protocol import znode_payloads
from ...protocol.values import LeaderAndIsr, LeaderIsrAndControllerEpoch, ReplicaAssignment
from ...zkfake.messages import ZkResponse

_ENTRIES_MAX = 10_000
_Decision = tuple[int, int, tuple[int, ...], bool, int]
"""Leader, leader epoch, ISR, whether it recovers, controller epoch."""


class SharedValues:
    """Stores of one ZooKeeper client's decoded and encoded values."""

    def __init__(self) -> None:
        self._assignments: dict[tuple[int, ...], ReplicaAssignment] = {}
        self._first: dict[tuple[tuple[int, ...], int], LeaderIsrAndControllerEpoch] = {}
        self._leadership: dict[tuple[bytes, int], LeaderIsrAndControllerEpoch] = {}
        self._payloads: dict[_Decision, bytes] = {}

    def assignments(self) -> dict[tuple[int, ...], ReplicaAssignment]:
        """By replicas, without a reassignment; the decoder adds to it."""
        if len(self._assignments) > _ENTRIES_MAX:
            self._assignments = {}
        return self._assignments

    def first_leadership(
        self, isr: tuple[int, ...], controller_epoch: int
    ) -> LeaderIsrAndControllerEpoch:
        """Leadership of a new partition: the first of its ISR leads, in epoch 0."""
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
        """Leadership in the answer of a successful read; None if the node is empty."""
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
