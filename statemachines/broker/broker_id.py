"""Which id a broker starts with (docs/kafka/brokers.md#start-of-a-broker)."""

from __future__ import annotations

from collections.abc import Mapping

from ...protocol.config import BrokerConfig
from ...protocol.errors import ErrorCode, KafkaError
from ..zookeeper.client import KafkaZkClient


def stored_broker_id(properties: Mapping[str, Mapping[str, str]], cluster_id: str) -> int | None:
    """The id in the ``meta.properties`` of log directories, given by path; None without any.

    Raises ``KafkaError`` (INVALID_CONFIG) when one is unreadable, belongs to another cluster, or
    when they name several brokers.
    """
    found: dict[int, str] = {}
    for path, values in properties.items():
        stored_cluster_id = values.get("cluster.id", cluster_id)
        if stored_cluster_id != cluster_id:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"The Cluster ID {cluster_id} doesn't match stored clusterId {stored_cluster_id} "
                f"in {path}/meta.properties (InconsistentClusterId)",
            )
        text = values.get("broker.id")
        if text is None:
            continue
        if not text.isdecimal() or values.get("version") != "0":
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"{path}/meta.properties cannot be read: it needs version=0 and a number as "
                f"broker.id, not version={values.get('version')} and broker.id={text}",
            )
        found.setdefault(int(text), path)
    if len(found) > 1:
        named = ", ".join(f"{path} is of broker {number}" for number, path in found.items())
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"BrokerMetadata is not consistent across log.dirs: {named} "
            "(InconsistentBrokerMetadata)",
        )
    return next(iter(found), None)


async def resolve_broker_id(
    config: BrokerConfig, stored_broker_id: int | None, zk: KafkaZkClient
) -> int:
    """The id a broker starts with: configured, stored on its disk, or drawn (CP-194).

    Drawn ids are counted up from ``reserved.broker.max.id`` + 1. Raises ``KafkaError``
    (INVALID_CONFIG) when the configured id contradicts the stored one, or there is none to take.
    """
    configured: int = config["broker.id"]
    if configured >= 0:
        if stored_broker_id is not None and stored_broker_id != configured:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Configured broker.id {configured} doesn't match stored broker.id "
                f"{stored_broker_id} in meta.properties (InconsistentBrokerId)",
            )
        return configured
    if stored_broker_id is not None:
        return stored_broker_id
    if not config["broker.id.generation.enable"]:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, "broker.id is not set and broker.id.generation.enable is off"
        )
    return int(config["reserved.broker.max.id"]) + await zk.brokers.generate_broker_sequence_id()
