"""The brokers the controller knows: registered, shutting down, or with failed log directories."""

from __future__ import annotations

from collections.abc import Iterable

from ...protocol.values import BrokerInfo, TopicPartition
from .ordered_set import OrderedSet


class RegisteredBrokers:
    """Registered brokers and which of their replicas are online (docs/kafka/controller-state.md).

    A "live" broker is a registered broker that is not shutting down.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.live_broker_id_and_epochs: dict[int, int] = {}
        """Broker epoch (czxid of the registration) by id, including brokers shutting down."""
        self.shutting_down_broker_ids: OrderedSet[int] = OrderedSet()
        self.replicas_on_offline_dirs: dict[int, OrderedSet[TopicPartition]] = {}
        """Partitions whose log directory failed, by broker id; no set in it is empty."""
        self._brokers: dict[int, BrokerInfo] = {}
        self._registered_ids: OrderedSet[int] | None = None

    def set_live_brokers(self, brokers_and_epochs: Iterable[tuple[BrokerInfo, int]]) -> None:
        """Replace the registered brokers."""
        self._brokers.clear()
        self.live_broker_id_and_epochs.clear()
        self.add_live_brokers(brokers_and_epochs)

    def add_live_brokers(self, brokers_and_epochs: Iterable[tuple[BrokerInfo, int]]) -> None:
        for broker, epoch in brokers_and_epochs:
            self._brokers[broker.id] = broker
            self.live_broker_id_and_epochs[broker.id] = epoch
        self._registered_ids = None

    def remove_live_brokers(self, broker_ids: Iterable[int]) -> None:
        """Forget registrations; ``shutting_down_broker_ids`` is not touched."""
        for broker_id in broker_ids:
            self._brokers.pop(broker_id, None)
            self.live_broker_id_and_epochs.pop(broker_id, None)
        self._registered_ids = None

    def update_broker_metadata(self, old: BrokerInfo, new: BrokerInfo) -> None:
        """Replace a registered broker's metadata (endpoints, rack and features), not its epoch."""
        self._brokers.pop(old.id, None)
        self._brokers[new.id] = new

    @property
    def live_or_shutting_down_broker_ids(self) -> OrderedSet[int]:
        """Sorted ids of registered brokers, the same object until these change. Read only."""
        if self._registered_ids is None:
            self._registered_ids = OrderedSet(sorted(self.live_broker_id_and_epochs))
        return self._registered_ids

    @property
    def live_broker_ids(self) -> OrderedSet[int]:
        """Sorted ids of registered brokers that are not shutting down. Read only."""
        registered = self.live_or_shutting_down_broker_ids
        if not self.shutting_down_broker_ids:
            return registered
        return OrderedSet(b for b in registered if b not in self.shutting_down_broker_ids)

    def live_brokers(self) -> list[BrokerInfo]:
        return [self._brokers[broker_id] for broker_id in self.live_broker_ids]

    def live_or_shutting_down_brokers(self) -> list[BrokerInfo]:
        return [self._brokers[broker_id] for broker_id in self.live_or_shutting_down_broker_ids]

    def is_live_or_shutting_down_broker(self, broker_id: int) -> bool:
        return broker_id in self.live_broker_id_and_epochs

    def live_or_shutting_down_broker(self, broker_id: int) -> BrokerInfo | None:
        return self._brokers.get(broker_id)

    def is_replica_online(
        self, broker_id: int, topic_partition: TopicPartition, include_shutting_down: bool = False
    ) -> bool:
        """Return whether a replica's broker is registered and its log directory has not failed.

        A replica on a broker that is shutting down is offline unless ``include_shutting_down``.
        """
        if broker_id not in self.live_broker_id_and_epochs:
            return False
        if not include_shutting_down and broker_id in self.shutting_down_broker_ids:
            return False
        offline_dirs = self.replicas_on_offline_dirs
        return not offline_dirs or topic_partition not in offline_dirs.get(broker_id, ())
