"""Dynamic configurations that a running broker refuses, with the messages of each release."""

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
    """Return the message with which a broker refuses values, or None if it accepts them.
    Underscores in argument names stand for dots."""
    release, flags = release_configs(version), behaviour(version)
    new = {name.replace("_", "."): value for name, value in wanted.items()} | (values or {})
    static = {"listeners": "PLAINTEXT://a:1", **(static or {})}
    try:
        check_names_and_types(new, release, flags, per_broker=True)
        check_reconfiguration(static, (now or {},), (new,), release, flags)
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
    """This is the only pool whose configuration has no lower bound of its own."""
    assert refusal(version, num_replica_fetchers="0") == WRAPPED.format(
        "Dynamic thread count update validation failed for num.replica.fetchers=0, value should "
        "be at least 1"
    )


@pytest.mark.parametrize("version", ALL)
def test_cleaners_at_most_double_or_halve(version: str) -> None:
    """Kafka: ``LogCleaner.validateReconfiguration``; there is no check if the cleaner is
    disabled."""
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
    """Kafka divides the buffer by the number of threads before it checks that number."""
    if version == "3.9":
        assert refusal(version, log_cleaner_threads="0") == "/ by zero"
    else:
        with pytest.raises(
            KafkaError, match="/ by zero" if version == "1.1" else "^UNKNOWN_SERVER_ERROR"
        ):
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
    """Kafka: ``KafkaConfig.validateValues``, in any unit of time."""
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
    """Each release lists the compression types that it knows."""
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
    """Kafka: ``ListenerConnectionQuota.validateReconfiguration``, ``KafkaConfig``; 1.1 has no
    limits."""
    for name in ("max.connections", "max.connection.creation.rate"):
        told = WRAPPED.format(f"Invalid {name} 0")
        assert refusal(version, {name: "0"}) == told
        assert refusal(version, {f"listener.name.plaintext.{name}": "0"}) == told
        assert refusal(version, {name: "1"}) is None
        assert refusal("1.1", {name: "0"}) is None
    name = "max.connections.per.ip.overrides"
    assert refusal(version, max_connections_per_ip="0") == (
        f"requirement failed: max.connections.per.ip can be set to zero only if {name} property "
        "is set."
    )
    assert refusal(version, {"listener.name.other.max.connections": "0"}) is None
    parsing = f"Error parsing configuration property '{name}': "
    expected = {
        "a:1, b:2": None,
        "a:x": 'For input string: "x"',
        "a": f"{parsing}begin 0, end -1, length 1",
        "a b:1": f"{name} contains invalid addresses : a b",
    }
    for value, told_of in expected.items():
        assert refusal(version, max_connections_per_ip_overrides=value) == told_of, value


@pytest.mark.parametrize("version", ALL)
def test_metrics_reporters_have_to_be_known_classes(version: str) -> None:
    """Kafka: ``DynamicMetricsReporters.validateReconfiguration``."""
    assert refusal(version, metric_reporters="a.B") == WRAPPED.format(
        "Validation of dynamic config update of Set(metric.reporters) failed with class "
        "class kafka.server.DynamicMetricsReporters"
    )
    jmx = "org.apache.kafka.common.metrics.JmxReporter"
    assert refusal(version, metric_reporters=jmx) is None


def test_local_retention_is_at_most_the_whole_retention() -> None:
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
    assert refusal("3.9", listener_name_plaintext_num_network_threads="7") == WRAPPED.format(
        "Dynamic thread count update validation failed for num.network.threads=7, value should "
        "not be greater than double the current value 3"
    )
    assert refusal("3.9", listener_name_plaintext_num_network_threads="6") is None
    assert refusal("3.9", listener_name_other_num_network_threads="7") is None
    assert refusal("2.8", listener_name_plaintext_num_network_threads="7") is None


@pytest.mark.parametrize("version", ALL)
def test_stores_of_keys_change_for_one_listener_only(version: str) -> None:
    """Kafka: ``DynamicBrokerConfig.securityConfigsWithoutListenerPrefix``; truststores since
    2.0."""
    told = (
        "These security configs can be dynamically updated only per-listener using the listener "
        "prefix: Set({})"
    ).replace("Set", "Set" if version == "1.1" else "HashSet")
    for name in ("ssl.keystore.location", "ssl.key.password"):
        assert refusal(version, {name: "x"}) == told.format(name)
    name = "ssl.truststore.location"
    expected = None if version == "1.1" else told.format(name)
    assert refusal(version, ssl_truststore_location="x") == expected
    assert refusal(version, listener_name_x_ssl_keystore_location="x") is None


@pytest.mark.parametrize("version", ALL)
def test_a_listeners_configuration_is_one_brokers(version: str) -> None:
    """Kafka: ``DynamicBrokerConfig.perBrokerConfigs``; connection limits since 2.4 and network
    threads since 3.2 may be set for all brokers."""
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
    """KIP-73, KIP-113: they cannot be in a settings file, and are checked nevertheless."""
    for name in (
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    ):
        told = refusal(version, {name: "-1"})
        assert told == f"Invalid value -1 for configuration {name}: Value must be at least 0"
        assert refusal(version, {name: "0"}) is None


@pytest.mark.parametrize("version", ["0.10", *ALL])
def test_stored_values_that_a_broker_cannot_use_are_ignored(version: str) -> None:
    """Kafka: ``DynamicBrokerConfig.fromPersistentProps``; direct writes to ZooKeeper are not
    checked."""
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
    assert in_force(release, static, ({"log.retention.ms": "5"}, {"my.custom": "1"})) == {
        "log.roll.hours": "2",
        "log.retention.ms": "5",
        "my.custom": "1",
    }


