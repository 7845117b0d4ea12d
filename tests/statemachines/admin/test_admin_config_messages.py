"""Error codes and messages of DescribeConfigs and AlterConfigs in each release, as real brokers of
these releases answered them."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.admin import (
    APPEND,
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    DELETE,
    SET,
    TOPIC_RESOURCE,
    AlterConfigsRequest,
    ConfigEntry,
    ConfigResource,
    CreateTopicsRequest,
    DescribeConfigsRequest,
    DescribeConfigsResult,
    NewTopic,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.tests.support.controller_cluster import ControllerCluster
from fakekafka.tests.support.run_now import run_now

TOPIC = ConfigResource(TOPIC_RESOURCE, "t")
OWN = ConfigResource(BROKER_RESOURCE, "1")
DEFAULT = ConfigResource(BROKER_RESOURCE, "")
LOGGERS = ConfigResource(BROKER_LOGGER_RESOURCE, "1")
REQUEST, CONFIG = ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG
BAD_VALUE = (
    "Invalid config value for resource ConfigResource(type=TOPIC, name='t'): "
    "Invalid value x for configuration retention.ms: Not a number of type LONG"
)
FIXED = "Cannot update these configs dynamically: Set(num.partitions)"


def clustered(kafka_version: str) -> ControllerCluster:
    cluster = ControllerCluster([1], kafka_version)
    cluster.create_topic("t", (1,))
    cluster.dynamic_config(1, [])
    return cluster


def altered(
    cluster: ControllerCluster, resource: ConfigResource, *entries: Any, incremental: bool = True
) -> tuple[ErrorCode, str | None]:
    request = AlterConfigsRequest(((resource, entries),), incremental)
    (result,) = cluster.ask(cluster.admin().config_changes.alter_configs(request)).results
    return result[1], result[2]


def described(
    cluster: ControllerCluster, resource: ConfigResource, *names: str
) -> DescribeConfigsResult:
    request = DescribeConfigsRequest(((resource, names or None),), True, True)
    (result,) = cluster.ask(cluster.admin().configs.describe_configs(request)).results
    assert isinstance(result, DescribeConfigsResult)
    return result


def entries_of(cluster: ControllerCluster, resource: ConfigResource) -> dict[str, ConfigEntry]:
    return {entry.name: entry for entry in described(cluster, resource).entries}


@pytest.mark.parametrize(
    ("resource", "entry", "in_3_9", "in_2_8"),
    [
        (TOPIC, ("retention.ms", SET, "x"), (CONFIG, BAD_VALUE), (REQUEST, BAD_VALUE)),
        (
            TOPIC,
            ("retention.ms", APPEND, "1"),
            (CONFIG, "Config value append is not allowed for config key: retention.ms"),
            (REQUEST, "Config value append is not allowed for config key: retention.ms"),
        ),
        (
            TOPIC,
            ("nope", SET, "x"),
            (CONFIG, "Unknown topic config name: nope"),
            (CONFIG, "Unknown topic config name: nope"),
        ),
        (
            TOPIC,
            ("retention.ms", SET, None),
            (REQUEST, "Null value not supported for : retention.ms"),
            (REQUEST, "Null value not supported for : SET:retention.ms"),
        ),
        (
            TOPIC,
            ("retention.ms", 7, "1"),
            (ErrorCode.UNKNOWN_SERVER_ERROR, None),
            (ErrorCode.UNKNOWN_SERVER_ERROR, None),
        ),
        (
            ConfigResource(3, "t"),
            ("retention.ms", SET, "1"),
            (REQUEST, "Unknown resource type 3"),
            (REQUEST, "Unexpected resource type UNKNOWN"),
        ),
        (
            OWN,
            ("num.partitions", SET, "7"),
            (REQUEST, FIXED),
            (
                REQUEST,
                f"Invalid config value for resource ConfigResource(type=BROKER, name='1'): {FIXED}",
            ),
        ),
        (
            ConfigResource(BROKER_RESOURCE, "3"),
            ("log.retention.ms", SET, "1"),
            (REQUEST, "Unexpected broker id, expected 1, but received 3"),
            (REQUEST, "Unexpected broker id, expected 1, but received 3"),
        ),
        (
            ConfigResource(BROKER_RESOURCE, "x"),
            ("log.retention.ms", SET, "1"),
            (REQUEST, "Node id must be an integer, but it is: x"),
            (REQUEST, "Broker id must be an integer, but it is: x"),
        ),
        (OWN, ("num.io.threads", SET, "9"), (ErrorCode.NONE, None), (ErrorCode.NONE, None)),
    ],
)
def test_a_change_is_refused_in_the_words_of_the_release(
    resource: ConfigResource, entry: Any, in_3_9: Any, in_2_8: Any
) -> None:
    assert altered(clustered("3.9"), resource, entry) == in_3_9
    assert altered(clustered("2.8"), resource, entry) == in_2_8


def test_keys_that_come_twice_are_named_by_old_releases_only() -> None:
    twice = [("retention.ms", SET, "1"), ("retention.ms", SET, "2")]
    assert altered(clustered("3.9"), TOPIC, *twice) == (
        REQUEST,
        "Error due to duplicate config keys",
    )
    assert altered(clustered("2.8"), TOPIC, *twice) == (
        REQUEST,
        "Error due to duplicate config keys : retention.ms",
    )


def test_a_resource_appears_at_most_once() -> None:
    """All its entries are refused, and other resources are changed (``ConfigAdminManager``)."""
    cluster = clustered("3.9")
    entry = (("retention.ms", SET, "1"),)
    request = AlterConfigsRequest(((TOPIC, entry), (OWN, ()), (TOPIC, entry)))
    results = cluster.ask(cluster.admin().config_changes.alter_configs(request)).results
    refused = (TOPIC, REQUEST, "Each resource must appear at most once.")
    assert results == (refused, (OWN, ErrorCode.NONE, None), refused)


def test_many_resources_and_keys_take_linear_time() -> None:
    """Twenty thousand distinct keys are not compared with each other."""
    cluster = clustered("3.9")
    entries = tuple((f"plugin.{number}", SET, "1") for number in range(20_000))
    assert altered(cluster, OWN, *entries) == (ErrorCode.NONE, None)


@pytest.mark.parametrize(
    ("kafka_version", "name", "value", "message"),
    [
        ("3.9", "retention.ms", "", "Not a number of type LONG"),
        ("3.9", "retention.ms", "-2", "Value must be at least -1"),
        ("3.9", "min.insync.replicas", "9999999999", "Not a number of type INT"),
        ("3.9", "preallocate", "maybe", "Expected value to be either true or false"),
        ("3.9", "min.cleanable.dirty.ratio", "1.5", "Value must be no more than 1"),
        ("3.9", "cleanup.policy", "x", "String must be one of: compact, delete"),
        ("3.9", "compression.gzip.level", "-1", None),
        ("3.9", "compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"),
        ("3.9", "message.format.version", "9.9", "Version 9.9 is not a valid version"),
        ("3.9", "message.format.version", "2.8.1", None),
        ("2.8", "message.format.version", "9.9", "Version `9.9` is not a valid version"),
        ("3.9", "flush.messages", "0", "Value must be at least 1"),
        ("2.8", "flush.messages", "0", None),
        ("3.9", "leader.replication.throttled.replicas", "0:1,1:2", None),
        ("3.9", "leader.replication.throttled.replicas", "*", None),
    ],
)
def test_a_topics_values_are_checked_by_the_bounds_of_the_release(
    kafka_version: str, name: str, value: str, message: str | None
) -> None:
    cluster = clustered(kafka_version)
    request = CreateTopicsRequest((NewTopic("u", 1, 1, (), ((name, value),)),), 1000)
    (result,) = cluster.ask(cluster.admin().topics.create_topics(request), 1000).topics
    if message is None:
        assert (result.error, result.error_message) == (ErrorCode.NONE, None)
    else:
        expected = f"Invalid value {value} for configuration {name}: {message}"
        assert (result.error, result.error_message) == (CONFIG, expected)


def test_replicas_to_throttle_are_pairs_or_a_star() -> None:
    cluster = clustered("3.9")
    name = "leader.replication.throttled.replicas"
    assert altered(cluster, TOPIC, (name, SET, "x"))[1] == (
        "Invalid config value for resource ConfigResource(type=TOPIC, name='t'): "
        f"Invalid value [x] for configuration {name}: {name} must be the literal '*' or a list of "
        "replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
    )


@pytest.mark.parametrize(
    ("kafka_version", "brokers", "topics"), [("1.1", 171, 24), ("2.8", 218, 26), ("3.9", 314, 36)]
)
def test_all_configurations_of_the_release_are_described(
    kafka_version: str, brokers: int, topics: int
) -> None:
    """Types, sources and synonyms are those of real brokers; passwords are never shown."""
    cluster = clustered(kafka_version)
    own = entries_of(cluster, OWN)
    assert (len(own), len(entries_of(cluster, TOPIC))) == (brokers, topics)
    assert (own["broker.id"].value, own["broker.id"].source) == ("1", 4)
    assert own["broker.id"].synonyms == (("broker.id", "1", 4), ("broker.id", "-1", 5))
    assert own["broker.rack"].synonyms == ()
    assert (own["log.retention.ms"].value, own["log.retention.hours"].value) == (None, "168")
    assert own["ssl.key.password"].is_sensitive
    assert own["num.io.threads"].read_only is False
    assert own["num.partitions"].read_only is True
    assert own["alter.config.policy.class.name"].config_type == 8
    assert all(entry.documentation for entry in own.values())


def test_hours_of_retention_lie_under_its_milliseconds() -> None:
    """The hours are shown as a synonym (``DynamicBrokerConfig.brokerConfigSynonyms``)."""
    cluster = clustered("3.9")
    assert altered(cluster, OWN, ("log.retention.ms", SET, "77777")) == (ErrorCode.NONE, None)
    (entry,) = described(cluster, OWN, "log.retention.ms").entries
    assert entry.synonyms == (("log.retention.ms", "77777", 2), ("log.retention.hours", "168", 5))
    (entry,) = described(cluster, TOPIC, "retention.ms").entries
    assert (entry.value, entry.source) == ("77777", 2)


def test_a_default_that_a_broker_cannot_apply_is_described_beside_the_value_in_force() -> None:
    """The value is the one in force; the source and synonyms include values that the broker could
    not apply (``ConfigHelper``)."""
    cluster = clustered("3.9")
    stored = {"background.threads": "40", "log.retention.ms": "77", "my.custom": "1"}
    run_now(cluster.zk.admin.set_or_create_entity_configs("brokers", "<default>", stored))
    assert described(cluster, OWN, "background.threads").entries[0].source == 5
    run_now(cluster.zk.admin.create_config_change_notification("brokers/<default>"))
    cluster.settle()
    threads, retention = described(
        cluster, OWN, "background.threads", "log.retention.ms", "my.custom"
    ).entries
    assert (threads.value, threads.source) == ("10", 3)
    assert threads.synonyms == (("background.threads", "40", 3), ("background.threads", "10", 5))
    assert (retention.value, retention.source) == (None, 3)
    (entry,) = described(cluster, TOPIC, "retention.ms").entries
    assert (entry.value, entry.source) == ("604800000", 3)
    names = [entry.name for entry in described(cluster, DEFAULT).entries]
    assert names == ["background.threads", "log.retention.ms", "my.custom"]


@pytest.mark.parametrize("kafka_version", ["1.1", "2.8", "3.9"])
def test_a_topic_flushes_as_often_as_its_broker_looks(kafka_version: str) -> None:
    """The default of the flush interval is the scheduler's interval
    (``KafkaConfig.logFlushIntervalMs``)."""
    cluster = ControllerCluster([1], kafka_version, log_flush_scheduler_interval_ms=777)
    cluster.create_topic("t", (1,))
    (entry,) = described(cluster, TOPIC, "flush.ms").entries
    assert (entry.value, entry.source, entry.synonyms) == ("777", 5, ())


def test_a_configuration_of_one_broker_is_not_set_for_all() -> None:
    refused = altered(clustered("2.8"), DEFAULT, ("listeners", SET, "PLAINTEXT://h:1"))
    assert refused[1] is not None
    assert refused[1].endswith(
        "Cannot update these configs at default cluster level, broker id must be specified: "
        "Set(listeners)"
    )


def test_log_levels_are_described_and_changed_one_by_one() -> None:
    """KIP-412: levels are kept in the broker; deleting one restores the root logger's level."""
    cluster = clustered("3.9")
    admin = cluster.admin()
    describe = DescribeConfigsRequest(((LOGGERS, ("kafka.controller",)),))

    def level() -> str | None:
        (result,) = cluster.ask(admin.configs.describe_configs(describe)).results
        (entry,) = result.entries
        assert entry.source == 6
        return str(entry.value)

    def change(*entry: object) -> tuple[ErrorCode, str | None]:
        request = AlterConfigsRequest(((LOGGERS, (entry,)),))  # type: ignore[arg-type]
        (result,) = cluster.ask(admin.config_changes.alter_configs(request)).results
        return result[1], result[2]

    assert level() == "TRACE"
    assert change("kafka.controller", SET, "WARN") == (ErrorCode.NONE, None)
    assert level() == "WARN"
    assert change("kafka.controller", DELETE, None) == (ErrorCode.NONE, None)
    assert level() == "INFO"
    assert (change("nope", SET, "WARN")[1] or "").endswith("Logger nope does not exist!")
    assert change("root", DELETE, None)[0] is REQUEST
    assert change("kafka", APPEND, "WARN")[0] is REQUEST
    assert described(clustered("1.1"), LOGGERS).error is REQUEST


