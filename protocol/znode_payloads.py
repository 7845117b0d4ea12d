"""Payloads of Kafka's znodes, byte for byte (docs/kafka/zookeeper.md#znodes).

Each znode has an ``encode_*`` and a ``decode_*`` function. JSON is written compactly, with keys in
the order of that page. Decoders accept all older versions of a payload. Source: Kafka's ``ZkData``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from .values import (
    BrokerInfo,
    EndPoint,
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    ReplicaAssignment,
    TopicPartition,
    message,
)
from .znode_paths import CLIENTS, TOPICS

PRODUCER_ID_BLOCK_SIZE = 1000
LOG_DIR_FAILURE_EVENT = 1
_EMPTY_CONFIG = b'{"version":1,"config":{}}'


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _load(data: bytes | None) -> dict[str, Any] | None:
    """Return the JSON object in a payload; None if there is none."""
    if not data:
        return None
    try:
        value = json.loads(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


# --- /controller and /controller_epoch


def encode_controller(broker_id: int, timestamp_ms: int, version: int = 1) -> bytes:
    """Encode a controller in payload version 1 or, since 3.4, 2.

    Version 2 adds a KRaft controller epoch, which is -1 for none.
    """
    value = b'{"version":%d,"brokerid":%d,"timestamp":"%d"' % (version, broker_id, timestamp_ms)
    return value + (b',"kraftControllerEpoch":-1}' if version >= 2 else b"}")


def decode_controller(data: bytes | None) -> int | None:
    """Return the broker id of the controller; None if the payload is not JSON."""
    value = _load(data)
    return None if value is None else int(value["brokerid"])


def encode_controller_epoch(epoch: int) -> bytes:
    return b"%d" % epoch


def decode_controller_epoch(data: bytes | None) -> int:
    return int(data or b"0")


# --- /brokers/ids/<id>


def encode_broker(broker: BrokerInfo, timestamp_ms: int, version: int = 5) -> bytes:
    """Encode the registration of a broker in payload version 1 to 5.

    Without a PLAINTEXT endpoint, ``host`` is null and ``port`` is -1.
    """
    plaintext = next((e for e in broker.endpoints if e.security_protocol == "PLAINTEXT"), None)
    value: dict[str, Any] = {
        "version": version,
        "host": None if plaintext is None else plaintext.host,
        "port": -1 if plaintext is None else plaintext.port,
    }
    if version >= 2:
        value["endpoints"] = [_connection_string(e, version) for e in broker.endpoints]
    value["jmx_port"] = -1
    value["timestamp"] = str(timestamp_ms)
    if version >= 3 and broker.rack is not None:
        value["rack"] = broker.rack
    if version >= 4:
        value["listener_security_protocol_map"] = {
            e.listener: e.security_protocol for e in broker.endpoints
        }
    if version >= 5:
        value["features"] = {
            name: {"min_version": minimum, "max_version": maximum}
            for name, minimum, maximum in broker.features
        }
    return _dump(value)


def decode_broker(broker_id: int, data: bytes | None) -> BrokerInfo:
    """Decode a registered broker; raises ``ValueError`` for an invalid payload."""
    value = _load(data)
    if value is None:
        raise ValueError(f"broker {broker_id} registered without information")
    version = value.get("version", 0)
    if version < 1:
        raise ValueError(f"broker {broker_id} registered in unsupported version {version}")
    if version == 1:
        return BrokerInfo(broker_id, (EndPoint(value["host"], value["port"]),))
    protocols = value.get("listener_security_protocol_map", {})
    features = value.get("features", {})
    return BrokerInfo(
        broker_id,
        tuple(_parse_endpoint(text, protocols) for text in value["endpoints"]),
        value.get("rack"),
        tuple(
            (name, levels["min_version"], levels["max_version"])
            for name, levels in features.items()
        ),
    )


def _connection_string(endpoint: EndPoint, version: int) -> str:
    name = endpoint.listener if version >= 4 else endpoint.security_protocol
    host = f"[{endpoint.host}]" if ":" in (endpoint.host or "") else endpoint.host or ""
    return f"{name}://{host}:{endpoint.port}"


def _parse_endpoint(text: str, protocols: Mapping[str, str]) -> EndPoint:
    listener, _, address = text.partition("://")
    host, _, port = address.rpartition(":")
    return EndPoint(host.strip("[]"), int(port), listener, protocols.get(listener, listener))


# --- /brokers/topics/<topic>


@message
class TopicAssignment:
    """The payload of a topic znode."""

    assignment: tuple[tuple[int, ReplicaAssignment], ...]
    """(partition, replicas) pairs in order of partition number."""
    topic_id: str | None = None


def encode_topic(
    assignment: Mapping[int, ReplicaAssignment], version: int = 3, topic_id: str | None = None
) -> bytes:
    """Encode the assignment of a topic in payload version 1 (<= 2.3), 2 (2.4-2.7) or 3 (>= 2.8)."""
    value: dict[str, Any] = {"version": version}
    if version >= 3 and topic_id is not None:
        value["topic_id"] = topic_id
    ordered = sorted(assignment.items())
    value["partitions"] = {str(p): a.replicas for p, a in ordered}
    if version >= 2:
        value["adding_replicas"] = {str(p): a.adding for p, a in ordered if a.adding}
        value["removing_replicas"] = {str(p): a.removing for p, a in ordered if a.removing}
    return _dump(value)


def decode_topic(
    data: bytes | None, shared: dict[tuple[int, ...], ReplicaAssignment] | None = None
) -> TopicAssignment:
    """Decode the assignment and id of a topic; both are empty if the payload is not JSON.

    ``shared`` caches assignments by their replicas, so that partitions on the same brokers share an
    object. It does not include ongoing reassignments.
    """
    value = _load(data)
    if value is None:
        return TopicAssignment(())
    adding = value.get("adding_replicas") or {}
    removing = value.get("removing_replicas") or {}
    known = {} if shared is None else shared
    pairs: list[tuple[int, ReplicaAssignment]] = []
    for partition, listed in value.get("partitions", {}).items():
        replicas = tuple(listed)
        if partition in adding or partition in removing:
            assignment = ReplicaAssignment(
                replicas, tuple(adding.get(partition, ())), tuple(removing.get(partition, ()))
            )
        else:
            assignment = known.get(replicas) or known.setdefault(
                replicas, ReplicaAssignment(replicas)
            )
        pairs.append((int(partition), assignment))
    return TopicAssignment(tuple(sorted(pairs, key=lambda pair: pair[0])), value.get("topic_id"))


# --- /brokers/topics/<topic>/partitions/<partition>/state


def encode_partition_state(leader_and_isr: LeaderAndIsr, controller_epoch: int) -> bytes:
    recovering = b',"leader_recovery_state":1' if leader_and_isr.is_recovering else b""
    return b'{"version":1,"leader":%d,"leader_epoch":%d,"controller_epoch":%d,"isr":[%s]%s}' % (
        leader_and_isr.leader,
        leader_and_isr.leader_epoch,
        controller_epoch,
        b",".join([b"%d" % replica for replica in leader_and_isr.isr]),
        recovering,
    )


def decode_partition_state(
    data: bytes | None, zk_version: int
) -> LeaderIsrAndControllerEpoch | None:
    """Decode the leadership of a partition; None if the node is empty."""
    value = _load(data)
    if value is None:
        return None
    return LeaderIsrAndControllerEpoch(
        LeaderAndIsr(
            value["leader"],
            value["leader_epoch"],
            tuple(value["isr"]),
            zk_version,
            value.get("leader_recovery_state") == 1,
        ),
        value["controller_epoch"],
    )


# --- /admin/reassign_partitions, /admin/preferred_replica_election


def encode_reassign_partitions(reassignment: Mapping[TopicPartition, Iterable[int]]) -> bytes:
    partitions = [
        {"topic": tp[0], "partition": tp[1], "replicas": list(replicas)}
        for tp, replicas in reassignment.items()
    ]
    return _dump({"version": 1, "partitions": partitions})


def decode_reassign_partitions(data: bytes | None) -> dict[TopicPartition, tuple[int, ...]]:
    """Decode target replicas by partition, in order; raises ``ValueError`` if malformed."""
    try:
        return {
            TopicPartition(entry["topic"], int(entry["partition"])): tuple(
                int(replica) for replica in entry["replicas"]
            )
            for entry in json.loads(data or b"")["partitions"]
        }
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"malformed partition reassignment: {error!r}") from None


def encode_partition_list(partitions: Iterable[TopicPartition]) -> bytes:
    """Encode the payload of a preferred election or of an ISR change notification."""
    names = [{"topic": tp[0], "partition": tp[1]} for tp in partitions]
    return _dump({"version": 1, "partitions": names})


def decode_partition_list(data: bytes | None) -> list[TopicPartition]:
    """Decode partitions in order, without duplicates; empty if the payload is not JSON."""
    value = _load(data) or {}
    names = [TopicPartition(e["topic"], int(e["partition"])) for e in value.get("partitions", ())]
    return list(dict.fromkeys(names))


# --- notifications


def encode_log_dir_event(broker_id: int) -> bytes:
    return b'{"version":1,"broker":%d,"event":%d}' % (broker_id, LOG_DIR_FAILURE_EVENT)


def decode_log_dir_event(data: bytes | None) -> int | None:
    """Return the id of the broker whose log directory failed; None if the payload is not JSON."""
    value = _load(data)
    return None if value is None else int(value["broker"])


def encode_config_change(entity_path: str) -> bytes:
    """Encode a change of configurations.

    ``entity_path`` is for example ``topics/t``, ``brokers/<default>`` or ``users/u/clients/c``.
    """
    return _dump({"version": 2, "entity_path": entity_path})


def decode_config_change(data: bytes | None) -> str:
    """Return the entity path of a notification in version 2, or in the old version 1, which exists
    for topics and clients only.

    Raises ``ValueError`` for any other payload.
    """
    value = _load(data) or {}
    version = value.get("version")
    if version == 2 and isinstance(value.get("entity_path"), str):
        return cast(str, value["entity_path"])
    if version == 1 and value.get("entity_type") in (TOPICS, CLIENTS) and "entity_name" in value:
        return f"{value['entity_type']}/{value['entity_name']}"
    raise ValueError(f"malformed config change notification: {data!r}")


# --- /config/<type>/<name>


def encode_config(config: Mapping[str, str]) -> bytes:
    if not config:
        return _EMPTY_CONFIG  # one object shared by the znodes of all topics without overrides
    return _dump({"version": 1, "config": dict(config)})


def decode_config(data: bytes | None) -> dict[str, str]:
    """Decode an entity's overrides; empty for an empty node; raises ``ValueError`` if malformed."""
    if not data or data == _EMPTY_CONFIG:
        return {}
    value = json.loads(data)
    if not isinstance(value, dict) or value.get("version", 1) != 1:
        raise ValueError(f"malformed entity configuration: {data!r}")
    return {str(k): str(v) for k, v in value.get("config", {}).items()}


