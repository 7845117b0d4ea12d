"""Paths of Kafka's znodes (docs/kafka/zookeeper.md#znodes). Source: Kafka's ``ZkData``."""

from __future__ import annotations

from .values import TopicPartition
from .versions import Behaviour

CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
CONSUMERS = "/consumers"
BROKER_IDS = "/brokers/ids"
BROKER_TOPICS = "/brokers/topics"
BROKER_SEQUENCE_ID = "/brokers/seqid"
DELETE_TOPICS = "/admin/delete_topics"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION = "/admin/preferred_replica_election"
ISR_CHANGE_NOTIFICATION = "/isr_change_notification"
LOG_DIR_EVENT_NOTIFICATION = "/log_dir_event_notification"
CONFIG = "/config"
CONFIG_CHANGES = "/config/changes"
CLUSTER_ID = "/cluster/id"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"
FEATURE = "/feature"
DELEGATION_TOKEN = "/delegation_token"
DELEGATION_TOKENS = "/delegation_token/tokens"
DELEGATION_TOKEN_CHANGES = "/delegation_token/token_changes"
ACL = "/kafka-acl"
ACL_CHANGES = "/kafka-acl-changes"
EXTENDED_ACL = "/kafka-acl-extended"
EXTENDED_ACL_CHANGES = "/kafka-acl-extended-changes"

ISR_CHANGE_PREFIX = "isr_change_"
LOG_DIR_EVENT_PREFIX = "log_dir_event_"
CONFIG_CHANGE_PREFIX = "config_change_"
TOKEN_CHANGE_PREFIX = "token_change_"
ACL_CHANGE_PREFIX = "acl_changes_"

TOPICS = "topics"
BROKERS = "brokers"
CLIENTS = "clients"
USERS = "users"
IPS = "ips"
DEFAULT_ENTITY = "<default>"

_PERSISTENT_PATHS = (
    CONSUMERS,
    BROKER_IDS,
    BROKER_TOPICS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    BROKER_SEQUENCE_ID,
    ISR_CHANGE_NOTIFICATION,
)


def persistent_paths(behaviour: Behaviour) -> tuple[str, ...]:
    """Return the paths that every broker creates at its start, with parents and null data."""
    entity_types = [TOPICS, CLIENTS]
    if behaviour.user_and_broker_config_roots:
        entity_types += [USERS, BROKERS]
    if behaviour.ip_configs:
        entity_types.append(IPS)
    paths = list(_PERSISTENT_PATHS)
    if behaviour.idempotent_producers:
        paths.append(PRODUCER_ID_BLOCK)
    if behaviour.log_dir_failure_handling:
        paths.append(LOG_DIR_EVENT_NOTIFICATION)
    return (*paths, *(f"{CONFIG}/{entity_type}" for entity_type in entity_types))


def broker_id_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    return f"{BROKER_TOPICS}/{topic}"


def topic_partitions_path(topic: str) -> str:
    return f"{BROKER_TOPICS}/{topic}/partitions"


def topic_partition_path(topic_partition: TopicPartition) -> str:
    return f"{BROKER_TOPICS}/{topic_partition[0]}/partitions/{topic_partition[1]}"


def topic_partition_state_path(topic_partition: TopicPartition) -> str:
    return f"{BROKER_TOPICS}/{topic_partition[0]}/partitions/{topic_partition[1]}/state"


def delete_topics_topic_path(topic: str) -> str:
    return f"{DELETE_TOPICS}/{topic}"


def config_entity_path(entity_type: str, entity_name: str) -> str:
    """Return the path of an entity's configurations, such as ``/config/topics/t``.

    The name of a user's client is ``<user>/clients/<client>``.
    """
    return f"{CONFIG}/{entity_type}/{entity_name}"


def sequence_number(name: str) -> int:
    """Return the counter at the end of a sequential node's name (or path)."""
    return int(name[-10:])


def isr_change_path(sequence: int) -> str:
    return f"{ISR_CHANGE_NOTIFICATION}/{ISR_CHANGE_PREFIX}{sequence:010d}"


def log_dir_event_path(sequence: int) -> str:
    return f"{LOG_DIR_EVENT_NOTIFICATION}/{LOG_DIR_EVENT_PREFIX}{sequence:010d}"


def consumer_offset_path(group_id: str, partition: TopicPartition) -> str:
    return f"{CONSUMERS}/{group_id}/offsets/{partition.topic}/{partition.partition}"
