"""Configuration: Kafka's names, types and defaults, and the values in force at a broker.

``DEFINITIONS`` is the one table. A topic configuration falls back to a broker configuration of
another name (``max.message.bytes`` to ``message.max.bytes``), as in Kafka's ``LogConfig``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from .errors import UsageError, did_you_mean
from .values import frozen
from .versions import DEFAULT_KAFKA_VERSION

LONG_MAX = 9223372036854775807
INT_MAX = 2147483647


@frozen
class ConfigDefinition:
    """One configuration: its type, default and where it may be set."""

    name: str
    type: str
    """``boolean``, ``int``, ``long``, ``double``, ``string``, ``list`` or ``password``."""
    default: Any
    topic: bool = False
    """Whether a topic may override it (under this very name)."""
    broker: bool = True
    dynamic: bool = False
    """Whether a broker takes a new value without a restart (KIP-226)."""
    minimum: int | float | None = None
    choices: tuple[str, ...] = ()
    broker_name: str | None = None
    """Topic configs: the broker config that gives the default."""
    before: tuple[tuple[str, Any], ...] = ()
    """(version, default) pairs of emulated versions whose default differs."""

    def default_for(self, kafka_version: str) -> Any:
        for version, value in self.before:
            if version == kafka_version:
                return value
        return self.default

    def read(self, value: Any) -> Any:
        """A value that was checked before: by type alone, as bounds differ between releases."""
        return _PARSERS[self.type](value)

    def parse(self, value: Any) -> Any:
        """Parse a value as Kafka's ``ConfigDef`` does; raises ``ValueError`` with the reason."""
        parsed = _PARSERS[self.type](value)
        if self.minimum is not None and parsed is not None and parsed < self.minimum:
            raise ValueError(
                f"Invalid value {value} for configuration {self.name}: "
                f"Value must be at least {self.minimum}"
            )
        if self.choices:
            for item in parsed if isinstance(parsed, tuple) else (parsed,):
                if item not in self.choices:
                    raise ValueError(
                        f"Invalid value {item} for configuration {self.name}: "
                        f"String must be one of: {', '.join(self.choices)}"
                    )
        return parsed


def _parse_boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise ValueError(f"Invalid value {value}: Expected value to be either true or false")
    return text == "true"


def _parse_int(value: Any) -> int | None:
    if value is None:
        return None
    try:
        return int(str(value).strip())
    except ValueError:
        raise ValueError(f"Invalid value {value}: Not a number") from None


def _parse_double(value: Any) -> float:
    try:
        return float(str(value).strip())
    except ValueError:
        raise ValueError(f"Invalid value {value}: Not a number") from None


def _parse_list(value: Any) -> tuple[str, ...]:
    if isinstance(value, (list, tuple)):
        return tuple(str(v) for v in value)
    return tuple(part.strip() for part in str(value).split(",") if part.strip())


_PARSERS: dict[str, Any] = {
    "boolean": _parse_boolean,
    "int": _parse_int,
    "long": _parse_int,
    "double": _parse_double,
    "string": lambda value: None if value is None else str(value),
    "password": lambda value: None if value is None else str(value),
    "list": _parse_list,
}


def _b(name: str, type_: str, default: Any, **more: Any) -> ConfigDefinition:
    return ConfigDefinition(name, type_, default, **more)


def _t(name: str, broker_name: str, type_: str, default: Any, **more: Any) -> ConfigDefinition:
    return ConfigDefinition(
        name,
        type_,
        default,
        topic=True,
        broker=name == broker_name,
        broker_name=broker_name,
        **more,
    )


_OLD = ("0.10", "1.1")


def _older(value: Any, versions: Iterable[str] = _OLD) -> tuple[tuple[str, Any], ...]:
    return tuple((version, value) for version in versions)


_CONSUMER_ASSIGNORS = ",".join(
    f"org.apache.kafka.coordinator.group.assignor.{name}Assignor" for name in ("Uniform", "Range")
)
_COMPRESSION = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

NOT_OF_KAFKA = ("max.partitions.per.request",)
"""Settings of this package that no release of Kafka has."""

