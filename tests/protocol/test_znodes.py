"""Paths and payloads of znodes, byte for byte (docs/kafka/zookeeper.md#znodes)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from fakekafka.protocol import znode_paths, znode_payloads
from fakekafka.protocol.values import (
    BrokerInfo,
    EndPoint,
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    ReplicaAssignment,
    TopicPartition,
)
from fakekafka.protocol.versions import behaviour
from hypothesis import given
from hypothesis import strategies as st

TP = TopicPartition("t", 3)
SSL_ONLY = BrokerInfo(7, (EndPoint("h", 9093, "PUBLIC", "SSL"),), "r1", (("f", 1, 2),))
BOTH = BrokerInfo(7, (EndPoint("s", 9093, "SSL", "SSL"), EndPoint("p", 9092)))
MOVING = {1: ReplicaAssignment((2,)), 0: ReplicaAssignment((1, 2)).reassign_to((3, 2))}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (znode_paths.broker_id_path(7), "/brokers/ids/7"),
        (znode_paths.topic_path("t"), "/brokers/topics/t"),
        (znode_paths.topic_partitions_path("t"), "/brokers/topics/t/partitions"),
        (znode_paths.topic_partition_path(TP), "/brokers/topics/t/partitions/3"),
        (znode_paths.topic_partition_state_path(TP), "/brokers/topics/t/partitions/3/state"),
        (znode_paths.delete_topics_topic_path("t"), "/admin/delete_topics/t"),
        (znode_paths.config_entity_path("brokers", "<default>"), "/config/brokers/<default>"),
        (znode_paths.isr_change_path(12), "/isr_change_notification/isr_change_0000000012"),
        (znode_paths.log_dir_event_path(0), "/log_dir_event_notification/log_dir_event_0000000000"),
    ],
)
def test_paths(path: str, expected: str) -> None:
    """Each path equals that of the reference's table."""
    assert path == expected


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (
            znode_payloads.encode_controller(3, 1600000000000),
            '{"version":1,"brokerid":3,"timestamp":"1600000000000"}',
        ),
        (
            znode_payloads.encode_controller(3, 1600000000000, 2),
            '{"version":2,"brokerid":3,"timestamp":"1600000000000","kraftControllerEpoch":-1}',
        ),
        (znode_payloads.encode_controller_epoch(7), "7"),
        (
            znode_payloads.encode_partition_state(LeaderAndIsr(1, 0, (1, 2), 9), 4),
            '{"version":1,"leader":1,"leader_epoch":0,"controller_epoch":4,"isr":[1,2]}',
        ),
        (
            znode_payloads.encode_partition_state(LeaderAndIsr(2, 1, (2,), 9, True), 4),
            '{"version":1,"leader":2,"leader_epoch":1,"controller_epoch":4,"isr":[2],'
            '"leader_recovery_state":1}',
        ),
        (
            znode_payloads.encode_partition_state(LeaderAndIsr(-1, 2, (), 0), 4),
            '{"version":1,"leader":-1,"leader_epoch":2,"controller_epoch":4,"isr":[]}',
        ),
        (
            znode_payloads.encode_reassign_partitions({TP: (1, 2)}),
            '{"version":1,"partitions":[{"topic":"t","partition":3,"replicas":[1,2]}]}',
        ),
        (
            znode_payloads.encode_partition_list([TP]),
            '{"version":1,"partitions":[{"topic":"t","partition":3}]}',
        ),
        (znode_payloads.encode_log_dir_event(3), '{"version":1,"broker":3,"event":1}'),
        (znode_payloads.encode_config({"k": "v"}), '{"version":1,"config":{"k":"v"}}'),
        (znode_payloads.encode_config_change("topics/t"), '{"version":2,"entity_path":"topics/t"}'),
        (znode_payloads.encode_cluster_id("abc"), '{"version":"1","id":"abc"}'),
        (
            znode_payloads.encode_producer_id_block(znode_payloads.ProducerIdBlock(0, 0, 999)),
            '{"version":1,"broker":0,"block_start":"0","block_end":"999"}',
        ),
        (
            znode_payloads.encode_features(znode_payloads.FeatureZnode(True, (("f", 1, 3),))),
            '{"version":1,"status":1,"features":{"f":{"min_version_level":1,'
            '"max_version_level":3}}}',
        ),
        (
            znode_payloads.encode_features(znode_payloads.FeatureZnode(True, (("f", 1, 3),)), 2),
            '{"version":2,"status":1,"features":{"f":{"max_version_level":3}}}',
        ),
        (
            znode_payloads.encode_features(znode_payloads.FeatureZnode(False)),
            '{"version":1,"status":0,"features":{}}',
        ),
        (
            znode_payloads.encode_topic(MOVING, 3, "id"),
            '{"version":3,"topic_id":"id","partitions":{"0":[3,2,1],"1":[2]},'
            '"adding_replicas":{"0":[3]},"removing_replicas":{"0":[1]}}',
        ),
        (
            znode_payloads.encode_topic({0: ReplicaAssignment((1,))}, 3),
            '{"version":3,"partitions":{"0":[1]},"adding_replicas":{},"removing_replicas":{}}',
        ),
        (
            znode_payloads.encode_topic(MOVING, 2, "id"),
            '{"version":2,"partitions":{"0":[3,2,1],"1":[2]},'
            '"adding_replicas":{"0":[3]},"removing_replicas":{"0":[1]}}',
        ),
        (
            znode_payloads.encode_topic(MOVING, 1),
            '{"version":1,"partitions":{"0":[3,2,1],"1":[2]}}',
        ),
    ],
)
def test_payloads(payload: bytes, expected: str) -> None:
    """CP-189, CP-190, CP-201: payloads are compact JSON with keys in the reference's order."""
    assert payload.decode() == expected


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (1, '{"version":1,"host":"p","port":9092,"jmx_port":-1,"timestamp":"5"}'),
        (
            2,
            '{"version":2,"host":"p","port":9092,"endpoints":["SSL://s:9093",'
            '"PLAINTEXT://p:9092"],"jmx_port":-1,"timestamp":"5"}',
        ),
        (
            4,
            '{"version":4,"host":"p","port":9092,"endpoints":["SSL://s:9093",'
            '"PLAINTEXT://p:9092"],"jmx_port":-1,"timestamp":"5",'
            '"listener_security_protocol_map":{"SSL":"SSL","PLAINTEXT":"PLAINTEXT"}}',
        ),
    ],
)
def test_broker_payloads_by_version(version: int, expected: str) -> None:
    """Version 1 has host and port, version 2 adds endpoints, and version 4 the listener map."""
    assert znode_payloads.encode_broker(BOTH, 5, version).decode() == expected


