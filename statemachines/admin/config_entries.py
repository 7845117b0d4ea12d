"""Entries of DescribeConfigs and CreateTopics: configuration values with their sources.

For the numbers of sources and types see docs/kafka/administration.md#configurations and Kafka's
``ConfigHelper`` (KIP-133, KIP-226).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property

from ...protocol.admin import ConfigEntry
from ...protocol.config import EXTRA_CONFIGS, BrokerConfig
from ...protocol.release_configs import (
    ReleaseConfig,
    ReleaseConfigs,
    listener_base_name,
    release_configs,
)
from ...protocol.versions import behaviour
from ..broker.reconfiguration import in_force, static_texts

TOPIC_SOURCE = 1
DYNAMIC_BROKER_SOURCE = 2
DYNAMIC_DEFAULT_SOURCE = 3
STATIC_SOURCE = 4
DEFAULT_SOURCE = 5
LOGGER_SOURCE = 6

UNKNOWN_TYPE = "unknown"
"""Type of a configuration that Kafka does not know, whose value is hidden as it may be a secret."""
UNTYPED = "untyped"
"""Type of a configuration that Kafka does not know, but whose value is shown."""
_CONFIG_TYPES = {
    UNKNOWN_TYPE: 0,
    UNTYPED: 0,
    "boolean": 1,
    "string": 2,
    "int": 3,
    "short": 4,
    "long": 5,
    "double": 6,
    "list": 7,
    "class": 8,
    "password": 9,
}

_MECHANISM_SETTINGS = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
"""Settings whose names have a listener and a SASL mechanism as prefix, such as
``listener.name.internal.plain.sasl.jaas.config``."""

Synonym = tuple[str, str | None, int]
"""(name, value, source)."""


class ConfigValues:
    """Values in force at a broker with their sources: dynamic, static or default.

    ``facts`` are static values that are not settings of this package, such as ``listeners``.
    """

    def __init__(self, config: BrokerConfig, facts: Mapping[str, str] | None = None) -> None:
        self._config = config
        self._behaviour = behaviour(config.kafka_version)
        self._of_broker = config.dynamic_of_broker
        self._default = config.dynamic_default
        self._static = {**static_texts(config), **(facts or {})}
        self._without_overrides: dict[tuple[bool, bool], tuple[ConfigEntry, ...]] = {}
        """Cached entries of a topic without overrides, as most topics are, by (include_synonyms,
        include_documentation)."""

    @property
    def _release(self) -> ReleaseConfigs:
        """The emulated release's table, which is not needed at startup and so read on first use."""
        return release_configs(self._config.kafka_version)

    @cached_property
    def _in_force(self) -> dict[str, str]:
        """Static values and the dynamic values that the broker has applied; it may know of others
        that it could not apply."""
        return in_force(self._release, self._static, self._config.applied)

    def synonyms(self, name: str) -> list[Synonym]:
        """Return every value of a broker configuration, the one in force first.

        Values of synonyms that precede the first value under the configuration's own name are left
        out; without a value under its own name the list is empty (``ConfigHelper.configSynonyms``).
        """
        names = self._names(name)
        found: list[Synonym] = []
        for values, source in (
            (self._of_broker, DYNAMIC_BROKER_SOURCE),
            (self._default, DYNAMIC_DEFAULT_SOURCE),
            (self._static, STATIC_SOURCE),
        ):
            found += [(n, values[n], source) for n in names if n in values]
        for synonym in names:
            fact = self._release.broker.get(synonym)
            if fact is not None and fact.default is not None:
                found.append((synonym, fact.default, DEFAULT_SOURCE))
        while found and found[0][0] != name:
            del found[0]
        return found

    def _names(self, name: str) -> tuple[str, ...]:
        """Return the names to look up; a listener's setting falls back to that of all listeners."""
        known = self._release.broker.get(name)
        if known is not None:
            return known.synonyms
        base_name = listener_base_name(name)
        if base_name is None:
            return (name,)
        of_mechanism = (end for end in _MECHANISM_SETTINGS if base_name.endswith(end))
        return name, next(of_mechanism, base_name)

    def _custom(self, values: Iterable[str], names: Collection[str] | None) -> list[ReleaseConfig]:
        """Return the configurations that are set but unknown to Kafka's ``KafkaConfig``.

        The value of a configuration without a type is not shown, as it may be a secret.
        """
        found = []
        for name in dict.fromkeys(values):
            if (
                name in self._release.broker
                or name in EXTRA_CONFIGS
                or (names and name not in names)
            ):
                continue
            known = self._release.dynamic.get(name)
            if known is None or not self._behaviour.types_of_dynamic_configs_told:
                bases = (self._release.broker.get(each) for each in self._names(name)[1:])
                known = next((base for base in bases if base is not None), None)
            update = ""
            if known is not None and self._behaviour.synonyms_shown_as_dynamic:
                update = known.update
            type_ = UNKNOWN_TYPE if known is None else known.type
            found.append(ReleaseConfig(name, type_, None, update, "", ""))
        return found

    def topic_entries(
        self,
        overrides: Mapping[str, str],
        names: Collection[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> tuple[ConfigEntry, ...]:
        """Return the entries of all topic configurations, or only those named."""
        options = (include_synonyms, include_documentation)
        if overrides or names:
            return self._topic_entries(overrides, names, *options)
        entries = self._without_overrides.get(options)
        if entries is None:
            entries = self._without_overrides[options] = self._topic_entries({}, None, *options)
        return entries

    def _topic_entries(
        self,
        overrides: Mapping[str, str],
        names: Collection[str] | None,
        include_synonyms: bool,
        include_documentation: bool,
    ) -> tuple[ConfigEntry, ...]:
        topic = self._release.topic
        type_ = UNKNOWN_TYPE if self._behaviour.unknown_topic_configs_secret else UNTYPED
        custom = [
            ReleaseConfig(name, type_, None, "", "", "")
            for name in overrides  # unknown ones, which only a tool can write to ZooKeeper
            if name not in topic and (not names or name in names)
        ]
        return tuple(
            _entry(
                known,
                self._topic_value(known, overrides),
                self._topic_synonyms(known, overrides),
                False,
                include_synonyms,
                include_documentation and known.name in topic,
            )
            for known in (*_chosen(topic, names), *custom)
        )

    def _topic_synonyms(self, known: ReleaseConfig, overrides: Mapping[str, str]) -> list[Synonym]:
        found = self.synonyms(known.broker_name) if known.broker_name else []
        if known.name in overrides:
            found.insert(0, (known.name, known.normalized(overrides[known.name]), TOPIC_SOURCE))
        return found

    def _topic_value(self, known: ReleaseConfig, overrides: Mapping[str, str]) -> str | None:
        """Return the topic's override, or the value that the broker's configuration gives it."""
        if known.name in overrides:
            return known.normalized(overrides[known.name])
        for name in self._names(known.broker_name) if known.broker_name else ():
            value = self._in_force.get(name)
            if value is not None:
                return known.normalized(value)
        return known.default

    def broker_entries(
        self,
        names: Collection[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> tuple[ConfigEntry, ...]:
        """Return the entries of all broker configurations, or only those named."""
        entries = []
        values = self._in_force
        default, of_broker = self._config.applied
        set_here = (*self._config.static, *default, *of_broker)
        for known in (*_chosen(self._release.broker, names), *self._custom(set_here, names)):
            entries.append(
                _entry(
                    known,
                    self._shown(known, values.get(known.name, known.default)),
                    self.synonyms(known.name),
                    not known.update,
                    include_synonyms,
                    include_documentation and known.name in self._release.broker,
                )
            )
        return tuple(entries)

    def _shown(self, known: ReleaseConfig, value: str | None) -> str | None:
        """Return a value in its parsed form, or as it is if Kafka does not know the setting."""
        is_parsed = value is not None and known.name in self._release.broker
        return known.normalized(value) if is_parsed and value is not None else value

    def default_entries(
        self,
        names: Collection[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> tuple[ConfigEntry, ...]:
        """Return the entries of the dynamic defaults that are set for the whole cluster."""
        return tuple(
            _entry(
                known,
                self._default[known.name],
                [(known.name, self._default[known.name], DYNAMIC_DEFAULT_SOURCE)],
                not known.update,
                include_synonyms,
                include_documentation and known.name in self._release.broker,
            )
            for known in (
                *_chosen(self._release.broker, names),
                *self._custom(self._default, names),
            )
            if known.name in self._default
        )


def logger_entries(levels: Mapping[str, str], names: Collection[str]) -> tuple[ConfigEntry, ...]:
    """Return the entries of a broker's loggers (KIP-412)."""
    return tuple(
        ConfigEntry(name, level, LOGGER_SOURCE)
        for name, level in sorted(levels.items())
        if not names or name in names
    )


def _chosen(
    known: Mapping[str, ReleaseConfig], names: Collection[str] | None
) -> Iterable[ReleaseConfig]:
    return [config for name, config in known.items() if not names or name in names]


def _entry(
    known: ReleaseConfig,
    value: str | None,
    synonyms: list[Synonym],
    read_only: bool,
    include_synonyms: bool,
    include_documentation: bool,
) -> ConfigEntry:
    source = synonyms[0][2] if synonyms else DEFAULT_SOURCE
    shown = tuple(synonyms) if include_synonyms else ()
    is_sensitive = known.is_sensitive or known.type == UNKNOWN_TYPE
    if is_sensitive:
        value = None
        shown = tuple((name, None, origin) for name, _value, origin in shown)
    return ConfigEntry(
        known.name,
        value,
        source,
        is_sensitive,
        read_only,
        _CONFIG_TYPES[known.type],
        source == DEFAULT_SOURCE,
        shown,
        known.documentation if include_documentation else None,
    )
