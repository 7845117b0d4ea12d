"""The group coordinator of a broker (docs/kafka/groups-and-transactions.md): its parts, and what
its broker tells and asks them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ...protocol.config import BrokerConfig
from ...protocol.errors import ErrorCode
from ...protocol.values import TopicPartition
from ...protocol.versions import Behaviour
from ..consumer_groups.coordinator import ConsumerGroupCoordinator
from .administration import GroupAdministration
from .commits import Commits, TransactionalCommit
from .gate import GroupGate
from .joining import Joining
from .membership import Membership
from .rebalances import Rebalances
from .store import GroupStore

if TYPE_CHECKING:
    from ...protocol.host import Host
    from ...replication.partition.partition import Partition
    from ...replication.replica_manager import ReplicaManager


class GroupCoordinator:
    """Makes the parts; each of the callables in its slots is a method of the part that answers."""

    __slots__ = (
        "_store",
        "administration",
        "commit",
        "commit_in_transaction",
        "consumer_groups",
        "fetch_offsets",
        "groups",
        "heartbeat",
        "join",
        "leave",
        "modern",
        "partition_for",
        "rebalances",
        "sync",
    )

    def __init__(
        self,
        host: Host,
        config: BrokerConfig,
        behaviour: Behaviour,
        replica_manager: ReplicaManager,
        log: Callable[[str, str], object],
    ) -> None:
        """``log`` takes a level (``info``, ``warn``) and a line."""
        store = self._store = GroupStore(host, config, behaviour, replica_manager)
        gate = GroupGate(behaviour, store)
        self.rebalances = rebalances = Rebalances(host, config, behaviour, store, log)
        store.on_loaded = rebalances.loaded
        store.on_unloaded = rebalances.unloaded
        metadata_cache = replica_manager.metadata_cache
        joining = Joining(host.rng, config, behaviour, store, gate, rebalances)
        membership = Membership(behaviour, store, gate, rebalances)
        commits = Commits(host, config, behaviour, metadata_cache, store, gate, rebalances)
        self.administration = GroupAdministration(host, behaviour, metadata_cache, store, gate)
        self.groups = store.groups
        """The groups coordinated here, by id; others only read."""
        self.consumer_groups = store.consumer_groups
        """Likewise, those of the consumer protocol."""
        self.modern: ConsumerGroupCoordinator | None = None
        """The part for the consumer protocol, if it is switched on."""
        if store.has_consumer_groups:
            classic = joining, membership, rebalances
            modern = ConsumerGroupCoordinator(
                host, config, store, gate, replica_manager, classic, log
            )
            self.modern = modern
            self.join, self.sync = modern.join, modern.sync
            self.heartbeat, self.leave = modern.heartbeat, modern.leave
        else:
            self.join, self.sync = joining.join, membership.sync
            self.heartbeat, self.leave = membership.heartbeat, membership.leave
        self.commit = commits.commit
        self.commit_in_transaction: Callable[
            [TransactionalCommit, Callable[[dict[TopicPartition, ErrorCode]], object]], None
        ] = commits.commit_in_transaction
        self.fetch_offsets = commits.fetch
        self.partition_for = store.partition_for

    def leadership_changed(
        self, leaders: Iterable[Partition], followers: Iterable[Partition]
    ) -> None:
        """Load partitions of the internal topic that this broker leads now, drop the others."""
        self._store.leadership_changed(leaders, followers)

    def forget_past(self) -> None:
        """Be as in a new cluster; see ``GroupStore.forget_past``."""
        self._store.forget_past()

    @property
    def is_loading(self) -> bool:
        """Whether partitions of the internal topic are still to be loaded or dropped."""
        return self._store.is_loading

    def partitions_stopped(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions were stopped for good; those of the internal topic are coordinated no more."""
        self._store.partitions_stopped(partitions)

    def partitions_deleted(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget what was committed for partitions that are being deleted."""
        self._store.partitions_deleted(partitions)

    def topics_changed(self, topics: Iterable[str]) -> None:
        """The metadata of topics has changed; for groups that the coordinator assigns to."""
        if self.modern is not None:
            self.modern.topics_changed(topics)

    def transaction_completed(
        self, producer_id: int, partitions: Iterable[int], is_commit: bool
    ) -> None:
        """A marker stands in these partitions of the internal topic: its offsets count, or go."""
        self._store.complete_transaction(producer_id, partitions, is_commit)
