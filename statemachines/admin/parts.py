"""Parts that the admin APIs share."""

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
    """Await a predicate over the metadata cache for at most so many ms; whether it came true."""

    def __call__(
        self,
        predicate: Callable[[], object],
        timeout_ms: float,
        peers: Callable[[], Sequence[str]] = list,
    ) -> Awaitable[bool]: ...


@assembled
class AdminParts:
    """A broker's connections, as far as the admin APIs use them."""

    host: Host
    config: BrokerConfig
    behaviour: Behaviour
    zk: KafkaZkClient
    controller: KafkaController
    metadata: MetadataCache
    wait: Wait
    surroundings: Mapping[str, str] = MappingProxyType({})
    """Configurations that a broker's settings file would have and that are given otherwise."""

    def hosts_of(self, partitions: Iterable[TopicPartition]) -> list[str]:
        """Return the brokers that host replicas of partitions, as the controller knows them."""
        replicas_of = self.controller.context.topics.partition_replica_assignment
        hosts = dict.fromkeys(b for partition in partitions for b in replicas_of(partition))
        return [broker_name(broker_id) for broker_id in hosts]

    def facts(self) -> dict[str, str]:
        """Settings the broker's own file would name: its id, its listeners and so on."""
        own_id = self.controller.broker_id
        facts = dict(self.surroundings)
        if self.config["broker.id"] >= 0:  # else it was generated and is in no file
            facts |= {"broker.id": str(own_id), "node.id": str(own_id)}
        for broker in self.metadata.alive_brokers():
            if broker.id == own_id:
                if broker.rack is not None:
                    facts["broker.rack"] = broker.rack
                facts["listeners"] = ",".join(
                    f"{end.listener}://{end.host}:{end.port}" for end in broker.endpoints
                )
        return facts