def test_a_broker_without_plaintext_has_no_host() -> None:
    """The host is null and the port -1; version 3 adds the rack, and version 5 the features."""
    assert znode_payloads.encode_broker(SSL_ONLY, 5).decode() == (
        '{"version":5,"host":null,"port":-1,"endpoints":["PUBLIC://h:9093"],"jmx_port":-1,'
        '"timestamp":"5","rack":"r1","listener_security_protocol_map":{"PUBLIC":"SSL"},'
        '"features":{"f":{"min_version":1,"max_version":2}}}'
    )
    v3 = znode_payloads.encode_broker(SSL_ONLY, 5, 3)
    assert b'"rack":"r1"' in v3
    assert b"SSL://h:9093" in v3
    assert b"rack" not in znode_payloads.encode_broker(SSL_ONLY, 5, 2)


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_brokers_of_every_version_are_read(version: int) -> None:
    """A registration is read as far as its version could express it."""
    read = znode_payloads.decode_broker(7, znode_payloads.encode_broker(BOTH, 5, version))
    assert read == (BrokerInfo(7, (EndPoint("p", 9092),)) if version == 1 else BOTH)
    assert znode_payloads.decode_broker(7, znode_payloads.encode_broker(SSL_ONLY, 5)) == SSL_ONLY