_ALL = (
    # identity, ZooKeeper, controller (docs/reference/configuration.md)
    _b("broker.id", "int", -1),
    _b("broker.id.generation.enable", "boolean", True),
    _b("reserved.broker.max.id", "int", 1000),
    _b("broker.rack", "string", None),
    _b("log.dirs", "string", None),
    _b("zookeeper.session.timeout.ms", "int", 18000, minimum=1, before=_older(6000)),
    _b("zookeeper.connection.timeout.ms", "int", None, minimum=1),
    _b("zookeeper.max.in.flight.requests", "int", 10, minimum=1, before=_older(1, ("0.10",))),
    _b("controller.socket.timeout.ms", "int", 30000),
    _b("request.timeout.ms", "int", 30000),
    _b("controlled.shutdown.enable", "boolean", True),
    _b("controlled.shutdown.max.retries", "int", 3),
    _b("controlled.shutdown.retry.backoff.ms", "long", 5000),
    _b("auto.leader.rebalance.enable", "boolean", True),
    _b("leader.imbalance.per.broker.percentage", "int", 10),
    _b("leader.imbalance.check.interval.seconds", "long", 300, minimum=1),
    _b("delete.topic.enable", "boolean", True, before=_older(False, ("0.10",))),
    _b("auto.create.topics.enable", "boolean", True),
    _b("num.partitions", "int", 1, minimum=1),
    _b("default.replication.factor", "int", 1),
    _b("max.partitions.per.request", "int", 10000, minimum=1),
    _b("background.threads", "int", 10, dynamic=True),
    # replication (docs/reference/configuration.md)
    _b("replica.lag.time.max.ms", "long", 30000, before=_older(10000)),
    _b("replica.fetch.wait.max.ms", "int", 500),
    _b("replica.fetch.min.bytes", "int", 1),
    _b("replica.fetch.max.bytes", "int", 1048576, minimum=0),
    _b("replica.fetch.response.max.bytes", "int", 10485760, minimum=0),
    _b("replica.fetch.backoff.ms", "int", 1000, minimum=0),
    _b("replica.socket.timeout.ms", "int", 30000),
    _b("num.replica.fetchers", "int", 1, dynamic=True),
    _b("replica.high.watermark.checkpoint.interval.ms", "long", 5000),
    _b("replica.selector.class", "string", None),
    _b("leader.replication.throttled.rate", "long", LONG_MAX, minimum=0, dynamic=True),
    _b("follower.replication.throttled.rate", "long", LONG_MAX, minimum=0, dynamic=True),
    _b("replication.quota.window.num", "int", 11, minimum=1),
    _b("replication.quota.window.size.seconds", "int", 1, minimum=1),
    _b("num.replica.alter.log.dirs.threads", "int", None, minimum=1),
    _b("replica.alter.log.dirs.io.max.bytes.per.second", "long", LONG_MAX, minimum=0, dynamic=True),
    _b("alter.log.dirs.replication.quota.window.num", "int", 11, minimum=1),
    _b("alter.log.dirs.replication.quota.window.size.seconds", "int", 1, minimum=1),
    _b("fetch.max.bytes", "int", 57671680, minimum=1024),
    _b("max.incremental.fetch.session.cache.slots", "int", 1000, minimum=0),
    _b("fetch.purgatory.purge.interval.requests", "int", 1000),
    _b("producer.purgatory.purge.interval.requests", "int", 1000),
    _b("delete.records.purgatory.purge.interval.requests", "int", 1),
    _b("log.flush.scheduler.interval.ms", "long", LONG_MAX),
    _b("log.flush.offset.checkpoint.interval.ms", "int", 60000, minimum=0),
    _b("log.flush.start.offset.checkpoint.interval.ms", "int", 60000, minimum=0),
    _b("log.retention.check.interval.ms", "long", 300000, minimum=1),
    _b("log.cleaner.enable", "boolean", True),
    _b("log.cleaner.backoff.ms", "long", 15000, minimum=0, dynamic=True),
    _b("connections.max.idle.ms", "long", 600000),
    _b("socket.request.max.bytes", "int", 104857600, minimum=1),
    _b("queued.max.requests", "int", 500, minimum=1),
    _b("queued.max.request.bytes", "long", -1),
    # groups and transactions (docs/reference/configuration.md)
    _b("group.min.session.timeout.ms", "int", 6000),
    _b("group.max.session.timeout.ms", "int", 1800000, before=_older(300000)),
    _b("group.initial.rebalance.delay.ms", "int", 3000),
    _b("group.max.size", "int", INT_MAX, minimum=1),
    _b(
        "group.coordinator.rebalance.protocols",
        "list",
        "classic",
        choices=("consumer", "classic", "share", "unknown"),
    ),
    _b("group.consumer.session.timeout.ms", "int", 45000, minimum=1),
    _b("group.consumer.min.session.timeout.ms", "int", 45000, minimum=1),
    _b("group.consumer.max.session.timeout.ms", "int", 60000, minimum=1),
    _b("group.consumer.heartbeat.interval.ms", "int", 5000, minimum=1),
    _b("group.consumer.min.heartbeat.interval.ms", "int", 5000, minimum=1),
    _b("group.consumer.max.heartbeat.interval.ms", "int", 15000, minimum=1),
    _b("group.consumer.max.size", "int", INT_MAX, minimum=1),
    _b("group.consumer.assignors", "list", _CONSUMER_ASSIGNORS),
    _b("group.consumer.migration.policy", "string", "disabled"),
    _b("offset.metadata.max.bytes", "int", 4096),
    _b("offsets.topic.num.partitions", "int", 50, minimum=1),
    _b("offsets.topic.replication.factor", "int", 3, minimum=1),
    _b("offsets.topic.segment.bytes", "int", 104857600, minimum=1),
    _b("offsets.retention.minutes", "int", 10080, minimum=1, before=_older(1440)),
    _b("offsets.retention.check.interval.ms", "long", 600000, minimum=1),
    _b("offsets.commit.timeout.ms", "int", 5000, minimum=1),
    _b("offsets.commit.required.acks", "int", -1),
    _b("transactional.id.expiration.ms", "int", 604800000, minimum=1),
    _b("producer.id.expiration.ms", "int", 86400000, minimum=1, dynamic=True),
    _b("transaction.max.timeout.ms", "int", 900000, minimum=1),
    _b(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        "int",
        10000,
        minimum=1,
        before=_older(60000),
    ),
    _b("transaction.remove.expired.transaction.cleanup.interval.ms", "int", 3600000, minimum=1),
    _b("transaction.state.log.num.partitions", "int", 50, minimum=1),
    _b("transaction.state.log.replication.factor", "int", 3, minimum=1),
    _b("transaction.state.log.min.isr", "int", 2, minimum=1),
    _b("transaction.state.log.segment.bytes", "int", 104857600, minimum=1),
    _b("transaction.partition.verification.enable", "boolean", True, dynamic=True),
    # security (docs/reference/configuration.md)
    _b("sasl.enabled.mechanisms", "list", "GSSAPI"),
    _b("sasl.server.max.receive.size", "int", 524288),
    _b("connections.max.reauth.ms", "long", 0),
    _b("connection.failed.authentication.delay.ms", "int", 100, minimum=0),
    _b("ssl.client.auth", "string", "none", choices=("required", "requested", "none")),
    _b("ssl.principal.mapping.rules", "string", "DEFAULT"),
    _b("authorizer.class.name", "string", ""),
    _b("super.users", "string", ""),  # the authorizer's, as the next one
    _b("allow.everyone.if.no.acl.found", "boolean", False),
    _b("delegation.token.master.key", "password", None),
    _b("delegation.token.secret.key", "password", None),
    _b("delegation.token.max.lifetime.ms", "long", 604800000, minimum=1),
    _b("delegation.token.expiry.time.ms", "long", 86400000, minimum=1),
    _b("delegation.token.expiry.check.interval.ms", "long", 3600000, minimum=1),
    _b("quota.window.num", "int", 11, minimum=1),
    _b("quota.window.size.seconds", "int", 1, minimum=1),
    _b("controller.quota.window.num", "int", 11, minimum=1),
    _b("controller.quota.window.size.seconds", "int", 1, minimum=1),
    # broker side of topic configs
    _b("message.max.bytes", "int", 1048588, minimum=0, dynamic=True, before=_older(1000012)),
    _b("log.segment.bytes", "int", 1073741824, minimum=14, dynamic=True),
    _b("log.roll.ms", "long", 604800000, minimum=1, dynamic=True),
    _b("log.retention.ms", "long", 604800000, dynamic=True),
    _b("log.retention.bytes", "long", -1, dynamic=True),
    _b("log.index.interval.bytes", "int", 4096, minimum=0, dynamic=True),
    _b("log.index.size.max.bytes", "int", 10485760, minimum=4, dynamic=True),
    _b("log.segment.delete.delay.ms", "long", 60000, minimum=0, dynamic=True),
    _b("log.flush.interval.messages", "long", LONG_MAX, minimum=1, dynamic=True),
    _b("log.flush.interval.ms", "long", None, dynamic=True),
    _b("log.cleanup.policy", "list", "delete", choices=("compact", "delete"), dynamic=True),
    _b("log.cleaner.delete.retention.ms", "long", 86400000, minimum=0, dynamic=True),
    _b("log.cleaner.min.compaction.lag.ms", "long", 0, minimum=0, dynamic=True),
    _b("log.cleaner.max.compaction.lag.ms", "long", LONG_MAX, minimum=1, dynamic=True),
    _b("log.cleaner.min.cleanable.ratio", "double", 0.5, minimum=0, dynamic=True),
    _b(
        "log.message.timestamp.type",
        "string",
        "CreateTime",
        choices=("CreateTime", "LogAppendTime"),
        dynamic=True,
    ),
    _b("log.message.timestamp.difference.max.ms", "long", LONG_MAX, minimum=0, dynamic=True),
    _b("log.message.downconversion.enable", "boolean", True, dynamic=True),
    # topic configs
    _t("cleanup.policy", "log.cleanup.policy", "list", "delete", choices=("compact", "delete")),
    _t("compression.type", "compression.type", "string", "producer", choices=_COMPRESSION),
    _t("delete.retention.ms", "log.cleaner.delete.retention.ms", "long", 86400000, minimum=0),
    _t("file.delete.delay.ms", "log.segment.delete.delay.ms", "long", 60000, minimum=0),
    _t("flush.messages", "log.flush.interval.messages", "long", LONG_MAX, minimum=1),
    _t("flush.ms", "log.flush.interval.ms", "long", LONG_MAX, minimum=0),
    _t("index.interval.bytes", "log.index.interval.bytes", "int", 4096, minimum=0),
    _t("max.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms", "long", LONG_MAX, minimum=1),
    _t("max.message.bytes", "message.max.bytes", "int", 1048588, minimum=0),
    _t("message.downconversion.enable", "log.message.downconversion.enable", "boolean", True),
    _t(
        "message.timestamp.difference.max.ms",
        "log.message.timestamp.difference.max.ms",
        "long",
        LONG_MAX,
        minimum=0,
    ),
    _t(
        "message.timestamp.type",
        "log.message.timestamp.type",
        "string",
        "CreateTime",
        choices=("CreateTime", "LogAppendTime"),
    ),
    _t("min.cleanable.dirty.ratio", "log.cleaner.min.cleanable.ratio", "double", 0.5, minimum=0),
    _t("min.compaction.lag.ms", "log.cleaner.min.compaction.lag.ms", "long", 0, minimum=0),
    _t("min.insync.replicas", "min.insync.replicas", "int", 1, minimum=1, dynamic=True),
    _t("preallocate", "log.preallocate", "boolean", False),
    _t("retention.bytes", "log.retention.bytes", "long", -1),
    _t("retention.ms", "log.retention.ms", "long", 604800000, minimum=-1),
    _t("segment.bytes", "log.segment.bytes", "int", 1073741824, minimum=14),
    _t("segment.index.bytes", "log.index.size.max.bytes", "int", 10485760, minimum=4),
    _t("segment.jitter.ms", "log.roll.jitter.ms", "long", 0, minimum=0),
    _t("segment.ms", "log.roll.ms", "long", 604800000, minimum=1),
    _t(
        "unclean.leader.election.enable",
        "unclean.leader.election.enable",
        "boolean",
        False,
        dynamic=True,
        before=_older(True, ("0.10",)),
    ),
    _t(
        "leader.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "list",
        "",
    ),
    _t(
        "follower.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
        "list",
        "",
    ),
    _t("message.format.version", "log.message.format.version", "string", "3.0-IV1"),
)

