"""Selection of the replica from which a consumer should read (KIP-392,
docs/kafka/fetch.md#preferred-read-replica)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ...protocol.declaring.native import checks_arguments
from ...protocol.errors import UsageError

if TYPE_CHECKING:
    from ..partition.metadata_cache import MetadataCache
    from ..partition.partition import Partition

_PACKAGE = "org.apache.kafka.common.replica."


class ReplicaView(NamedTuple):
    """A replica from which a consumer could read, as it has the requested offset."""

    broker_id: int
    rack: str
    """Rack of the broker; empty if it has none."""
    log_end_offset: int
    ms_since_caught_up: int


class ReplicaSelector(Protocol):
    def select(
        self, client_rack: str, leader: ReplicaView, replicas: Sequence[ReplicaView]
    ) -> ReplicaView:
        """Choose among ``replicas``, which include the leader."""
        ...


class LeaderSelector:
    """Always selects the leader."""

    def select(
        self, client_rack: str, leader: ReplicaView, replicas: Sequence[ReplicaView]
    ) -> ReplicaView:
        return leader


class RackAwareReplicaSelector:
    """Selects a replica in the client's rack, preferring the leader, then the most caught-up one.

    Without a replica in the rack it selects the leader.
    """

    def select(
        self, client_rack: str, leader: ReplicaView, replicas: Sequence[ReplicaView]
    ) -> ReplicaView:
        if not client_rack:
            return leader
        near = [replica for replica in replicas if replica.rack == client_rack]
        if not near or leader in near:
            return leader
        return max(near, key=lambda view: (view.log_end_offset, -view.ms_since_caught_up))


_SELECTORS: dict[str, type[LeaderSelector | RackAwareReplicaSelector]] = {
    "LeaderSelector": LeaderSelector,
    "RackAwareReplicaSelector": RackAwareReplicaSelector,
}


@checks_arguments
def replica_selector(class_name: str | None) -> ReplicaSelector | None:
    """Return the selector of ``replica.selector.class``; None if it is not set.

    Takes Kafka's full class names or their last part. Raises ``UsageError`` for any other class,
    which keeps the broker from starting (DP-45).
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


def preferred_replica(
    selector: ReplicaSelector,
    partition: Partition,
    metadata_cache: MetadataCache,
    fetch_offset: int,
    client_rack: str,
) -> int:
    """Return the follower from which a consumer should read; -1 for this broker.

    Candidates have the offset and are on live brokers, but need not be in the ISR. A follower
    does not know the other replicas, so it never redirects a consumer.
    """
    log = partition.log
    if log is None or not partition.is_leader:
        return -1
    context = partition.context
    own = metadata_cache.broker(context.broker_id)
    leader = ReplicaView(
        context.broker_id, (own.rack if own else None) or "", log.log_end_offset, 0
    )
    now_ms = context.host.now_ms()
    partition.settle_fetchers()
    views = [leader]
    for replica in partition.remote_replicas:
        broker = metadata_cache.broker(replica.broker_id)
        if broker is not None and (
            replica.log_start_offset <= fetch_offset <= replica.log_end_offset
        ):
            since_caught_up_ms = now_ms - replica.last_caught_up_time_ms
            views.append(
                ReplicaView(
                    replica.broker_id,
                    broker.rack or "",
                    replica.log_end_offset,
                    since_caught_up_ms,
                )
            )
    chosen = selector.select(client_rack, leader, views)
    return -1 if chosen.broker_id == context.broker_id else chosen.broker_id
