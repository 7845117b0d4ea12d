"""Keyword arguments of the ``Simulation`` methods that start clients, for type checkers.

Their defaults and meanings are documented with the settings of the clients, such as
``ProducerSettings``; ``tests/testing/parameters/test_client_options.py`` checks that both agree.
"""

from __future__ import annotations

from typing import Literal, TypedDict


class ProducerOptions(TypedDict, total=False):
    """Options of ``ProducerSettings``."""

    acks: int | Literal["all"]
    enable_idempotence: bool
    linger_ms: float
    batch_records: int
    max_in_flight: int
    retry_backoff_ms: int
    request_timeout_ms: int
    delivery_timeout_ms: int
    max_block_ms: int


class ConsumerOptions(TypedDict, total=False):
    """Options of ``ConsumerSettings``."""

    fetch_max_wait_ms: int
    fetch_min_bytes: int
    fetch_max_bytes: int
    max_partition_fetch_bytes: int
    isolation_level: int
    auto_offset_reset: str
    request_timeout_ms: int
    sends_leader_epoch: bool


class GroupConsumerOptions(ConsumerOptions, total=False):
    """Options of ``GroupConsumerSettings``."""

    assignor: str
    group_protocol: str
    group_remote_assignor: str | None
    session_timeout_ms: int
    heartbeat_interval_ms: int
    rebalance_timeout_ms: int
    group_instance_id: str | None
    enable_auto_commit: bool
    auto_commit_interval_ms: int


class TransactionalProducerOptions(TypedDict, total=False):
    """Options of ``TransactionalProducerSettings``."""

    transaction_timeout_ms: int
    request_timeout_ms: int
    delivery_timeout_ms: int
    raises_epoch: bool


class TransformerOptions(TransactionalProducerOptions, total=False):
    """Options of ``TransformerSettings``."""

    group_id: str
    fetch_max_wait_ms: int
    returns_when_fenced: bool