def test_ipv6_hosts_survive() -> None:
    """IPv6 addresses are written in brackets, and read back."""
    broker = BrokerInfo(1, (EndPoint("::1", 9092),))
    payload = znode_payloads.encode_broker(broker, 5)
    assert b"PLAINTEXT://[::1]:9092" in payload
    assert znode_payloads.decode_broker(1, payload) == broker


@pytest.mark.parametrize("payload", [None, b"", b"x", b'{"version":0}', b"[]"])
def test_a_broken_registration_is_refused(payload: bytes | None) -> None:
    """A registration of a version below 1 is refused, too."""
    with pytest.raises(ValueError, match="broker 7 registered"):
        znode_payloads.decode_broker(7, payload)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_topics_of_every_version_are_read(version: int) -> None:
    """Missing maps of adding and removing replicas, and missing ids, are tolerated."""
    read = znode_payloads.decode_topic(znode_payloads.encode_topic(MOVING, version, "id"))
    moving = MOVING[0] if version > 1 else ReplicaAssignment(MOVING[0].replicas)
    assert read.assignment == ((0, moving), (1, MOVING[1]))
    assert read.topic_id == ("id" if version == 3 else None)


@pytest.mark.parametrize("payload", [None, b"", b"not json", b"{}"])
def test_an_unreadable_topic_has_no_partitions(payload: bytes | None) -> None:
    """A payload written by hand, for example, may be unreadable."""
    assert znode_payloads.decode_topic(payload) == znode_payloads.TopicAssignment(())


def test_leadership_carries_the_nodes_version() -> None:
    """The version is that of the znode; an empty znode has no leadership."""
    value = LeaderIsrAndControllerEpoch(LeaderAndIsr(1, 2, (1, 3), 8), 4)
    payload = znode_payloads.encode_partition_state(value.leader_and_isr, 4)
    assert znode_payloads.decode_partition_state(payload, 8) == value
    assert znode_payloads.decode_partition_state(None, 8) is None


@pytest.mark.parametrize(
    ("payload", "path"),
    [
        (b'{"version":2,"entity_path":"users/u/clients/c"}', "users/u/clients/c"),
        (b'{"version":1,"entity_type":"topics","entity_name":"t"}', "topics/t"),
        (b'{"version":1,"entity_type":"clients","entity_name":"c"}', "clients/c"),
    ],
)
def test_config_changes_of_both_versions_are_read(payload: bytes, path: str) -> None:
    """CP-201: notifications of configuration changes are read in both versions."""
    assert znode_payloads.decode_config_change(payload) == path


MALFORMED: list[tuple[Callable[[bytes | None], Any], bytes | None]] = [
    (znode_payloads.decode_config_change, b'{"version":1,"entity_type":"users","entity_name":"u"}'),
    (znode_payloads.decode_config_change, b'{"version":3}'),
    (znode_payloads.decode_config_change, None),
    (znode_payloads.decode_reassign_partitions, b"{"),
    (znode_payloads.decode_reassign_partitions, None),
    (znode_payloads.decode_reassign_partitions, b'{"version":1,"partitions":[{"topic":"t"}]}'),
    (znode_payloads.decode_config, b"["),
    (znode_payloads.decode_config, b'{"version":2,"config":{}}'),
    (znode_payloads.decode_cluster_id, b'{"version":"1"}'),
    (znode_payloads.decode_features, b'{"version":1,"status":9}'),
    (znode_payloads.decode_features, None),
]


