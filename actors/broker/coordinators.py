"""The coordinators of a broker, each created when it is first needed.

Few clusters have transactions, and many have no groups. So a broker starts without importing either
coordinator, and passes on later when it started and when it first received metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ...protocol.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ...protocol.names import broker_name
from ...protocol.values import TopicPartition
from ...replication.replica_manager import ReplicaManager
from ..node import Node
from .producer_ids import ProducerIdSource

if TYPE_CHECKING:
    from ...coordinators.groups.coordinator import GroupCoordinator
    from ...coordinators.transactions.coordinator import TransactionCoordinator
    from ...coordinators.transactions.verification import TransactionVerifier, VerificationCallback
    from ...protocol.config import BrokerConfig
    from ...protocol.releases.behaviour import Behaviour
    from ...protocol.transactions import TransactionPartitions
    from ...replication.partition.partition import Partition


class Coordinators:
    """Creates both coordinators, and passes on changes of leaderships and metadata to them."""

    def __init__(
        self,
        node: Node,
        config: BrokerConfig,
        behaviour: Behaviour,
        replica_manager: ReplicaManager,
        producer_ids: ProducerIdSource,
    ) -> None:
        self._node = node
        self._config = config
        self._behaviour = behaviour
        self._replica_manager = replica_manager
        self._producer_ids = producer_ids
        self._requests = _BrokerRequests(node, config["request.timeout.ms"])
        self._started_ms: int = node.now_ms()
        self._first_metadata_ms: int | None = None
        """Time at which this broker first received metadata."""
        self._groups: GroupCoordinator | None = None
        self._transactions: TransactionCoordinator | None = None
        self._verifier: TransactionVerifier | None = None

    @property
    def groups(self) -> GroupCoordinator:
        """The coordinator of consumer groups."""
        if self._groups is None:
            from ...coordinators.consumer_groups.coordinator import group_coordinator

            self._groups = group_coordinator(
                self._node,
                self._config,
                self._behaviour,
                self._replica_manager,
                self._node.log,
                self._started_ms,
            )
        return self._groups

    @property
    def has_groups(self) -> bool:
        """True if the coordinator of consumer groups has been needed."""
        return self._groups is not None

    @property
    def transactions(self) -> TransactionCoordinator:
        """The coordinator of transactions."""
        if self._transactions is None:
            from ...coordinators.transactions.coordinator import TransactionCoordinator

            self._transactions = TransactionCoordinator(
                self._node,
                self._config,
                self._behaviour,
                self._replica_manager,
                self._producer_ids.next_id,
                self._requests.send,
                self._node.start_task,
                started_ms=self._started_ms,
                first_metadata_ms=self._first_metadata_ms,
            )
        return self._transactions

    def verify(
        self,
        transaction: TransactionPartitions,
        knows_abortable: bool,
        callback: VerificationCallback,
    ) -> None:
        """Verify a transaction for a leader here, by asking its coordinator, which may be on
        another broker; see ``TransactionVerifier.verify``."""
        if self._verifier is None:
            from ...coordinators.transactions.verification import TransactionVerifier

            self._verifier = TransactionVerifier(
                self._node, self._config, self._replica_manager.metadata_cache, self._requests.send
            )
        self._verifier.verify(transaction, knows_abortable, callback)

    def leadership_changed(
        self, leaders: Iterable[Partition], followers: Iterable[Partition]
    ) -> None:
        """Load the partitions of internal topics that this broker now leads; unload the others."""
        led, followed = tuple(leaders), tuple(followers)
        topics = {partition.topic_partition.topic for partition in (*led, *followed)}
        if OFFSETS_TOPIC in topics:
            self.groups.leadership_changed(led, followed)
        if TRANSACTIONS_TOPIC in topics:
            self.transactions.leadership_changed(led, followed)

    def partitions_stopped(self, partitions: Iterable[TopicPartition]) -> None:
        """Unload the partitions of internal topics among those that were stopped for good."""
        stopped = tuple(partitions)
        topics = {partition.topic for partition in stopped}
        if OFFSETS_TOPIC in topics:
            self.groups.partitions_stopped(stopped)
        if TRANSACTIONS_TOPIC in topics:
            self.transactions.partitions_stopped(stopped)

    def partitions_deleted(self, partitions: Iterable[TopicPartition]) -> None:
        """Delete the offsets committed for partitions that are being deleted."""
        if self._groups is not None:
            self._groups.partitions_deleted(partitions)

    def metadata_changed(self, topics: Iterable[str]) -> None:
        """Pass on that the controller has sent metadata, among others of these topics."""
        if self._first_metadata_ms is None:
            self._first_metadata_ms = self._node.now_ms()
        if self._groups is not None:
            self._groups.topics_changed(topics)
        if self._transactions is not None:
            self._transactions.metadata_changed()

    def reset(self) -> None:
        """Reset both coordinators to their state in a new cluster."""
        if self._groups is not None:
            self._groups.reset()
        if self._transactions is not None:
            self._transactions.reset()


class _BrokerRequests:
    """Sends requests from one broker to any broker, including itself."""

    def __init__(self, node: Node, timeout_ms: int) -> None:
        self._node = node
        self._timeout_ms = timeout_ms

    def send(self, broker_id: int, request: Any, answered: Callable[[Any], object]) -> None:
        """Send a request; ``answered`` is called once, with None if no answer came."""
        node = self._node

        def handle_outcome(outcome: Any) -> None:
            if not node.stopped:
                answered(None if isinstance(outcome, BaseException) else outcome)

        node.ask_then(broker_name(broker_id), request, self._timeout_ms, handle_outcome)
