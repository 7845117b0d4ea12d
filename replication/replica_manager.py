"""The replica manager: everything a broker does with the partitions it hosts
(docs/kafka/control-requests.md, docs/kafka/isr.md).

The entry point of the replica layer. It creates the parts and connects them; a broker calls the
part that is responsible. Nothing here blocks, sleeps or sends. Responses go through the ``respond``
callback of each request; periodic work is scheduled with the given ``Host``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..protocol.config import BrokerConfig
from ..protocol.host import Host
from .follower.manager import FetcherManager
from .leader.delayed_requests import DelayedRequests
from .log_dirs import LogDirs
from .partition.hosted_partitions import HostedPartitions
from .role_changes import RoleChanges
from .storage_failures import StorageFailures
from .upkeep import Upkeep

if TYPE_CHECKING:
    from .leader.fetch import FetchHandler
    from .leader.follower_fetch import FollowerFetchHandler
    from .leader.offsets import OffsetsHandler
    from .leader.produce import ProduceHandler
    from .leader.serving import Serving
    from .leader.verified_produce import VerifiedProduce, Verify
    from .partition.isr_proposals import IsrUpdater
    from .partition.metadata_cache import MetadataCache
    from .partition.partition import Partition
    from .replication_quotas import ReplicationQuotas


class ReplicaManager:
    """Hosts partitions, answers their requests, and maintains their logs; owned by one actor."""

    def __init__(
        self,
        hosted: HostedPartitions,
        *,
        host: Host,
        config: BrokerConfig,
        fetcher_manager: FetcherManager,
        broker_epoch: Callable[[], int],
    ) -> None:
        self.hosted: HostedPartitions = hosted
        self.broker_id: int = hosted.broker_id
        self.metadata_cache: MetadataCache = hosted.metadata_cache
        self.isr_updater: IsrUpdater = hosted.context.isr_updater
        self.fetcher_manager: FetcherManager = fetcher_manager
        self._by_name = hosted.by_name
        delayed = DelayedRequests(hosted, host, config)
        self.delayed: DelayedRequests = delayed
        failures = StorageFailures(hosted, delayed, fetcher_manager)
        self.failures: StorageFailures = failures
        quotas = fetcher_manager.quotas
        self.quotas: ReplicationQuotas = quotas
        quotas.leader.answers_followers = self._leads_for_followers
        self._host = host
        self._config = config
        self._serving: Serving | None = None
        self._verify: Verify | None = None
        if config["replica.selector.class"]:
            _ = self._served  # an unknown class keeps the broker from starting
        self.upkeep: Upkeep = Upkeep(
            hosted, delayed, fetcher_manager, host, config, failures.on_storage_failure
        )
        self.log_dirs: LogDirs = LogDirs(hosted, host, config, failures.handle_log_dir_failure)
        self.upkeep.is_moving = self.log_dirs.is_moving
        failures.on_directory_offline = self.log_dirs.directory_failed
        self.roles: RoleChanges = RoleChanges(
            hosted,
            delayed,
            fetcher_manager,
            failures,
            self.log_dirs,
            broker_epoch,
            self.upkeep.start_high_watermark_checkpoints,
        )
        self._bind_fetchers()

    @property
    def _served(self) -> Serving:
        serving = self._serving
        if serving is None:
            from .leader.serving import Serving

            serving = self._serving = Serving(
                self.hosted,
                self.delayed,
                self._host,
                self._config,
                self.quotas.leader,
                self.failures.on_storage_failure,
            )
            serving.verified_produce.verify = self._verify
        return serving

    @property
    def followers(self) -> FollowerFetchHandler:
        """Handler of followers' fetches."""
        return self._served.followers

    @property
    def fetch(self) -> FetchHandler:
        """Handler of fetches."""
        return self._served.fetch

    @property
    def produce(self) -> ProduceHandler:
        """Handler of produce requests."""
        return self._served.produce

    @property
    def verified_produce(self) -> VerifiedProduce:
        """Handler of produce requests that verifies transactions first."""
        return self._served.verified_produce

    @property
    def offsets(self) -> OffsetsHandler:
        """Handler of ListOffsets, OffsetForLeaderEpoch and DeleteRecords."""
        return self._served.offsets

    def verify_with(self, verify: Verify) -> None:
        """Set the function with which leaders verify transactions (KIP-890)."""
        self._verify = verify
        if self._serving is not None:
            self._serving.verified_produce.verify = verify

    def forget_sessions(self) -> None:
        """End all fetch sessions."""
        if self._serving is not None:
            self._serving.fetch.sessions.clear()

    def _bind_fetchers(self) -> None:
        """Connect the fetchers to the hosted partitions and to the callbacks that report their
        progress."""
        self.fetcher_manager.bind(self.hosted.partition)
        callbacks = self.fetcher_manager.callbacks
        callbacks.on_appended = self.delayed.fetches.check_and_complete
        callbacks.on_storage_failure = self.failures.on_storage_failure
        callbacks.on_halt = lambda name, reason: self.failures.halt(reason)
        callbacks.is_unclean_election_allowed = self._is_unclean_election_allowed

    def _is_unclean_election_allowed(self, topic: str) -> bool:
        return bool(self.hosted.topic_config(topic)["unclean.leader.election.enable"])

    def _leads_for_followers(self) -> bool:
        """Return whether other brokers fetch from this one."""
        return any(p.is_leader and p.remote_replicas for p in self._by_name.values())

    # -- life -------------------------------------------------------------------------------

    def startup(self) -> None:
        """Start the periodic work, before the broker has any role."""
        self.upkeep.startup()

    def shutdown(self, checkpoint: bool) -> None:
        """Stop; with ``checkpoint``, after writing high watermarks and closing the disk cleanly."""
        self.roles.is_shutting_down = True
        self.upkeep.shutdown()
        self.log_dirs.shutdown()
        self.delayed.timer.close()
        self.fetcher_manager.shutdown()
        if checkpoint:
            self.upkeep.checkpoint_high_watermarks()
            self.hosted.disk.close()

    # -- gauges -----------------------------------------------------------------------------

    def _count(self, predicate: Callable[[Partition], bool]) -> int:
        return sum(1 for partition in self._by_name.values() if predicate(partition))

    def led_partitions(self) -> list[Partition]:
        """Return the partitions that this broker leads."""
        return [partition for partition in self._by_name.values() if partition.is_leader]

    @property
    def leader_count(self) -> int:
        return self._count(lambda partition: partition.is_leader)

    @property
    def partition_count(self) -> int:
        return len(self._by_name)

    @property
    def offline_count(self) -> int:
        """Number of replicas that are offline because their log directory failed."""
        return len(self.hosted.offline)

    @property
    def under_replicated_count(self) -> int:
        return self._count(lambda partition: partition.is_under_replicated)

    @property
    def under_min_isr_count(self) -> int:
        return self._count(lambda partition: partition.is_under_min_isr)

    @property
    def at_min_isr_count(self) -> int:
        return self._count(lambda partition: partition.is_at_min_isr)

    def clear_counts(self) -> None:
        """Reset the counts of ISR changes."""
        context = self.hosted.context
        context.isr_shrinks = context.isr_expands = context.isr_failed_updates = 0

    @property
    def isr_shrinks(self) -> int:
        """Number of committed removals from an ISR since the start or the last reset."""
        return self.hosted.context.isr_shrinks

    @property
    def isr_expands(self) -> int:
        """Number of committed additions to an ISR since the start or the last reset."""
        return self.hosted.context.isr_expands

    @property
    def failed_isr_updates(self) -> int:
        return self.hosted.context.isr_failed_updates