DEFINITIONS: dict[str, ConfigDefinition] = {definition.name: definition for definition in _ALL}


def definition(name: str) -> ConfigDefinition:
    """The definition of a configuration; ``UsageError`` names the nearest known one."""
    try:
        return DEFINITIONS[name]
    except KeyError:
        hint = did_you_mean(name, DEFINITIONS)
        raise UsageError(f"unknown configuration {name!r}{hint}") from None


@functools.cache
def _defaults(kafka_version: str) -> Mapping[str, Any]:
    """Each broker configuration's default in a release, parsed once: all values are immutable."""
    return MappingProxyType(
        {d.name: d.parse(d.default_for(kafka_version)) for d in _ALL if d.broker}
    )


def value_text(value: Any) -> str | None:
    """A parsed value as Kafka prints it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)


class BrokerConfig:
    """Configuration values in force at a broker, parsed; read with ``config["name"]``.

    Dynamic values (KIP-226) lie over the static ones, static ones over the defaults of the
    emulated version.
    """

    def __init__(
        self, static: Mapping[str, Any] | None = None, kafka_version: str = DEFAULT_KAFKA_VERSION
    ) -> None:
        self.kafka_version = kafka_version
        self.static: dict[str, Any] = {}
        self.dynamic: dict[str, Any] = {}
        self.dynamic_of_broker: Mapping[str, str] = {}
        """What is set for this broker while it runs, whether or not anybody here heeds it."""
        self.dynamic_default: Mapping[str, str] = {}
        """The same for all brokers."""
        for name, value in (static or {}).items():
            try:
                self.static[name] = definition(name).parse(value)
            except ValueError as error:
                if isinstance(error, UsageError):
                    raise
                raise UsageError(f"config {name!r}: {error}") from None
        self._values: dict[str, Any] = {}
        self._rebuild()

    def _rebuild(self) -> None:
        values = {**_defaults(self.kafka_version), **self.static, **self.dynamic}
        if values["log.flush.interval.ms"] is None:
            values["log.flush.interval.ms"] = values["log.flush.scheduler.interval.ms"]
        self._values = values

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def set_dynamic(self, values: Mapping[str, str]) -> None:
        """Replace all dynamic values; unknown or malformed ones raise ``ValueError``."""
        self.dynamic = {name: definition(name).parse(value) for name, value in values.items()}
        self._rebuild()


class TopicConfig:
    """Values in force for one topic: its overrides over the broker's configuration."""

    __slots__ = ("_broker", "_values", "overrides")

    def __init__(self, broker: BrokerConfig, overrides: Mapping[str, str] | None = None) -> None:
        self._broker = broker
        self.overrides = dict(overrides or {})
        self._values: dict[str, Any] = {
            name: DEFINITIONS[name].read(value)
            for name, value in self.overrides.items()
            if name in DEFINITIONS and value is not None
        }

    @property
    def kafka_version(self) -> str:
        return self._broker.kafka_version

    def __getitem__(self, name: str) -> Any:
        if name in self._values:
            return self._values[name]
        d = DEFINITIONS[name]
        broker_name = d.broker_name or name
        if broker_name in DEFINITIONS and DEFINITIONS[broker_name].broker:
            return self._broker[broker_name]
        return d.parse(d.default)


def validate_topic_config(overrides: Mapping[str, str | None]) -> None:
    """Check topic overrides as Kafka's ``LogConfig.validate``.

    Raises ``ValueError`` naming the configuration that is unknown or malformed.
    """
    for name, value in overrides.items():
        d = DEFINITIONS.get(name)
        if d is None or not d.topic:
            raise ValueError(f"Unknown topic config name: {name}")
        if value is None:
            raise ValueError(f"Null value not supported for topic configs: {name}")
        d.parse(value)
