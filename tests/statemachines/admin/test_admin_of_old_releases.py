"""Requests that the admin APIs of 0.10 and 1.1 accept or refuse unlike later releases."""

from __future__ import annotations

import pytest
from fakekafka.protocol.admin import (
    BROKER_RESOURCE,
    SET,
    TOPIC_RESOURCE,
    AlterConfigsRequest,
    ConfigResource,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    NewTopic,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.tests.support.controller_cluster import ControllerCluster

OLD_AND_NEW = [("0.10", True), ("1.1", True), ("2.8", False), ("3.9", False)]
NOBODY = ConfigResource(TOPIC_RESOURCE, "nope")


def created(cluster: ControllerCluster, topic: NewTopic) -> tuple[ErrorCode, str | None]:
    request = CreateTopicsRequest((topic,), timeout_ms=1000)
    (result,) = cluster.ask(cluster.admin().topics.create_topics(request), 1000).topics
    return result.error, result.error_message


@pytest.mark.parametrize(("version", "is_old"), OLD_AND_NEW)
def test_an_assignment_may_have_gaps(version: str, is_old: bool) -> None:
    """Before 2.3 a topic with partitions 0 and 2 only can be created (KAFKA-7864)."""
    cluster = ControllerCluster([1, 2, 3], version)
    error, _ = created(cluster, NewTopic("t", -1, -1, ((0, (1,)), (2, (2,)))))
    assert error is (ErrorCode.NONE if is_old else ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    if is_old:
        assert cluster.zookeeper.get("/brokers/topics/t") is not None


@pytest.mark.parametrize(("version", "is_old"), OLD_AND_NEW)
def test_a_bad_value_at_creation_is_unexpected(version: str, is_old: bool) -> None:
    """Before 2.1 ``AdminManager.createTopics`` does not handle a ``ConfigException``; an unknown
    name raises another exception."""
    cluster = ControllerCluster([1, 2, 3], version)
    error, message = created(cluster, NewTopic("t", 1, 1, (), (("retention.ms", "x"),)))
    assert error is (ErrorCode.UNKNOWN_SERVER_ERROR if is_old else ErrorCode.INVALID_CONFIG)
    assert message is not None
    assert message.startswith("Invalid value x for configuration retention.ms")
    error, _ = created(cluster, NewTopic("t", 1, 1, (), (("nope", "1"),)))
    assert error is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(("version", "is_old"), OLD_AND_NEW[1:])
def test_configs_of_an_unknown_topic(version: str, is_old: bool) -> None:
    """Before 2.0 they are described as the broker's, and changes fail unexpectedly (KAFKA-6778)."""
    cluster = ControllerCluster([1, 2, 3], version)
    admin = cluster.admin()
    asked = DescribeConfigsRequest(((NOBODY, None),))
    (result,) = cluster.ask(admin.configs.describe_configs(asked)).results
    change = AlterConfigsRequest(((NOBODY, (("retention.ms", SET, "1"),)),), incremental=False)
    ((_, error, message),) = cluster.ask(admin.config_changes.alter_configs(change)).results
    if is_old:
        assert (result.error, bool(result.entries)) == (ErrorCode.NONE, True)
        assert error is ErrorCode.UNKNOWN_SERVER_ERROR
        assert message == 'Topic "nope" does not exist.'
    else:
        assert (result.error, result.entries) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ())
        assert error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(("version", "is_old"), OLD_AND_NEW)
def test_deletion_that_is_disabled(version: str, is_old: bool) -> None:
    """Before 2.1 DeleteTopics is tried nevertheless, and times out."""
    cluster = ControllerCluster([1, 2, 3], version, delete_topic_enable=False)
    created(cluster, NewTopic("t", 1, 1))
    request = DeleteTopicsRequest(("t",), timeout_ms=1000)
    (result,) = cluster.ask(cluster.admin().topics.delete_topics(request), 1000).topics
    late, refused = ErrorCode.REQUEST_TIMED_OUT, ErrorCode.TOPIC_DELETION_DISABLED
    assert result.error is (late if is_old else refused)
    assert cluster.zookeeper.get("/brokers/topics/t") is not None


@pytest.mark.parametrize(("version", "is_old"), OLD_AND_NEW)
def test_counts_of_a_new_topic_have_no_defaults(version: str, is_old: bool) -> None:
    """Since KIP-464 (2.4), -1 stands for the broker's configured count."""
    cluster = ControllerCluster([1, 2, 3], version)
    error, _ = created(cluster, NewTopic("t", -1, -1))
    assert error is (ErrorCode.INVALID_PARTITIONS if is_old else ErrorCode.NONE)


@pytest.mark.parametrize(("version", "is_old"), OLD_AND_NEW)
def test_a_wrong_configuration_comes_before_the_topic_that_exists(
    version: str, is_old: bool
) -> None:
    """Before 2.4 ``AdminManager.createTopics`` checks configurations first."""
    cluster = ControllerCluster([1, 2, 3], version)
    cluster.create_topic("t", (1,))
    error, _ = created(cluster, NewTopic("t", 1, 1, (), (("nope", "1"),)))
    assert error is (ErrorCode.INVALID_CONFIG if is_old else ErrorCode.TOPIC_ALREADY_EXISTS)


@pytest.mark.parametrize(("version", "is_old"), OLD_AND_NEW[1:3])
def test_an_empty_list_of_names(version: str, is_old: bool) -> None:
    """Since 2.8 an empty list requests all configurations (KAFKA-12235)."""
    cluster = ControllerCluster([1, 2, 3], version)
    cluster.create_topic("t", (1,))
    asked = DescribeConfigsRequest(((ConfigResource(TOPIC_RESOURCE, "t"), ()),))
    (result,) = cluster.ask(cluster.admin().configs.describe_configs(asked)).results
    assert (result.entries == ()) == is_old


def test_words_of_1_1_about_configurations() -> None:
    """Its ``Resource`` was shown under another name and with an extra brace; types were those of
    ``ResourceType``."""
    cluster = ControllerCluster([1, 2, 3], "1.1")
    cluster.create_topic("t", (1,))
    admin = cluster.admin()

    def told(resource: ConfigResource, value: str | None = "x") -> tuple[ErrorCode, str | None]:
        change = (resource, (("min.insync.replicas", SET, value),))
        request = AlterConfigsRequest((change,), incremental=False)
        (answer,) = cluster.ask(admin.config_changes.alter_configs(request)).results
        return answer[1], answer[2]

    shown = "Resource(type=TOPIC, name='t'}"
    error, message = told(ConfigResource(TOPIC_RESOURCE, "t"))
    assert error is ErrorCode.INVALID_REQUEST
    assert message is not None
    assert message.startswith(f"Invalid config value for resource {shown}: Invalid value x")
    assert told(ConfigResource(3, "t"))[1] == "Unexpected resource type GROUP"
    assert told(ConfigResource(TOPIC_RESOURCE, "t"), None)[0] is ErrorCode.UNKNOWN_SERVER_ERROR
    error, message = told(ConfigResource(BROKER_RESOURCE, "9"), "1")
    assert message is not None
    assert message.endswith("but received Resource(type=BROKER, name='9'}.name")
