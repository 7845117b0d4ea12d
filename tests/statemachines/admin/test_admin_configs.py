"""DescribeConfigs with sources of values, and the checks of AlterConfigs."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.admin import (
    APPEND,
    BROKER_RESOURCE,
    DELETE,
    SET,
    SUBTRACT,
    TOPIC_RESOURCE,
    AlterConfigsRequest,
    ConfigResource,
    DescribeConfigsRequest,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import TopicPartition
from fakekafka.protocol.versions import behaviour
from fakekafka.tests.support.controller_cluster import ControllerCluster
from fakekafka.tests.support.run_now import run_now

TP = TopicPartition("t", 0)
T = ConfigResource(TOPIC_RESOURCE, "t")


def describe(
    cluster: ControllerCluster, resource: ConfigResource, *names: str, **options: Any
) -> Any:
    request = DescribeConfigsRequest(((resource, names),), **options)
    return cluster.ask(cluster.admin().configs.describe_configs(request)).results[0]


def alter(
    cluster: ControllerCluster,
    resource: ConfigResource,
    *entries: tuple[str, int, str | None],
    **options: Any,
) -> ErrorCode:
    request = AlterConfigsRequest(((resource, entries),), **options)
    response = cluster.ask(cluster.admin().config_changes.alter_configs(request))
    error: ErrorCode = response.results[0][1]
    return error


def test_a_topics_values_come_with_their_sources(cluster: ControllerCluster) -> None:
    """Data plane 15.7: override, dynamic broker, static, default; synonyms in order."""
    cluster.create_topic("t", (1,), config={"retention.ms": "5"})
    result = describe(cluster, T, "retention.ms", include_synonyms=True)
    (entry,) = result.entries
    assert (entry.value, entry.source, entry.read_only, entry.is_default) == ("5", 1, False, False)
    # log.retention.ms has no default of its own, and what comes behind it does not count then.
    assert entry.synonyms == (("retention.ms", "5", 1),)
    (entry,) = describe(cluster, T, "cleanup.policy").entries
    assert (entry.value, entry.source, entry.config_type, entry.is_default) == (
        "delete",
        5,
        7,
        True,
    )
    assert len(describe(cluster, T).entries) > 20


def test_brokers_were_described_before_they_could_be_altered() -> None:
    """In 0.11 and 1.0 AlterConfigs is for topics only; KIP-226 came with 1.1."""
    cluster = ControllerCluster(kafka_version="1.1")
    cluster.behaviour = behaviour("1.1", broker_configs_api=False)
    cluster.start(1)
    own = ConfigResource(BROKER_RESOURCE, "1")
    assert describe(cluster, own).error is ErrorCode.NONE
    request = AlterConfigsRequest(((own, (("background.threads", SET, "5"),)),))
    ((_, error, text),) = cluster.ask(cluster.admin().config_changes.alter_configs(request)).results
    assert (error, text) == (
        ErrorCode.INVALID_REQUEST,
        "AlterConfigs is only supported for topics, but resource type is BROKER",
    )


def test_unknown_resources_are_refused(cluster: ControllerCluster) -> None:
    """Data plane 15.7: topic 3, name 17, another broker 42."""
    cases = [
        (ConfigResource(TOPIC_RESOURCE, "nothing"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ConfigResource(BROKER_RESOURCE, "2"), ErrorCode.INVALID_REQUEST),
        (ConfigResource(BROKER_RESOURCE, "one"), ErrorCode.INVALID_REQUEST),
        (ConfigResource(99, "x"), ErrorCode.INVALID_REQUEST),
    ]
    for resource, expected in cases:
        assert describe(cluster, resource).error is expected
        assert alter(cluster, resource, ("retention.ms", SET, "1")) is expected
    bad_name = ConfigResource(TOPIC_RESOURCE, "a b")
    assert describe(cluster, bad_name).error is ErrorCode.INVALID_TOPIC_EXCEPTION
    # ``ZkAdminManager.alterTopicConfigs`` only looks whether the topic is there.
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert alter(cluster, bad_name, ("retention.ms", SET, "1")) is unknown


def test_a_brokers_dynamic_values_lie_over_static_ones(cluster: ControllerCluster) -> None:
    """Data plane 15.7: sources 2, 3 and 5; a configuration that is not dynamic is read only."""
    own, default = ConfigResource(BROKER_RESOURCE, "1"), ConfigResource(BROKER_RESOURCE, "")
    cluster.dynamic_config(1, [])
    assert alter(cluster, default, ("message.max.bytes", SET, "7")) is ErrorCode.NONE
    (entry,) = describe(cluster, own, "message.max.bytes").entries
    assert (entry.value, entry.source) == ("7", 3)
    assert alter(cluster, own, ("message.max.bytes", SET, "8")) is ErrorCode.NONE
    (entry,) = describe(cluster, own, "message.max.bytes").entries
    assert (entry.value, entry.source) == ("8", 2)
    (entry,) = describe(cluster, default).entries
    assert (entry.name, entry.value) == ("message.max.bytes", "7")
    (entry,) = describe(cluster, own, "num.partitions").entries
    assert (entry.value, entry.source, entry.read_only) == ("1", 5, True)
    assert alter(cluster, own, ("num.partitions", SET, "2")) is ErrorCode.INVALID_REQUEST
    # Names that Kafka does not know may be meant for plugins (``DynamicConfig.Broker.validate``).
    assert alter(cluster, own, ("nonsense", SET, "2")) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("incremental", "entries", "expected"),
    [
        (True, [("retention.ms", SET, "7")], ErrorCode.NONE),
        (True, [("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        (True, [("retention.ms", DELETE, None)], ErrorCode.NONE),
        (True, [("retention.ms", APPEND, "7")], ErrorCode.INVALID_REQUEST),
        (True, [("retention.ms", 9, "7")], ErrorCode.UNKNOWN_SERVER_ERROR),
        (True, [("nonsense", SET, "7")], ErrorCode.INVALID_CONFIG),
        (True, [("nonsense", APPEND, "7")], ErrorCode.UNKNOWN_SERVER_ERROR),
        (True, [("retention.ms", SET, "x")], ErrorCode.INVALID_REQUEST),
        (True, [("retention.ms", SET, "1")] * 2, ErrorCode.INVALID_REQUEST),
        (False, [("retention.ms", SET, None)], ErrorCode.UNKNOWN_SERVER_ERROR),
        (False, [("nonsense", SET, "7")], ErrorCode.INVALID_CONFIG),
        (False, [("retention.ms", SET, "x")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_changes_are_validated(
    cluster: ControllerCluster,
    incremental: bool,
    entries: list[tuple[str, int, str | None]],
    expected: ErrorCode,
) -> None:
    """Data plane 15.7: unknown names are INVALID_CONFIG, bad values INVALID_REQUEST. An unknown
    operation, or a list operation on a configuration that is not a list, is an exception within
    Kafka (``ZkAdminManager.prepareIncrementalConfigs`` at 2.8), and so is null in AlterConfigs
    (``ZkAdminManager.alterConfigs``)."""
    cluster.create_topic("t", (1,))
    assert alter(cluster, T, *entries, incremental=incremental) is expected


def test_alter_configs_resets_configurations_that_are_not_named(cluster: ControllerCluster) -> None:
    """Data plane 15.7: AlterConfigs replaces, IncrementalAlterConfigs changes (CP-202)."""
    cluster.create_topic("t", (1,), config={"retention.ms": "5"})

    def stored() -> dict[str, str]:
        return run_now(cluster.zk.admin.get_entity_configs("topics", "t"))

    alter(cluster, T, ("max.message.bytes", SET, "9"))
    assert stored() == {"retention.ms": "5", "max.message.bytes": "9"}
    alter(cluster, T, ("max.message.bytes", SET, "8"), incremental=False)
    assert stored() == {"max.message.bytes": "8"}
    alter(cluster, T, ("cleanup.policy", APPEND, "compact"))
    assert stored()["cleanup.policy"] == "delete,compact"
    alter(cluster, T, ("cleanup.policy", SUBTRACT, "delete"))
    assert stored()["cleanup.policy"] == "compact"
    alter(cluster, T, ("cleanup.policy", DELETE, None), validate_only=True)
    assert stored()["cleanup.policy"] == "compact"


def test_a_change_is_notified(cluster: ControllerCluster) -> None:
    """CP-200, CP-201: one sequential node per change, after the configuration itself."""
    cluster.create_topic("t", (1,))
    for value in ("1", "2"):
        alter(cluster, T, ("retention.ms", SET, value))
    names = cluster.zookeeper.children("/config/changes")
    assert names == ["config_change_0000000000", "config_change_0000000001"]
    data = cluster.zookeeper.get("/config/changes/config_change_0000000000")
    assert data == b'{"version":2,"entity_path":"topics/t"}'


@pytest.mark.parametrize(
    ("kafka_version", "errors"),
    [("3.9", [ErrorCode.INVALID_REQUEST] * 2), ("2.8", [ErrorCode.NONE])],
)
def test_a_resource_named_twice_is_refused(kafka_version: str, errors: list[ErrorCode]) -> None:
    """IncrementalAlterConfigs of 2.8 takes the last entry of a resource, and answers it once."""
    cluster = ControllerCluster([1], kafka_version)
    cluster.create_topic("t", (1,))
    entries = (("retention.ms", SET, "1"),)
    request = AlterConfigsRequest(((T, entries), (T, entries)))
    results = cluster.ask(cluster.admin().config_changes.alter_configs(request)).results
    assert [error for _, error, _ in results] == errors
