"""What a running broker refuses of dynamic configurations, in the words of each release."""

from __future__ import annotations

import pytest
from fakekafka.protocol.errors import KafkaError
from fakekafka.protocol.release_configs import ConfigException, release_configs
from fakekafka.protocol.versions import behaviour
from fakekafka.statemachines.broker.reconfiguration import (
    check_names_and_types,
    check_reconfiguration,
    in_force,
    usable,
)

ALL = ("1.1", "2.8", "3.9")
WRAPPED = (
    "Invalid value org.apache.kafka.common.config.ConfigException: {} "
    "for configuration Invalid dynamic configuration"
)


def refusal(
    version: str,
    values: dict[str, str] | None = None,
    *,
    now: dict[str, str] | None = None,
    static: dict[str, str] | None = None,
    **wanted: str,
) -> str | None:
    """What is said when a broker gets these values; None: it takes them.

    The dots of names that are written as arguments are underscores.
    """
    release, flags = release_configs(version), behaviour(version)
    new = {name.replace("_", "."): value for name, value in wanted.items()} | (values or {})
    try:
        check_names_and_types(new, release, flags, per_broker=True)
        check_reconfiguration(
            in_force(release, static or {}, now or {}),
            in_force(release, static or {}, new),
            release,
            flags,
        )
    except ConfigException as error:
        return str(error)
    return None


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize(
    "name",
    [
        "num.io.threads",
        "num.network.threads",
        "num.replica.fetchers",
        "num.recovery.threads.per.data.dir",
        "background.threads",
    ],
)
def test_a_pool_of_threads_at_most_doubles_or_halves(version: str, name: str) -> None:
    """Kafka: ``DynamicThreadPool.validateReconfiguration``."""
    told = f"Dynamic thread count update validation failed for {name}="
    four = {name: "4"}
    assert refusal(version, {name: "9"}, now=four) == WRAPPED.format(
        f"{told}9, value should not be greater than double the current value 4"
    )
    assert refusal(version, {name: "8"}, now=four) is None
    assert refusal(version, {name: "2"}, now=four) is None
    assert refusal(version, {name: "1"}, now=four) == WRAPPED.format(
        f"{told}1, value should be at least half the current value 4"
    )


@pytest.mark.parametrize("version", ALL)
def test_no_fetcher_thread_is_too_few(version: str) -> None:
    """The only pool whose configuration has no bound of its own."""
    assert refusal(version, num_replica_fetchers="0") == WRAPPED.format(
        "Dynamic thread count update validation failed for num.replica.fetchers=0, value should "
        "be at least 1"
    )


@pytest.mark.parametrize("version", ALL)
def test_cleaners_at_most_double_or_halve(version: str) -> None:
    """Kafka: ``LogCleaner.validateReconfiguration``; nobody asks where there is no cleaner."""
    told = "Log cleaner threads cannot be increased to more than double the current value 1"
    assert refusal(version, log_cleaner_threads="3") == WRAPPED.format(told)
    assert refusal(version, log_cleaner_threads="2") is None
    told = "Log cleaner threads cannot be reduced to less than half the current value 8"
    eight = {"log.cleaner.threads": "8"}
    assert refusal(version, now=eight, log_cleaner_threads="3") == WRAPPED.format(told)
    disabled = {"log.cleaner.enable": "false"}
    assert refusal(version, static=disabled, log_cleaner_threads="3") is None
    told = "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."
    small = refusal(version, static=disabled, log_cleaner_dedupe_buffer_size="1")
    assert small == f"requirement failed: {told}"


@pytest.mark.parametrize("version", ALL)
def test_no_cleaner_thread_cannot_be_divided_by(version: str) -> None:
    """Kafka divides the buffer by the threads before it looks whether there are any."""
    if version == "3.9":
        assert refusal(version, log_cleaner_threads="0") == "/ by zero"
    else:
        with pytest.raises(KafkaError, match="/ by zero"):
            refusal(version, log_cleaner_threads="0")