def test_a_request_with_an_unknown_resource_type_is_refused_as_a_whole() -> None:
    cluster = clustered("3.9")
    request = DescribeConfigsRequest(((TOPIC, None), (ConfigResource(5, "x"), None)))
    results = cluster.ask(cluster.admin().configs.describe_configs(request)).results
    assert [result.error for result in results] == [REQUEST] * 2
    assert (results[0].error_message or "").startswith("This most likely occurs because")


@pytest.mark.parametrize("kafka_version", ["1.1", "2.8", "3.9"])
def test_an_unknown_configuration_is_described_and_deleted(kafka_version: str) -> None:
    """Its value is hidden, as a configuration without a type may be a secret
    (``ConfigHelper.describeConfigs``)."""
    cluster = clustered(kafka_version)
    for resource, source in ((OWN, 2), (DEFAULT, 3)):
        assert altered(cluster, resource, ("my.custom", SET, "1"))[0] is ErrorCode.NONE
        (entry,) = described(cluster, resource, "my.custom").entries
        assert (entry.value, entry.source, entry.is_sensitive, entry.read_only) == (
            None,
            source,
            True,
            True,
        )
        assert (entry.config_type, entry.is_default, entry.documentation) == (0, False, None)
        assert entry.synonyms[0] == ("my.custom", None, source)
    assert "my.custom" in entries_of(cluster, OWN)
    for resource in (OWN, DEFAULT):
        assert altered(cluster, resource, ("my.custom", DELETE, None))[0] is ErrorCode.NONE
    for resource in (OWN, DEFAULT):
        assert described(cluster, resource, "my.custom").entries == ()


