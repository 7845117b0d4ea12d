"""Logs in memory for tests, with any topic configuration and emulated version."""

from __future__ import annotations

from typing import Any

from fakekafka.protocol.config import BrokerConfig, TopicConfig
from fakekafka.protocol.records.batch import RecordBatch, build_batch, build_control_marker
from fakekafka.protocol.records.format import Record
from fakekafka.protocol.values import TopicPartition
from fakekafka.replication.log.leader_append import append_as_leader
from fakekafka.replication.log.log import Log
from fakekafka.tests.support.batches import with_base_offset

NOW_MS = 1_700_000_000_000
NAME = TopicPartition("orders", 0)


def make_config(kafka_version: str = "3.9", **overrides: Any) -> TopicConfig:
    names = {name.replace("_", "."): str(value) for name, value in overrides.items()}
    return TopicConfig(BrokerConfig(kafka_version=kafka_version), names)


class Tools:
    """The parts from which tests of logs build their cases."""

    name = NAME
    now_ms = NOW_MS
    config = staticmethod(make_config)

    @staticmethod
    def log(kafka_version: str = "3.9", **overrides: Any) -> Log:
        return Log(NAME, make_config(kafka_version, **overrides))

    @staticmethod
    def data(
        *values: bytes | None,
        keys: list[bytes | None] | None = None,
        times: list[int] | None = None,
        **header: Any,
    ) -> bytes:
        """Return a batch as a producer sends it, with one record per value."""
        records = [
            Record(index, times[index] if times else NOW_MS, keys[index] if keys else None, value)
            for index, value in enumerate(values)
        ]
        return build_batch(records, **header)

    @classmethod
    def fill(cls, log: Log, count: int, epoch: int = 0) -> Log:
        """Append ``count`` batches of one record as leader."""
        for _ in range(count):
            append_as_leader(log, cls.data(b"v"), epoch, NOW_MS)
        return log

    @classmethod
    def batch_at(cls, offset: int, count: int = 1, epoch: int = 0, **header: Any) -> RecordBatch:
        """Return a batch as a leader stores it."""
        data = cls.data(*[b"v"] * count, **header)
        return RecordBatch.from_bytes(with_base_offset(data, offset, epoch))

    @staticmethod
    def marker(producer_id: int, epoch: int, is_commit: bool, coordinator_epoch: int = 0) -> bytes:
        return build_control_marker(producer_id, epoch, is_commit, coordinator_epoch, NOW_MS)

    @classmethod
    def produce(
        cls,
        log: Log,
        producer_id: int,
        epoch: int,
        sequence: int,
        count: int = 1,
        txn: bool = False,
    ) -> Any:
        """Append an idempotent batch as a client."""
        data = cls.data(
            *[b"v"] * count,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=txn,
        )
        return append_as_leader(log, data, 0, NOW_MS)

    @classmethod
    def end(
        cls, log: Log, producer_id: int, is_commit: bool, epoch: int = 0, coordinator_epoch: int = 0
    ) -> Any:
        """Append a transaction marker."""
        data = cls.marker(producer_id, epoch, is_commit, coordinator_epoch)
        return append_as_leader(log, data, 0, NOW_MS, "coordinator")