@pytest.mark.parametrize(
    ("version", "least"),
    [
        ("1.1", "equal or greater than"),
        ("2.8", "greater than or equal to"),
        ("3.9", "greater than or equal to"),
    ],
)
def test_times_of_logs_have_bounds_together(version: str, least: str) -> None:
    """Kafka: ``KafkaConfig.validateValues``, whatever unit a time is given in."""
    required = "requirement failed: "
    assert refusal(version, log_roll_ms="0") == f"{required}log.roll.ms must be {least} 1"
    told = f"{required}log.roll.jitter.ms must be {least} 0"
    assert refusal(version, log_roll_jitter_ms="-1") == told
    told = f"{required}log.retention.ms must be unlimited (-1) or, {least} 1"
    assert refusal(version, log_retention_ms="0") == told
    assert refusal(version, log_retention_ms="-5") is None
    assert refusal(version, static={"log.retention.minutes": "0"}, log_retention_ms="5") is None
    assert refusal(version, static={"log.retention.minutes": "0"}, log_roll_ms="5") == told


def test_compression_is_checked_together_before_it_is_checked_by_itself() -> None:
    """Each release names the compressions that it knows."""
    told = "requirement failed: compression.type : x is not valid. Valid options are "
    assert refusal("1.1", compression_type="x") == f"{told}uncompressed,snappy,lz4,gzip,producer"
    old = "uncompressed,zstd,lz4,snappy,gzip,producer"
    assert refusal("2.8", compression_type="x") == f"{told}{old}"
    assert refusal("2.8", compression_type="ZSTD") is None
    assert refusal("3.9", compression_type="x") == (
        "Invalid value x for configuration compression.type: String must be one of: "
        "uncompressed, zstd, lz4, snappy, gzip, producer"
    )


@pytest.mark.parametrize("version", ["2.8", "3.9"])
def test_connections_have_limits(version: str) -> None:
    """Kafka: ``ListenerConnectionQuota.validateReconfiguration``, ``KafkaConfig``; 1.1 has none."""
    for name in ("max.connections", "max.connection.creation.rate"):
        told = WRAPPED.format(f"Invalid {name} 0")
        assert refusal(version, {name: "0"}) == told
        assert refusal(version, {f"listener.name.x.{name}": "0"}) == told
        assert refusal(version, {name: "1"}) is None
        assert refusal("1.1", {name: "0"}) is None
    name = "max.connections.per.ip.overrides"
    assert refusal(version, max_connections_per_ip="0") == (
        f"requirement failed: max.connections.per.ip can be set to zero only if {name} property "
        "is set."
    )
    parsing = f"Error parsing configuration property '{name}': "
    expected = {
        "a:1, b:2": None,
        "a:x": f'{parsing}For input string: "x"',
        "a": f"{parsing}begin 0, end -1, length 1",
        "a b:1": f"{name} contains invalid addresses : a b",
    }
    for value, told_of in expected.items():
        assert refusal(version, max_connections_per_ip_overrides=value) == told_of, value


@pytest.mark.parametrize("version", ALL)
def test_reporters_are_classes_that_there_are(version: str) -> None:
    """Kafka: ``DynamicMetricsReporters.validateReconfiguration``."""
    assert refusal(version, metric_reporters="a.B") == WRAPPED.format(
        "Validation of dynamic config update of Set(metric.reporters) failed with class "
        "class kafka.server.DynamicMetricsReporters"
    )
    jmx = "org.apache.kafka.common.metrics.JmxReporter"
    assert refusal(version, metric_reporters=jmx) is None


def test_what_is_kept_locally_is_at_most_what_is_kept() -> None:
    """Kafka: ``DynamicLogConfig.validateReconfiguration`` (KIP-405)."""
    start = "Invalid value {} for configuration log.local.retention.{}: Value must not be "
    assert refusal("3.9", log_retention_ms="5", log_local_retention_ms="6") == WRAPPED.format(
        start.format(6, "ms") + "more than log.retention.ms property value: 5"
    )
    assert refusal("3.9", log_local_retention_ms="-1") == WRAPPED.format(
        start.format(-1, "ms") + "-1 as log.retention.ms value is set as 604800000."
    )
    assert refusal("3.9", log_retention_bytes="5", log_local_retention_bytes="6") == WRAPPED.format(
        start.format(6, "bytes") + "more than log.retention.bytes property value: 5"
    )
    assert refusal("3.9", log_local_retention_bytes="6") is None
    assert refusal("3.9", log_retention_ms="5", log_local_retention_ms="5") is None