# --- /cluster/id


def encode_cluster_id(cluster_id: str) -> bytes:
    return _dump({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes | None) -> str:
    """Decode the id of the cluster; raises ``ValueError`` for a payload without an id."""
    value = _load(data)
    if value is None or "id" not in value:
        raise ValueError(f"malformed cluster id: {data!r}")
    return str(value["id"])


# --- /latest_producer_id_block


@message
class ProducerIdBlock:
    """Producer ids ``first`` to ``last``, both inclusive, allocated to one broker."""

    broker_id: int
    first: int
    last: int


def encode_producer_id_block(block: ProducerIdBlock) -> bytes:
    return b'{"version":1,"broker":%d,"block_start":"%d","block_end":"%d"}' % (
        block.broker_id,
        block.first,
        block.last,
    )


def decode_producer_id_block(data: bytes | None) -> ProducerIdBlock | None:
    """Decode the block allocated last; None while the node is empty."""
    value = _load(data)
    if value is None:
        return None
    return ProducerIdBlock(int(value["broker"]), int(value["block_start"]), int(value["block_end"]))


# --- /feature

FEATURES_DISABLED = 0
FEATURES_ENABLED = 1


@message
class FeatureZnode:
    """Finalised features of the cluster (KIP-584)."""

    enabled: bool
    features: tuple[tuple[str, int, int], ...] = ()
    """(name, minimum level, maximum level) triples."""


def encode_features(node: FeatureZnode, version: int = 1) -> bytes:
    """Encode the features in payload version 1 or, since 3.3, 2, which has maximum levels only."""
    features = {
        name: (
            {"min_version_level": minimum, "max_version_level": maximum}
            if version < 2
            else {"max_version_level": maximum}
        )
        for name, minimum, maximum in node.features
    }
    status = FEATURES_ENABLED if node.enabled else FEATURES_DISABLED
    return _dump({"version": version, "status": status, "features": features})


def decode_features(data: bytes | None) -> FeatureZnode:
    """Decode the feature node; raises ``ValueError`` if malformed."""
    value = _load(data)
    if value is None or value.get("status") not in (FEATURES_DISABLED, FEATURES_ENABLED):
        raise ValueError(f"malformed feature node: {data!r}")
    features = value.get("features") or {}
    return FeatureZnode(
        value["status"] == FEATURES_ENABLED,
        tuple(
            (name, int(levels.get("min_version_level", 1)), int(levels["max_version_level"]))
            for name, levels in features.items()
        ),
    )