@pytest.mark.parametrize(
    ("kafka_version", "shown"),
    [("1.1", (None, True, 0)), ("2.8", ("5", False, 5)), ("3.9", ("5", False, 5))],
)
def test_throttled_rates_are_described_once_they_are_set(
    kafka_version: str, shown: tuple[str | None, bool, int]
) -> None:
    """KIP-73; their type is described since 2.6, and their value hidden before."""
    cluster = clustered(kafka_version)
    name = "leader.replication.throttled.rate"
    assert name not in entries_of(cluster, OWN)
    altered(cluster, OWN, (name, SET, "5"))
    entry = entries_of(cluster, OWN)[name]
    assert (entry.value, entry.is_sensitive, entry.config_type) == shown
    assert entry.read_only


@pytest.mark.parametrize("kafka_version", ["1.1", "2.8", "3.9"])
def test_a_listeners_configuration_has_the_general_one_as_a_synonym(kafka_version: str) -> None:
    """Kafka: ``DynamicBrokerConfig.brokerConfigSynonyms``; before 2.4 a name may change if one of
    its synonyms may."""
    cluster = clustered(kafka_version)
    name = "listener.name.x.ssl.keystore.type"
    assert altered(cluster, OWN, (name, SET, "PEM"))[0] is ErrorCode.NONE
    (entry,) = described(cluster, OWN, name).entries
    assert (entry.value, entry.is_sensitive, entry.config_type) == ("PEM", False, 2)
    assert entry.synonyms == ((name, "PEM", 2), ("ssl.keystore.type", "JKS", 5))
    assert entry.read_only is (kafka_version != "1.1")