def test_a_listener_has_threads_of_its_own_in_3_9() -> None:
    """Kafka: ``DataPlaneAcceptor.validateReconfiguration``."""
    assert refusal("3.9", listener_name_x_num_network_threads="7") == WRAPPED.format(
        "Dynamic thread count update validation failed for num.network.threads=7, value should "
        "not be greater than double the current value 3"
    )
    assert refusal("2.8", listener_name_x_num_network_threads="7") is None


@pytest.mark.parametrize("version", ALL)
def test_stores_of_keys_change_for_one_listener_only(version: str) -> None:
    """Kafka: ``DynamicBrokerConfig.securityConfigsWithoutListenerPrefix``; stores of trust
    since 2.0."""
    told = (
        "These security configs can be dynamically updated only per-listener using the listener "
        "prefix: Set({})"
    )
    for name in ("ssl.keystore.location", "ssl.key.password"):
        assert refusal(version, {name: "x"}) == told.format(name)
    name = "ssl.truststore.location"
    expected = None if version == "1.1" else told.format(name)
    assert refusal(version, ssl_truststore_location="x") == expected
    assert refusal(version, listener_name_x_ssl_keystore_location="x") is None


@pytest.mark.parametrize("version", ALL)
def test_a_listeners_configuration_is_one_brokers(version: str) -> None:
    """Kafka: ``DynamicBrokerConfig.perBrokerConfigs``; limits of connections since 2.4, threads
    since 3.2 may be all brokers'."""
    flags, release = behaviour(version), release_configs(version)
    per_broker = {
        name
        for name in (
            "listeners",
            "my.custom",
            "listener.name.x.ssl.keystore.location",
            "listener.name.x.max.connections",
            "listener.name.x.num.network.threads",
            "listener.name.x.my.custom",
        )
        if usable({name: "1"}, version, flags, per_broker=False)[1]
    }
    everywhere = {"listener.name.x.max.connections"} if version != "1.1" else set()
    if version == "3.9":
        everywhere.add("listener.name.x.num.network.threads")
    assert (
        per_broker
        == {
            "listeners",
            "listener.name.x.ssl.keystore.location",
            "listener.name.x.max.connections",
            "listener.name.x.num.network.threads",
            "listener.name.x.my.custom",
        }
        - everywhere
    )
    with pytest.raises(ConfigException, match="at default cluster level"):
        check_names_and_types({"listeners": "x"}, release, flags, per_broker=False)


@pytest.mark.parametrize("version", ALL)
def test_rates_of_replication_are_no_less_than_nothing(version: str) -> None:
    """KIP-73, KIP-113: they are in no settings file, and checked all the same."""
    for name in (
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    ):
        told = refusal(version, {name: "-1"})
        assert told == f"Invalid value -1 for configuration {name}: Value must be at least 0"
        assert refusal(version, {name: "0"}) is None


@pytest.mark.parametrize("version", ["0.10", *ALL])
def test_what_a_broker_cannot_take_of_zookeeper_is_left_out(version: str) -> None:
    """Kafka: ``DynamicBrokerConfig.fromPersistentProps``; nobody checks what is written there."""
    stored = {
        "broker.id": "7",
        "leader.replication.throttled.rate": "x",
        "follower.replication.throttled.rate": "5",
        "my.custom": "1",
    }
    taken, errors = usable(stored, version, behaviour(version), per_broker=True)
    assert taken == {"follower.replication.throttled.rate": "5", "my.custom": "1"}
    assert len(errors) == 2
    assert "Cannot update these configs dynamically: Set(broker.id)" in errors[0]


def test_a_dynamic_value_is_over_every_name_of_a_setting() -> None:
    """Kafka: ``DynamicBrokerConfig.overrideProps``."""
    release = release_configs("2.8")
    static = {"log.retention.hours": "1", "log.roll.hours": "2"}
    assert in_force(release, static, {"log.retention.ms": "5"}, {"my.custom": "1"}) == {
        "log.roll.hours": "2",
        "log.retention.ms": "5",
        "my.custom": "1",
    }