@pytest.mark.parametrize("version", ALL)
def test_listeners_fit_together(version: str) -> None:
    """Kafka: ``KafkaConfig.validateValues``; the broker's present listener is PLAINTEXT."""
    required, creating = "requirement failed: ", "Error creating broker listeners from "
    two = "PLAINTEXT://a:1,SSL://a:2"
    assert refusal(version, listeners=two) is None
    assert refusal(version, {"listeners": two, "advertised.listeners": "PLAINTEXT://b:1"}) is None
    assert refusal(version, listeners="x") == (
        f"{creating}'x': Unable to parse x to a broker endpoint"
    )
    assert refusal(version, listeners="FOO://a:1") == (
        f"{creating}'FOO://a:1': No security protocol defined for listener FOO"
    )
    assert refusal(version, listeners="SSL://a:1") == (
        f"{required}inter.broker.listener.name must be a listener name defined in "
        "advertised.listeners. The valid options based on currently configured listeners are SSL"
    )
    assert refusal(version, {"advertised.listeners": two}) == (
        f"{required}advertised.listeners listener names must be equal to or a subset of the ones "
        "defined in listeners. Found PLAINTEXT,SSL. The valid options based on the current "
        "configuration are PLAINTEXT"
    )
    assert refusal(version, {"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}) == (
        f"{required}advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a "
        "routable IP address."
    )
    twice = "PLAINTEXT://a:1,PLAINTEXT://a:2"
    told = f"{required}Each listener must have a different name, listeners: {twice}"
    assert refusal(version, listeners=twice) == told
    same_port = "PLAINTEXT://a:1,SSL://b:1"
    told = f"{required}Each listener must have a different port, listeners: {same_port}"
    assert refusal(version, listeners=same_port) == (None if version == "3.9" else told)
    protocols = {"listener.security.protocol.map": "PLAINTEXT:x"}
    assert refusal(version, protocols) == (
        "Invalid security protocol `x` defined in listener.security.protocol.map"
    )
    assert refusal(version, {"listener.security.protocol.map": "x"}) == (
        "Error parsing configuration property 'listener.security.protocol.map': begin 0, end -1, "
        "length 1"
    )
    assert refusal(version, {"listener.security.protocol.map": "PLAINTEXT:SSL"}) == WRAPPED.format(
        "Security protocol cannot be updated for existing listener ListenerName(PLAINTEXT)"
    )
    assert refusal(version, {"listener.security.protocol.map": "SSL:SSL"}) == (
        f"{creating}'PLAINTEXT://a:1': No security protocol defined for listener PLAINTEXT"
    )


@pytest.mark.parametrize("version", ALL)
def test_other_settings_of_an_existing_listener_cannot_change_together_with_listeners(
    version: str,
) -> None:
    """Kafka: ``DynamicListenerConfig.validateReconfiguration``; before 2.7 it compares the new
    values with themselves."""
    other = {"listeners": "PLAINTEXT://a:1,SSL://a:2"}
    told = WRAPPED.format(
        "Configs cannot be updated dynamically for existing listener ListenerName(PLAINTEXT), "
        "restart broker or create a new listener for update"
    )
    custom = {"listener.name.plaintext.my.custom": "1"}
    assert refusal(version, {**other, **custom}) == (None if version == "1.1" else told)
    assert refusal(version, custom) is None
    assert refusal(version, {**other, "listener.name.ssl.my.custom": "1"}) is None
    for name in ("ssl.keystore.location", "max.connections"):
        if version != "1.1":
            assert refusal(version, {**other, f"listener.name.plaintext.{name}": "1"}) is None


@pytest.mark.parametrize("version", ALL)
def test_deleted_values_are_validated_since_2_6(version: str) -> None:
    """A broker cannot go back from 32 threads to 8 in one step."""
    expected = None
    if version != "1.1":
        expected = WRAPPED.format(
            "Dynamic thread count update validation failed for num.io.threads=8, value should be "
            "at least half the current value 32"
        )
    assert refusal(version, now={"num.io.threads": "32"}) == expected


@pytest.mark.parametrize("version", ALL)
def test_classes_are_those_of_kafka(version: str) -> None:
    """No other class can be loaded."""
    name = "principal.builder.class"
    assert refusal(version, {name: "a.B"}) == (
        f"Invalid value a.B for configuration {name}: Class a.B could not be found."
    )
    kafkas = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
    assert refusal(version, {name: kafkas}) is None


def test_a_level_has_two_ranges() -> None:
    """Kafka: ``GzipCompression.LevelValidator``."""
    for value in ("0", "10", "-2"):
        assert refusal("3.9", compression_gzip_level=value) == (
            f"Invalid value {value} for configuration compression.gzip.level: Value must be "
            "between 1 and 9 or equal to -1"
        )
    for value in ("-1", "1", "9"):
        assert refusal("3.9", compression_gzip_level=value) is None


DOUBLES = {
    "5": "5.0", "1e7": "1.0E7", "12345678.5": "1.23456785E7", "0.0001": "1.0E-4",
    "99999999999": "9.9999999999E10", "-1.5e-7": "-1.5E-7",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        *(("log.cleaner.io.buffer.load.factor", *shown) for shown in DOUBLES.items()),
        ("log.cleaner.io.max.bytes.per.second", "1.7976931348623157E308", "1.7976931348623157E308"),
        ("num.io.threads", " +5 ", "5"),
        ("log.preallocate", " TRUE", "true"),
        ("log.cleanup.policy", "compact , delete", "compact,delete"),
        ("num.io.threads", "x", "x"),
    ],
)
def test_a_value_is_printed_as_its_parsed_type(name: str, text: str, shown: str) -> None:
    """Kafka: ``ConfigDef.convertToString``."""
    assert release_configs("3.9").broker[name].normalized(text) == shown
