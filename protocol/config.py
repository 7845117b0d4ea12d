"""The configurations that this package honours, and the values in force at a broker.

Names, types, defaults and checks are those that a release declares (``release_configs``). This
module lists the configurations that have an effect, and the few that only this package has. A topic
configuration falls back to a broker configuration of another name (``max.message.bytes`` to
``message.max.bytes``), as in Kafka's ``LogConfig``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from .declaring.native import checks_arguments
from .errors import UsageError, did_you_mean
from .release_configs import ConfigException, ReleaseConfig, declarations
from .values import frozen
from .versions import DEFAULT_KAFKA_VERSION, behaviour

LONG_MAX = 9223372036854775807
INT_MAX = 2147483647
CLASSIC_PROTOCOL = "classic"
CONSUMER_PROTOCOL = "consumer"
"""Protocol names in ``group.coordinator.rebalance.protocols``, and group types in ListGroups."""


_BROKER_CONFIGS = """
broker.id broker.id.generation.enable reserved.broker.max.id broker.rack log.dirs

zookeeper.session.timeout.ms zookeeper.connection.timeout.ms zookeeper.max.in.flight.requests
controller.socket.timeout.ms request.timeout.ms
controlled.shutdown.enable controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms
auto.leader.rebalance.enable leader.imbalance.per.broker.percentage
leader.imbalance.check.interval.seconds
delete.topic.enable auto.create.topics.enable num.partitions default.replication.factor
max.partitions.per.request background.threads

replica.lag.time.max.ms replica.fetch.wait.max.ms replica.fetch.min.bytes replica.fetch.max.bytes
replica.fetch.response.max.bytes replica.fetch.backoff.ms replica.socket.timeout.ms
num.replica.fetchers replica.high.watermark.checkpoint.interval.ms replica.selector.class
leader.replication.throttled.rate follower.replication.throttled.rate
replication.quota.window.num replication.quota.window.size.seconds
num.replica.alter.log.dirs.threads replica.alter.log.dirs.io.max.bytes.per.second
alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds
fetch.max.bytes max.incremental.fetch.session.cache.slots
fetch.purgatory.purge.interval.requests producer.purgatory.purge.interval.requests
delete.records.purgatory.purge.interval.requests
log.flush.scheduler.interval.ms log.flush.offset.checkpoint.interval.ms
log.flush.start.offset.checkpoint.interval.ms log.retention.check.interval.ms
log.cleaner.enable log.cleaner.backoff.ms
connections.max.idle.ms socket.request.max.bytes queued.max.requests queued.max.request.bytes

group.min.session.timeout.ms group.max.session.timeout.ms group.initial.rebalance.delay.ms
group.max.size group.coordinator.rebalance.protocols
group.consumer.session.timeout.ms group.consumer.min.session.timeout.ms
group.consumer.max.session.timeout.ms group.consumer.heartbeat.interval.ms
group.consumer.min.heartbeat.interval.ms group.consumer.max.heartbeat.interval.ms
group.consumer.max.size group.consumer.assignors group.consumer.migration.policy
offset.metadata.max.bytes offsets.topic.num.partitions offsets.topic.replication.factor
offsets.topic.segment.bytes offsets.retention.minutes offsets.retention.check.interval.ms
offsets.commit.timeout.ms offsets.commit.required.acks
transactional.id.expiration.ms producer.id.expiration.ms transaction.max.timeout.ms
transaction.abort.timed.out.transaction.cleanup.interval.ms
transaction.remove.expired.transaction.cleanup.interval.ms
transaction.state.log.num.partitions transaction.state.log.replication.factor
transaction.state.log.min.isr transaction.state.log.segment.bytes
transaction.partition.verification.enable

sasl.enabled.mechanisms sasl.server.max.receive.size connections.max.reauth.ms
connection.failed.authentication.delay.ms ssl.client.auth ssl.principal.mapping.rules
authorizer.class.name super.users allow.everyone.if.no.acl.found
delegation.token.master.key delegation.token.secret.key delegation.token.max.lifetime.ms
delegation.token.expiry.time.ms delegation.token.expiry.check.interval.ms
quota.window.num quota.window.size.seconds
controller.quota.window.num controller.quota.window.size.seconds