@pytest.mark.parametrize("kafka_version", ["1.1", "2.8", "3.9"])
def test_passwords_need_a_secret_of_the_brokers(kafka_version: str) -> None:
    """Kafka: ``DynamicBrokerConfig.toPersistentProps``; no broker here has the secret."""
    cluster = clustered(kafka_version)
    entry = ("listener.name.x.ssl.keystore.password", SET, "secret")
    shown = "Resource(type=BROKER, name='1'}"
    if kafka_version != "1.1":
        shown = "ConfigResource(type=BROKER, name='1')"
    assert altered(cluster, OWN, entry) == (
        CONFIG if kafka_version == "3.9" else REQUEST,
        f"Invalid config value for resource {shown}: Password encoder secret not configured",
    )
    request = AlterConfigsRequest(((OWN, (entry,)),), True, validate_only=True)
    (result,) = cluster.ask(cluster.admin().config_changes.alter_configs(request)).results
    assert result[1] is ErrorCode.NONE
    assert entry[0] not in entries_of(cluster, OWN)


def test_client_metrics_are_for_kraft_only() -> None:
    """KIP-714: the type is known since 3.7, and refused by brokers with ZooKeeper."""
    metrics = ConfigResource(CLIENT_METRICS_RESOURCE, "m")
    for incremental in (True, False):
        assert altered(clustered("3.9"), metrics, ("a", SET, "b"), incremental=incremental) == (
            REQUEST,
            "AlterConfigs is only supported for topics and brokers, but resource type is "
            "CLIENT_METRICS",
        )
    told = {name: described(clustered("3.9"), ConfigResource(16, name)) for name in ("m", "")}
    assert told["m"].error is told[""].error is REQUEST
    assert told["m"].error_message == (
        "Config type client-metrics is only supported on KRaft clusters"
    )
    assert told[""].error_message == "Client metrics subscription name must not be empty"
    assert altered(clustered("2.8"), metrics, ("a", SET, "b")) == (
        REQUEST,
        "Unexpected resource type UNKNOWN",
    )


