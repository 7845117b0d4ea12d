"""A broker of a ``ReplicaCluster``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakekafka.protocol.control import AlterIsrRequest
from fakekafka.protocol.values import LeaderAndIsr, TopicPartition
from fakekafka.replication.disk.memory_disk import MemoryDisk
from fakekafka.replication.follower.fetcher import ReplicaFetcher
from fakekafka.replication.follower.manager import FetcherManager
from fakekafka.replication.log.log import Log
from fakekafka.replication.partition.hosted_partitions import HostedPartitions
from fakekafka.replication.partition.isr_updaters import AlterIsrManager, ZooKeeperIsrManager
from fakekafka.replication.partition.metadata_cache import MetadataCache
from fakekafka.replication.partition.partition import Partition
from fakekafka.replication.replica_manager import ReplicaManager
from fakekafka.tests.support.hosts import FakeHost
from fakekafka.tests.support.present import present

if TYPE_CHECKING:
    from fakekafka.tests.support.replica_cluster import ReplicaCluster

TP = TopicPartition("t", 0)


class Node:
    """A broker whose disk outlives its replica manager."""

    def __init__(self, cluster: ReplicaCluster, broker_id: int) -> None:
        self.cluster = cluster
        self.broker_id = broker_id
        self.disk = MemoryDisk(("one", "two"))
        self.epoch = 0
        self.is_alive = False
        self.halted: str | None = None
        self.start()

    def start(self) -> None:
        cluster = self.cluster
        self.is_alive = True
        self.epoch += 1
        self.host = FakeHost(f"broker-{self.broker_id}", cluster.clock)
        flags = cluster.behaviour
        self.metadata_cache = MetadataCache(self.broker_id)
        self.fetchers: list[ReplicaFetcher] = []
        self.fetcher_manager = FetcherManager(
            broker_id=self.broker_id,
            host=self.host,
            config=cluster.config,
            behaviour=flags,
            broker_epoch=lambda: self.epoch,
            start_fetcher=self.fetchers.append,
            stop_fetcher=self.fetchers.remove,
        )
        if flags.alter_isr:
            self.isr_updater: Any = AlterIsrManager(
                self.host, self.broker_id, lambda: self.epoch, self._send_alter_isr
            )
        else:
            self.isr_updater = ZooKeeperIsrManager(
                self.host, self._write_isr, cluster.published.append
            )
        hosted = HostedPartitions(
            broker_id=self.broker_id,
            host=self.host,
            config=cluster.config,
            behaviour=flags,
            disk=self.disk,
            metadata_cache=self.metadata_cache,
            isr_updater=self.isr_updater,
            topic_config=cluster.topic_config,
        )
        self.manager = ReplicaManager(
            hosted,
            host=self.host,
            config=cluster.config,
            fetcher_manager=self.fetcher_manager,
            broker_epoch=lambda: self.epoch,
        )
        self.manager.failures.on_halt = self._on_halt
        self.manager.startup()

    def _on_halt(self, reason: str) -> None:
        self.halted = reason
        self.kill()

    def _send_alter_isr(self, request: AlterIsrRequest, callback: Any) -> None:
        host = self.host

        def deliver() -> None:
            if host.is_alive:
                callback(self.cluster.on_alter_isr(request))

        self.cluster.deliver_or_hold(deliver)

    def _write_isr(
        self, tp: TopicPartition, state: LeaderAndIsr, controller_epoch: int, callback: Any
    ) -> None:
        host = self.host

        def deliver() -> None:
            if host.is_alive:
                callback(self.cluster.write_isr(tp, state))

        self.cluster.deliver_or_hold(deliver)

    def kill(self) -> None:
        """Crash: the page cache survives, everything in memory is lost."""
        if self.is_alive:
            self.is_alive = False
            self.host.is_alive = False
            self.disk.kill()

    def power_off(self) -> None:
        """Lose power: only flushed data survives."""
        if self.is_alive:
            self.is_alive = False
            self.host.is_alive = False
            self.disk.power_off()

    def shutdown(self) -> None:
        self.manager.shutdown(checkpoint=True)
        self.is_alive = False
        self.host.is_alive = False

    def partition(self, tp: TopicPartition = TP) -> Partition:
        return present(self.manager.hosted.partition(tp))

    def log(self, tp: TopicPartition = TP) -> Log:
        return present(self.partition(tp).log)

    def content(self, tp: TopicPartition = TP) -> str:
        """Return ``value/epoch`` of each record from the log start on."""
        log = self.log(tp)
        parts = []
        for batch in log.read(log.log_start_offset, 1 << 30, log.log_end_offset, True).batches:
            for record in batch.records():
                parts.append(f"{present(record.value).decode()}/{batch.partition_leader_epoch}")
        return " ".join(parts)

    def high_watermark(self, tp: TopicPartition = TP) -> int:
        return self.log(tp).high_watermark

    def log_end_offset(self, tp: TopicPartition = TP) -> int:
        return self.log(tp).log_end_offset

    def epochs(self, tp: TopicPartition = TP) -> list[tuple[int, int]]:
        return list(self.log(tp).epochs)