message.max.bytes log.segment.bytes log.roll.ms log.retention.ms log.retention.bytes
log.index.interval.bytes log.index.size.max.bytes log.segment.delete.delay.ms
log.flush.interval.messages log.flush.interval.ms log.cleanup.policy
log.cleaner.delete.retention.ms log.cleaner.min.compaction.lag.ms
log.cleaner.max.compaction.lag.ms log.cleaner.min.cleanable.ratio
log.message.timestamp.type log.message.timestamp.difference.max.ms
log.message.downconversion.enable
compression.type min.insync.replicas unclean.leader.election.enable
"""

_TOPIC_CONFIGS = """
cleanup.policy compression.type delete.retention.ms file.delete.delay.ms flush.messages flush.ms
index.interval.bytes max.compaction.lag.ms max.message.bytes message.downconversion.enable
message.timestamp.difference.max.ms message.timestamp.type min.cleanable.dirty.ratio
min.compaction.lag.ms min.insync.replicas preallocate retention.bytes retention.ms segment.bytes
segment.index.bytes segment.jitter.ms segment.ms unclean.leader.election.enable
leader.replication.throttled.replicas follower.replication.throttled.replicas
message.format.version
"""

EXTRA_CONFIGS = ("max.partitions.per.request",)
"""Configurations of this package that no release of Kafka has."""

_OVERRIDES: Mapping[str, tuple[str, str, str]] = {
    "max.partitions.per.request": ("int", "10000", "range 1.."),
    # declared by the authorizer, not by the broker
    "super.users": ("string", "", ""),
    "allow.everyone.if.no.acl.found": ("boolean", "false", ""),
    # internal in Kafka
    "group.consumer.migration.policy": ("string", "disabled", ""),
    # null in Kafka, where the values in hours then apply
    "log.roll.ms": ("long", "604800000", "range 1.."),
    "log.retention.ms": ("long", "604800000", ""),
    # a list in 2.2 and 2.3, whose items Kafka joins again
    "ssl.principal.mapping.rules": ("string", "DEFAULT", ""),
    # every emulated release stores batches in the newest format
    "message.format.version": ("string", "3.0-IV1", ""),
}
"""(type, default, check) of configurations that the table lacks, or declares differently."""

_CHECKS: Mapping[str, str] = {
    "zookeeper.session.timeout.ms": "range 1..",
    "zookeeper.connection.timeout.ms": "range 1..",
    "leader.imbalance.check.interval.seconds": "range 1..",
    "num.replica.alter.log.dirs.threads": "range 1..",
    "compression.type": "one uncompressed,zstd,lz4,snappy,gzip,producer",
    "log.cleaner.delete.retention.ms": "range 0..",
    "log.cleaner.min.compaction.lag.ms": "range 0..",
    "log.cleaner.max.compaction.lag.ms": "range 1..",
    "log.cleaner.min.cleanable.ratio": "range 0..1",
    "log.message.timestamp.difference.max.ms": "range 0..",
    "message.timestamp.type": "one CreateTime,LogAppendTime",
}
"""Checks for releases that declare none, where Kafka checks later or not at all."""

_NEVER_NULL = ("boolean", "double", "list")
_MAX_IN_FLIGHT_REQUESTS = "zookeeper.max.in.flight.requests"

_NOT_DYNAMIC = ("compression.type", "sasl.enabled.mechanisms", "ssl.client.auth")
"""Configurations that Kafka's brokers can change at run time, but an emulated broker cannot."""


@frozen
class ConfigDefinition:
    """A configuration that this package honours, as one release declares it."""

    declaration: ReleaseConfig
    broker: bool
    """True if brokers have a configuration of this name."""
    topic: bool
    """True if a topic may override the configuration under this name."""

    @property
    def name(self) -> str:
        return self.declaration.name

    @property
    def type(self) -> str:
        """``boolean``, ``int``, ``short``, ``long``, ``double``, ``string``, ``list``, ``class`` or
        ``password``."""
        return self.declaration.type

    @property
    def default(self) -> Any:
        """The default, parsed."""
        text = self.declaration.default
        return None if text is None else self.read(text)

    @property
    def is_dynamic(self) -> bool:
        """True if a broker takes a new value without a restart (KIP-226)."""
        return bool(self.declaration.update) and self.name not in _NOT_DYNAMIC

    @property
    def broker_name(self) -> str:
        """The broker configuration that supplies the default of a topic."""
        return self.declaration.broker_name or self.name

    def read(self, value: Any) -> Any:
        """Parse a value that was validated before, without its bounds, which vary by release."""
        return self._apply(value, self.declaration.parse)

    def parse(self, value: Any) -> Any:
        """Parse and validate a value as Kafka's ``ConfigDef`` does.

        Raises ``ValueError`` with the reason.
        """
        return self._apply(value, self.declaration.validate)

    def _apply(self, value: Any, parse: Callable[[str], Any]) -> Any:
        """Apply ``parse`` to a value, which may be text or a Python value."""
        if value is None:
            if self.type in _NEVER_NULL:
                raise ConfigException(f"Invalid value null for configuration {self.name}")
            return None
        text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        parsed = parse(text)
        return tuple(filter(None, parsed)) if isinstance(parsed, list) else parsed


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BROKER_NAMES, _TOPIC_NAMES = _names(_BROKER_CONFIGS), _names(_TOPIC_CONFIGS)
NAMES = tuple(sorted(_BROKER_NAMES | _TOPIC_NAMES))
"""All configurations that this package honours."""