@pytest.mark.parametrize("kafka_version", ["1.1", "2.8", "3.9"])
def test_a_refused_broker_configuration_changes_nothing(kafka_version: str) -> None:
    """Kafka: ``DynamicBrokerConfig.validate``."""
    cluster = clustered(kafka_version)
    code, text = altered(cluster, OWN, ("num.io.threads", SET, "100"))
    assert code is REQUEST
    assert text is not None
    assert text.endswith(
        "Invalid value org.apache.kafka.common.config.ConfigException: Dynamic thread count "
        "update validation failed for num.io.threads=100, value should not be greater than "
        "double the current value 8 for configuration Invalid dynamic configuration"
    )
    assert text.startswith("Invalid config value for") is (kafka_version != "3.9")
    assert entries_of(cluster, OWN)["num.io.threads"].value == "8"


@pytest.mark.parametrize(
    ("kafka_version", "told"),
    [
        (
            "1.1",
            " must be the literal '*' or a list of replicas in the following format: "
            "[partitionId],[brokerId]:[partitionId],[brokerId]:...",
        ),
        (
            "3.9",
            " must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
        ),
    ],
)
def test_throttled_replicas_are_all_or_a_list(kafka_version: str, told: str) -> None:
    """Kafka: ``ThrottledReplicaListValidator``; up to 2.7 any text may follow an asterisk."""
    cluster = clustered(kafka_version)
    name = "leader.replication.throttled.replicas"
    for value in ("*", "", "0:1", "0:1,,1:2", " 0:1 , 1:2 "):
        assert altered(cluster, TOPIC, (name, SET, value), incremental=False)[0] is ErrorCode.NONE
    for value in ("0", "0:", "a:1", "0:1:2", "none", "0:1,*"):
        code, text = altered(cluster, TOPIC, (name, SET, value), incremental=False)
        assert code is (CONFIG if kafka_version == "3.9" else REQUEST), value
        assert text is not None
        shown = ", ".join(value.split(","))
        assert text.endswith(f"Invalid value [{shown}] for configuration {name}: {name}{told}")
    asterisk = altered(cluster, TOPIC, (name, SET, "*,0"), incremental=False)
    assert (asterisk[0] is ErrorCode.NONE) is (kafka_version == "1.1")