@pytest.mark.parametrize(("decode", "payload"), MALFORMED)
def test_malformed_payloads_are_refused(
    decode: Callable[[bytes | None], Any], payload: bytes | None
) -> None:
    """Malformed payloads are refused if Kafka refuses them, too."""
    with pytest.raises(ValueError, match=r"malformed|Expecting"):
        decode(payload)


def test_small_payloads_are_read_back() -> None:
    """Payloads of controllers, epochs, cluster ids, configurations, events, producer ids and
    features are read back.
    """
    assert znode_payloads.decode_controller(znode_payloads.encode_controller(3, 1)) == 3
    assert znode_payloads.decode_controller(None) is None
    assert znode_payloads.decode_controller_epoch(znode_payloads.encode_controller_epoch(7)) == 7
    assert znode_payloads.decode_cluster_id(znode_payloads.encode_cluster_id("abc")) == "abc"
    assert znode_payloads.decode_config(znode_payloads.encode_config({"k": "v"})) == {"k": "v"}
    assert znode_payloads.decode_config(None) == {}
    assert znode_payloads.decode_log_dir_event(znode_payloads.encode_log_dir_event(3)) == 3
    assert znode_payloads.decode_log_dir_event(None) is None
    block = znode_payloads.ProducerIdBlock(1, 1000, 1999)
    assert (
        znode_payloads.decode_producer_id_block(znode_payloads.encode_producer_id_block(block))
        == block
    )
    assert znode_payloads.decode_producer_id_block(None) is None
    node = znode_payloads.FeatureZnode(True, (("f", 1, 3),))
    assert znode_payloads.decode_features(znode_payloads.encode_features(node)) == node
    assert znode_paths.sequence_number("isr_change_0000000012") == 12


def test_partition_lists_name_each_partition_once() -> None:
    """Partitions come back in order, and an empty or broken znode lists none."""
    payload = znode_payloads.encode_partition_list([TP, TopicPartition("a", 0), TP])
    assert znode_payloads.decode_partition_list(payload) == [TP, TopicPartition("a", 0)]
    assert znode_payloads.decode_partition_list(None) == []
    assert znode_payloads.decode_partition_list(b"nonsense") == []


@pytest.mark.parametrize(
    ("kafka_version", "payload_version"),
    [("0.10", 3), ("0.10.2", 4), ("2.6", 4), ("2.7", 5), ("3.9", 5)],
)
def test_a_broker_registers_with_the_payload_version_of_its_release(
    kafka_version: str, payload_version: int
) -> None:
    """Only since 0.10.2 does the payload name the security protocol of each listener (KIP-103)."""
    version = behaviour(kafka_version).broker_znode_version
    value = json.loads(znode_payloads.encode_broker(BOTH, 5, version))
    assert value["version"] == payload_version
    assert ("listener_security_protocol_map" in value) is (payload_version >= 4)


names = st.text("abcABC019._-äß", min_size=1, max_size=8)
ids = st.lists(st.integers(0, 2**31 - 1), max_size=4, unique=True).map(tuple)


@given(st.dictionaries(st.builds(TopicPartition, names, st.integers(0, 99)), ids, max_size=5))
def test_any_reassignment_is_read_back(reassignment: dict[TopicPartition, Any]) -> None:
    """Partitions come back in the order in which they were written."""
    read = znode_payloads.decode_reassign_partitions(
        znode_payloads.encode_reassign_partitions(reassignment)
    )
    assert list(read.items()) == list(reassignment.items())


@given(st.integers(-1, 2**31 - 1), st.integers(0, 2**31 - 1), ids, st.integers(0, 99))
def test_any_leadership_is_read_back(
    leader: int, epoch: int, isr: tuple[int, ...], version: int
) -> None:
    """The version is the znode's, and no part of the payload."""
    value = LeaderIsrAndControllerEpoch(LeaderAndIsr(leader, epoch, isr, version), 5)
    payload = znode_payloads.encode_partition_state(value.leader_and_isr, 5)
    assert znode_payloads.decode_partition_state(payload, version) == value
