"""The fetchers of one broker, and the assignment of partitions to them
(docs/kafka/replica-fetchers.md#threads)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ...protocol.config import BrokerConfig
from ...protocol.host import Host
from ...protocol.java_hashing import bucket_of, java_string_hash
from ...protocol.values import TopicPartition
from ...protocol.versions import Behaviour
from ..replication_quotas import ReplicationQuotas
from .fetch_state import FetcherCallbacks

if TYPE_CHECKING:
    from ..partition.partition import Partition
    from .fetcher import ReplicaFetcher


def fetcher_id_for(topic_partition: TopicPartition, fetchers: int) -> int:
    """Return the id of the fetcher, among ``fetchers`` per leader, that copies a partition."""
    value = (31 * java_string_hash(topic_partition.topic) + topic_partition.partition) & 0xFFFFFFFF
    if value & 0x80000000:
        value -= 1 << 32
    return bucket_of(value, fetchers)


class InitialFetchState(NamedTuple):
    """Leader and offset with which the copying of a partition begins."""

    leader_id: int
    leader_epoch: int
    offset: int
    """Log end offset if divergence is detected while fetching, else the high watermark."""


class FetcherManager:
    """Creates, feeds and stops ``ReplicaFetcher`` cores, one per leader broker and fetcher id.

    Each core runs in an actor of its own, so starting and stopping are callbacks:
    ``start_fetcher`` begins the loop around a new core, ``stop_fetcher`` ends it. ``bind`` connects
    the manager to the replica manager whose partitions it copies.
    """

    def __init__(
        self,
        *,
        broker_id: int,
        host: Host,
        config: BrokerConfig,
        behaviour: Behaviour,
        broker_epoch: Callable[[], int],
        start_fetcher: Callable[[ReplicaFetcher], object],
        stop_fetcher: Callable[[ReplicaFetcher], object],
    ) -> None:
        self.broker_id = broker_id
        # Not ``host.now_ms`` itself, which the host replaces when its clock changes its rate.
        self.quotas: ReplicationQuotas = ReplicationQuotas(broker_id, config, lambda: host.now_ms())
        """Quotas of throttled replication, also for the partitions that the broker leads."""
        self.callbacks: FetcherCallbacks = FetcherCallbacks()
        self.failed_partitions: dict[TopicPartition, str] = {}
        """Partitions given up until their next LeaderAndIsr, with the reason."""
        self._host = host
        self._config = config
        self._behaviour = behaviour
        self._broker_epoch = broker_epoch
        self._start_fetcher = start_fetcher
        self._stop_fetcher = stop_fetcher
        self._fetchers: dict[tuple[int, int], ReplicaFetcher] = {}
        self._fetcher_of: dict[TopicPartition, ReplicaFetcher] = {}
        self._partition_of: Callable[[TopicPartition], Partition | None] = lambda name: None
        self.callbacks.on_failed = self._on_failed

    def bind(self, partition_of: Callable[[TopicPartition], Partition | None]) -> None:
        """Set the function that finds the partitions to copy."""
        self._partition_of = partition_of

    @property
    def fetchers(self) -> tuple[ReplicaFetcher, ...]:
        return tuple(self._fetchers.values())

    def add_fetchers(self, partitions: Mapping[TopicPartition, InitialFetchState]) -> None:
        """Start copying partitions; a partition with another fetcher is removed from that one."""
        started: list[ReplicaFetcher] = []
        fetchers_per_leader = self._config["num.replica.fetchers"]
        for name, initial in partitions.items():
            partition = self._partition_of(name)
            if partition is None:
                continue
            self.failed_partitions.pop(name, None)
            key = (initial.leader_id, fetcher_id_for(name, fetchers_per_leader))
            fetcher = self._fetchers.get(key)
            if fetcher is None:
                fetcher = self._fetchers[key] = self._new_fetcher(*key)
                started.append(fetcher)
            previous = self._fetcher_of.get(name)
            if previous is not None and previous is not fetcher:
                previous.remove((name,))
            self._fetcher_of[name] = fetcher
            fetcher.add(partition, initial.leader_epoch, initial.offset)
        for fetcher in started:
            self._start_fetcher(fetcher)

    def remove_fetchers(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop copying some partitions and forget their failures."""
        for name in partitions:
            self.failed_partitions.pop(name, None)
            fetcher = self._fetcher_of.pop(name, None)
            if fetcher is not None:
                fetcher.remove((name,))

    def shutdown_idle(self) -> None:
        """Stop fetchers that have nothing left to copy."""
        for key, fetcher in tuple(self._fetchers.items()):
            if not len(fetcher):
                del self._fetchers[key]
                fetcher.stop()
                self._stop_fetcher(fetcher)

    def shutdown(self) -> None:
        """Stop all fetchers."""
        for fetcher in self._fetchers.values():
            fetcher.stop()
            self._stop_fetcher(fetcher)
        self._fetchers.clear()
        self._fetcher_of.clear()

    def log_start_changed(self, topic_partition: TopicPartition) -> None:
        """Handle a log start offset that a follower's own retention has raised."""
        fetcher = self._fetcher_of.get(topic_partition)
        if fetcher is not None:
            fetcher.log_start_changed(topic_partition)

    @property
    def lag_max(self) -> int:
        """Largest number of records by which a copied partition lags behind its leader."""
        states = (fetcher.state(name) for name, fetcher in self._fetcher_of.items())
        return max((state.lag for state in states if state is not None), default=0)

    def _new_fetcher(self, leader_id: int, fetcher_id: int) -> ReplicaFetcher:
        from .fetcher import ReplicaFetcher  # not needed to start a cluster

        return ReplicaFetcher(
            name=f"ReplicaFetcherThread-{fetcher_id}-{leader_id}",
            broker_id=self.broker_id,
            leader_id=leader_id,
            fetcher_id=fetcher_id,
            host=self._host,
            config=self._config,
            behaviour=self._behaviour,
            broker_epoch=self._broker_epoch,
            callbacks=self.callbacks,
            quota=self.quotas.follower,
        )

    def _on_failed(self, topic_partition: TopicPartition, reason: str) -> None:
        self.failed_partitions[topic_partition] = reason
        self._fetcher_of.pop(topic_partition, None)