@functools.cache
@checks_arguments
def definitions(kafka_version: str) -> Mapping[str, ConfigDefinition]:
    """Return all honoured configurations by name, as an emulated release declares them.

    Raises ``UsageError`` for a version that is not emulated.
    """
    declared = declarations(kafka_version, frozenset(NAMES))
    lacks_pipelining = not behaviour(kafka_version).pipelined_zookeeper
    result = {}
    for name in NAMES:
        is_topic, is_broker = name in _TOPIC_NAMES, name in _BROKER_NAMES
        scopes = ("broker", "dynamic") if is_broker else ("topic",)
        declaration = next(
            (declared[scope, name] for scope in scopes if (scope, name) in declared), None
        )
        if name in _OVERRIDES:
            type_, default, check = _OVERRIDES[name]
            update, broker_name = (
                ("", "") if declaration is None else (declaration.update, declaration.broker_name)
            )
            declaration = ReleaseConfig(name, type_, default, update, broker_name, check)
        assert declaration is not None, name
        if not declaration.check and name in _CHECKS:
            declaration = replace(declaration, check=_CHECKS[name])
        if name == _MAX_IN_FLIGHT_REQUESTS and lacks_pipelining:
            declaration = replace(declaration, default="1")
        result[name] = ConfigDefinition(declaration, is_broker, is_topic)
    return MappingProxyType(result)


@checks_arguments
def definition(name: str, kafka_version: str = DEFAULT_KAFKA_VERSION) -> ConfigDefinition:
    """Return the definition of a configuration.

    Raises ``UsageError`` for an unknown name, with the most similar known one.
    """
    try:
        return definitions(kafka_version)[name]
    except KeyError:
        hint = did_you_mean(name, NAMES)
        raise UsageError(f"unknown configuration {name!r}{hint}") from None


@functools.cache
def _defaults(kafka_version: str) -> Mapping[str, Any]:
    """Return the broker defaults of a release by name. Immutable, so they are parsed only once."""
    known = definitions(kafka_version).values()
    return MappingProxyType({d.name: d.default for d in known if d.broker})


def value_text(value: Any) -> str | None:
    """Return a parsed value as Kafka prints it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)


class BrokerConfig:
    """The parsed configuration values in force at a broker, read as ``config["name"]``.

    Dynamic values (KIP-226) take precedence over static values, and static values over the defaults
    of the emulated version.
    """

    def __init__(
        self, static: Mapping[str, Any] | None = None, kafka_version: str = DEFAULT_KAFKA_VERSION
    ) -> None:
        self.kafka_version: str = behaviour(kafka_version).kafka_version
        self.static: dict[str, Any] = {}
        self.dynamic: dict[str, Any] = {}
        self.dynamic_of_broker: Mapping[str, str] = {}
        """Stored dynamic values of this broker, including values without an effect here."""
        self.dynamic_default: Mapping[str, str] = {}
        """Stored dynamic values for all brokers."""
        self.applied: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})
        """(values for all brokers, values of this broker) that the broker has applied. The broker
        keeps the previous values if it cannot apply a change."""
        for name, value in (static or {}).items():
            known = definition(name, self.kafka_version)
            if value is None and known.default is not None:
                raise UsageError(
                    f"config {name!r} must have a value, not None; "
                    f"omit it for the default {value_text(known.default)}"
                )
            try:
                self.static[name] = known.parse(value)
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

    @property
    def delegation_token_key(self) -> str:
        """The secret key of delegation tokens, by either of its names; empty if there are none."""
        key = self["delegation.token.secret.key"] or self["delegation.token.master.key"]
        return key or ""

    def set_dynamic(self, values: Mapping[str, str]) -> None:
        """Replace all dynamic values. Raises ``ValueError`` for an unknown or malformed one."""
        version = self.kafka_version
        self.dynamic = {n: definition(n, version).parse(value) for n, value in values.items()}
        self._rebuild()


class TopicConfig:
    """The values in force for one topic: its overrides, then the broker's configuration."""

    __slots__ = ("_broker", "_definitions", "_values", "overrides")

    def __init__(self, broker: BrokerConfig, overrides: Mapping[str, str] | None = None) -> None:
        self._broker = broker
        self._definitions = known = definitions(broker.kafka_version)
        self.overrides: dict[str, str] = dict(overrides or {})
        self._values: dict[str, Any] = {
            name: known[name].read(value)
            for name, value in self.overrides.items()
            if name in known and value is not None
        }

    @property
    def kafka_version(self) -> str:
        return self._broker.kafka_version

    def __getitem__(self, name: str) -> Any:
        if name in self._values:
            return self._values[name]
        known = self._definitions[name]
        if known.broker_name in _BROKER_NAMES:
            return self._broker[known.broker_name]
        return known.default


def validate_topic_config(
    overrides: Mapping[str, str | None], kafka_version: str = DEFAULT_KAFKA_VERSION
) -> None:
    """Check topic overrides as Kafka's ``LogConfig.validate`` does.

    Raises ``ValueError`` naming the configuration that is unknown or malformed.
    """
    for name, value in overrides.items():
        known = definitions(kafka_version).get(name)
        if known is None or not known.topic:
            raise ValueError(f"Unknown topic config name: {name}")
        if value is None:
            raise ValueError(f"Null value not supported for topic configs: {name}")
        known.parse(value)