@pytest.mark.parametrize(
    ("kafka_version", "shown"),
    [("1.1", ("1", False)), ("2.8", (None, True)), ("3.9", (None, True))],
)
def test_an_unknown_configuration_of_a_topic_is_described(
    kafka_version: str, shown: tuple[str | None, bool]
) -> None:
    """Only a tool can write it to ZooKeeper; since 2.6 its value is hidden as a possible secret."""
    cluster = ControllerCluster([1], kafka_version)
    cluster.create_topic("t", (1,), config={"my.custom": "1", "retention.ms": " 5 "})
    (entry,) = described(cluster, TOPIC, "my.custom").entries
    assert (entry.value, entry.is_sensitive) == shown
    assert (entry.source, entry.read_only, entry.config_type) == (1, False, 0)
    assert entry.synonyms == (("my.custom", shown[0], 1),)
    entry = entries_of(cluster, TOPIC)["retention.ms"]
    assert (entry.value, entry.synonyms) == ("5", (("retention.ms", "5", 1),))
    assert "my.custom" in entries_of(cluster, TOPIC)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (
            {"remote.storage.enable": "true"},
            "Invalid config value for resource ConfigResource(type=TOPIC, name='t'): Tiered "
            "Storage functionality is disabled in the broker. Topic cannot be configured with "
            "remote log storage.",
        ),
        (
            {"remote.log.copy.disable": "true"},
            "It is invalid to set `remote.log.delete.on.disable` or `remote.log.copy.disable` "
            "under Zookeeper's mode.",
        ),
        (
            {"min.compaction.lag.ms": "6", "max.compaction.lag.ms": "5"},
            "conflict topic config setting min.compaction.lag.ms (6) > max.compaction.lag.ms (5)",
        ),
        ({"remote.storage.enable": "false", "remote.log.copy.disable": "false"}, None),
        ({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "5"}, None),
    ],
)
def test_a_topics_values_go_together(values: dict[str, str], told: str | None) -> None:
    """Inconsistent values are refused (``LogConfig.validate``); brokers have no tiered storage, but
    a ZooKeeper."""
    entries = [(name, SET, value) for name, value in values.items()]
    expected = (ErrorCode.NONE, None) if told is None else (CONFIG, told)
    assert altered(clustered("3.9"), TOPIC, *entries) == expected
    wanted = AlterConfigsRequest(((TOPIC, tuple(entries)),), incremental=False)
    cluster = clustered("3.9")
    (result,) = cluster.ask(cluster.admin().config_changes.alter_configs(wanted)).results
    assert (result[1], result[2]) == expected
