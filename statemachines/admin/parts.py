"""Dependencies that the admin APIs share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from ...protocol.config import BrokerConfig
from ...protocol.host import Host
from ...protocol.names import broker_name
from ...protocol.values import TopicPartition, assembled
from ...protocol.versions import Behaviour
from ...replication.partition.metadata_cache import MetadataCache
from ..controller.controller import KafkaController
from ..zookeeper.client import KafkaZkClient


class Wait(Protocol):
    """Waits at most ``timeout_ms`` for a predicate on the metadata cache; returns whether it held.

    ``peers`` names the nodes expected to make it true; a timeout is recorded with their names.
    """

    def __call__(
        self,
        predicate: Callable[[], object],
        timeout_ms: float,
        peers: Callable[[], Sequence[str]] = list,
    ) -> Awaitable[bool]: ...


@assembled
class AdminParts:
    """The objects of a broker that the admin APIs use."""

    host: Host
    config: BrokerConfig
    behaviour: Behaviour
    zk: KafkaZkClient
    controller: KafkaController
    metadata: MetadataCache
    wait: Wait
    surroundings: Mapping[str, str] = MappingProxyType({})
    """Settings that a real broker's file would contain, but that this package sets in other ways,
    such as ``log.dirs``."""

    def hosts_of(self, partitions: Iterable[TopicPartition]) -> list[str]:
        """Return the names of the brokers that host the partitions' replicas, as the controller
        knows them."""
        replicas_of = self.controller.context.topics.partition_replica_assignment
        hosts = dict.fromkeys(b for partition in partitions for b in replicas_of(partition))
        return [broker_name(broker_id) for broker_id in hosts]

    def facts(self) -> dict[str, str]:
        """Return settings that a real broker's file would contain: its id, its listeners etc."""
        own_id = self.controller.broker_id
        facts = dict(self.surroundings)
        if self.config["broker.id"] >= 0:  # otherwise the id was generated and is in no file
            facts |= {"broker.id": str(own_id), "node.id": str(own_id)}
        for broker in self.metadata.alive_brokers():
            if broker.id == own_id:
                if broker.rack is not None:
                    facts["broker.rack"] = broker.rack
                facts["listeners"] = ",".join(
                    f"{end.listener}://{end.host}:{end.port}" for end in broker.endpoints
                )
        return facts
