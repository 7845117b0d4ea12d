"""Which replica a consumer should read from (KIP-392, data_plane 6.9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ..protocol.errors import UsageError

_PACKAGE = "org.apache.kafka.common.replica."


class ReplicaView(NamedTuple):
    """A replica a consumer could read from: one that holds the offset it asks for."""

    broker_id: int
    rack: str
    """Empty if the broker has none."""
    log_end_offset: int
    ms_since_caught_up: int


class ReplicaSelector(Protocol):
    def select(
        self, client_rack: str, leader: ReplicaView, replicas: Sequence[ReplicaView]
    ) -> ReplicaView:
        """Choose among ``replicas``, which include the leader."""
        ...


class LeaderSelector:
    """Always the leader."""

    def select(
        self, client_rack: str, leader: ReplicaView, replicas: Sequence[ReplicaView]
    ) -> ReplicaView:
        return leader


class RackAwareReplicaSelector:
    """A replica in the client's rack: the leader if it is there, else the most caught-up one."""

    def select(
        self, client_rack: str, leader: ReplicaView, replicas: Sequence[ReplicaView]
    ) -> ReplicaView:
        if not client_rack:
            return leader
        near = [replica for replica in replicas if replica.rack == client_rack]
        if not near or leader in near:
            return leader
        return max(near, key=lambda view: (view.log_end_offset, -view.ms_since_caught_up))


_SELECTORS = {"LeaderSelector": LeaderSelector, "RackAwareReplicaSelector": RackAwareReplicaSelector}


def replica_selector(class_name: str | None) -> ReplicaSelector | None:
    """The selector of ``replica.selector.class``; None if not set.

    Takes Kafka's full class names or their last part. ``UsageError`` for any other class: a
    broker configured so does not start (DP-45).
    """
    if not class_name:
        return None
    selector = _SELECTORS.get(class_name.removeprefix(_PACKAGE))
    if selector is None:
        raise UsageError(
            f"replica.selector.class {class_name!r} is not known; use one of "
            + ", ".join(_PACKAGE + name for name in _SELECTORS)
        )
    return selector()
