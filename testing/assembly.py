"""The checked plan of a cluster, and the creation of its processes."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..actors.broker.process import BrokerProcess
from ..actors.broker.spec import BrokerListener, BrokerSpec
from ..actors.node import Node
from ..actors.zookeeper.process import ZooKeeperProcess
from ..protocol.config import BrokerConfig
from ..protocol.errors import UsageError
from ..protocol.names import ADMIN, zookeeper_name
from ..protocol.values import frozen
from ..protocol.versions import Behaviour
from ..replication.disk.disk import Disk
from ..replication.disk.memory_disk import MemoryDisk
from ..statemachines.broker.broker_id import NO_BROKER_ID
from ..zkfake.server.roles import ZooKeeperConfig
from ..zkfake.server.storage import ZooKeeperStorage
from ..zkfake.tree import CONFIG_NODE, QUOTA_NODES
from . import arguments
from .defaults import RESTART_DELAY_MS, TEST_RESTART_DELAY_MS, cluster_config, log_dirs

if TYPE_CHECKING:
    from ..actors.runtime.runtime import Runtime


class AdminNode(Node):
    """The admin client on the cluster's network that sends the API's own requests."""


@frozen
class ClusterPlan:
    """The arguments that ``Cluster`` and ``Simulation`` share, checked."""

    broker_ids: tuple[int, ...]
    """Ids of the brokers; -1, -2, ... if the brokers generate their ids."""
    kafka_version: str
    behaviour: Behaviour
    config: dict[str, Any]
    log_dirs: tuple[str, ...]
    topics: Mapping[str, Any]
    zookeepers: int
    racks: Sequence[str | None]
    restart_delay_ms: float

    @classmethod
    def check(
        cls,
        brokers: int | Sequence[int],
        *,
        kafka_version: str,
        config: Mapping[str, Any] | None,
        topics: Mapping[str, Any] | None,
        zookeepers: int,
        racks: Sequence[str | None] | None,
        restart_delay_ms: float | None,
        test_friendly: bool,
        flags: Behaviour | None = None,
    ) -> ClusterPlan:
        """Return the plan for a user's arguments; ``UsageError`` for invalid ones.

        ``flags`` replace the flags of the version.
        """
        broker_ids = arguments.broker_ids(brokers)
        count = len(broker_ids)
        zookeepers = arguments.integer("zookeepers", zookeepers)
        if zookeepers < 1:
            raise UsageError(f"a cluster needs at least one ZooKeeper server, not {zookeepers}")
        flags = arguments.behaviour_flags(kafka_version, flags)
        if restart_delay_ms is None:
            restart_delay_ms = TEST_RESTART_DELAY_MS if test_friendly else RESTART_DELAY_MS
        racks = (None,) * count if racks is None else arguments.racks(racks, count)
        restart_delay_ms = arguments.number(
            "restart_delay_ms", restart_delay_ms, "milliseconds", above_zero=True
        )
        given = arguments.broker_config(config)
        full = cluster_config(given, count, kafka_version, test_friendly=test_friendly)
        checked = BrokerConfig(full, kafka_version)
        if "broker.id" in given:
            broker_ids = _generated_ids(brokers, broker_ids, checked)
        else:
            _require_reserved(broker_ids, checked)
        return cls(
            broker_ids=broker_ids,
            kafka_version=kafka_version,
            behaviour=flags,
            config=full,
            log_dirs=log_dirs(checked["log.dirs"]),
            topics=arguments.topics(topics),
            zookeepers=zookeepers,
            racks=racks,
            restart_delay_ms=restart_delay_ms,
        )

    @property
    def generates_ids(self) -> bool:
        """True if brokers generate their ids when they start (``broker.id=-1``)."""
        return self.broker_ids[0] < 0

    def memory_disk(self) -> MemoryDisk:
        """Return a broker's disk that is kept in memory."""
        return MemoryDisk(self.log_dirs) if self.log_dirs else MemoryDisk()


def _generated_ids(
    brokers: int | Sequence[int], broker_ids: Sequence[int], config: BrokerConfig
) -> tuple[int, ...]:
    """Return the stand-in ids of brokers with ``broker.id=-1``, used until they know their ids."""
    if not isinstance(brokers, int):
        raise UsageError(
            "brokers names ids, and broker.id=-1 lets them be generated; give their number, "
            f"brokers={len(broker_ids)}, or leave broker.id out"
        )
    if not config["broker.id.generation.enable"]:
        raise UsageError(f"{NO_BROKER_ID}, as broker.id.generation.enable is false")
    return tuple(-number for number in range(1, len(broker_ids) + 1))


def _require_reserved(broker_ids: Sequence[int], config: BrokerConfig) -> None:
    """Raise ``UsageError`` for an id above ``reserved.broker.max.id``, as higher ids are generated
    (Kafka: ``KafkaConfig.validateValues``)."""
    most = config["reserved.broker.max.id"]
    if config["broker.id.generation.enable"] and max(broker_ids) > most:
        raise UsageError(
            f"broker id {max(broker_ids)} is above reserved.broker.max.id, {most}; choose ids up "
            'to it, or set it higher, or config={"broker.id.generation.enable": False}'
        )


@frozen
class Equipment:
    """Factories of the parts of brokers and ZooKeeper servers that differ in real and virtual time.

    Each is called with the id of a broker or a server, and ``listener`` also with the broker's
    configuration.
    """

    listener: Callable[[int, BrokerConfig], BrokerListener]
    disk: Callable[[int], Disk]
    zookeeper_storage: Callable[[int], ZooKeeperStorage]


def assemble(
    plan: ClusterPlan, runtime: Runtime, equipment: Equipment
) -> tuple[dict[int, ZooKeeperProcess], dict[int, BrokerProcess], AdminNode]:
    """Create every process; none of them runs yet."""
    zookeepers: dict[int, ZooKeeperProcess] = {}
    processes: dict[int, BrokerProcess] = {}
    names = {server_id: zookeeper_name(server_id) for server_id in range(1, plan.zookeepers + 1)}
    peers = names if plan.zookeepers > 1 else {}
    zookeeper_config = ZooKeeperConfig(
        built_in_paths=(*QUOTA_NODES, CONFIG_NODE)
        if plan.behaviour.zookeeper_config_node
        else QUOTA_NODES,
        supports_get_ephemerals=plan.behaviour.zookeeper_tells_ephemerals,
    )
    for server_id in names:
        storage = equipment.zookeeper_storage(server_id)
        zookeepers[server_id] = ZooKeeperProcess(
            runtime, server_id, peers, storage, zookeeper_config
        )
    cluster_id = base64.urlsafe_b64encode(runtime.rng.randbytes(16)).decode().rstrip("=")
    for broker_id, rack in zip(plan.broker_ids, plan.racks, strict=True):
        config = BrokerConfig({**plan.config, "broker.id": max(broker_id, -1)}, plan.kafka_version)
        spec = BrokerSpec(
            broker_id=broker_id,
            config=config,
            behaviour=plan.behaviour,
            disk=equipment.disk(broker_id),
            zookeepers=tuple(names.values()),
            listener=equipment.listener(broker_id, config),
            rack=rack,
            cluster_id=cluster_id,
            restart_delay_ms=plan.restart_delay_ms,
        )
        processes[broker_id] = BrokerProcess(runtime, spec)
    return zookeepers, processes, runtime.spawn(AdminNode, ADMIN, runtime.process(ADMIN))
