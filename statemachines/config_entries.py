"""Configurations as DescribeConfigs and CreateTopics answer them: values and where they come from.

Source numbers, config types: data_plane 15.7, Kafka's ``ConfigHelper`` (KIP-133, KIP-226).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..protocol.admin import ConfigEntry
from ..protocol.config import DEFINITIONS, TOPIC_CONFIGS, BrokerConfig, ConfigDefinition

TOPIC_SOURCE = 1
DYNAMIC_BROKER_SOURCE = 2
DYNAMIC_DEFAULT_SOURCE = 3
STATIC_SOURCE = 4
DEFAULT_SOURCE = 5

_CONFIG_TYPES = {
    "boolean": 1,
    "string": 2,
    "int": 3,
    "long": 5,
    "double": 6,
    "list": 7,
    "password": 9,
}

Synonym = tuple[str, str | None, int]
"""(name, value, source)."""


def value_text(value: Any) -> str | None:
    """A parsed value as Kafka prints it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)


class ConfigValues:
    """Where the values in force at a broker come from: dynamic, static or default."""

    def __init__(
        self,
        config: BrokerConfig,
        dynamic_of_broker: Mapping[str, str],
        dynamic_default: Mapping[str, str],
    ) -> None:
        self._config = config
        self._of_broker = dynamic_of_broker
        self._default = dynamic_default
        self._without_overrides: dict[tuple[bool, bool], tuple[ConfigEntry, ...]] = {}
        """Entries of a topic that has none, by what is included: most topics of a request."""

    def synonyms(self, definition: ConfigDefinition) -> list[Synonym]:
        """Every value a broker configuration has, the one in force first."""
        name = definition.name
        found: list[Synonym] = []
        if name in self._of_broker:
            found.append((name, self._of_broker[name], DYNAMIC_BROKER_SOURCE))
        if name in self._default:
            found.append((name, self._default[name], DYNAMIC_DEFAULT_SOURCE))
        if name in self._config.static:
            found.append((name, value_text(self._config.static[name]), STATIC_SOURCE))
        default = definition.default_for(self._config.kafka_version)
        found.append((name, value_text(definition.parse(default)), DEFAULT_SOURCE))
        return found

    def topic_synonyms(self, name: str, overrides: Mapping[str, str]) -> list[Synonym]:
        """Every value a topic configuration has, the one in force first."""
        definition = DEFINITIONS[name]
        found: list[Synonym] = []
        if name in overrides:
            found.append((name, overrides[name], TOPIC_SOURCE))
        of_broker = DEFINITIONS.get(definition.broker_name or name)
        if of_broker is not None and of_broker.broker:
            return found + self.synonyms(of_broker)
        default = definition.default_for(self._config.kafka_version)
        return [*found, (name, value_text(definition.parse(default)), DEFAULT_SOURCE)]

    def topic_entries(
        self,
        overrides: Mapping[str, str],
        names: Collection[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> tuple[ConfigEntry, ...]:
        """Entries of all topic configurations, or those named."""
        if overrides or names:
            return self._topic_entries(overrides, names, include_synonyms, include_documentation)
        options = (include_synonyms, include_documentation)
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
        return tuple(
            _entry(
                DEFINITIONS[name],
                self.topic_synonyms(name, overrides),
                False,
                include_synonyms,
                include_documentation,
            )
            for name in TOPIC_CONFIGS
            if not names or name in names
        )

    def broker_entries(
        self,
        names: Collection[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> tuple[ConfigEntry, ...]:
        """Entries of all broker configurations, or those named."""
        return tuple(
            _entry(
                DEFINITIONS[name],
                self.synonyms(DEFINITIONS[name]),
                not DEFINITIONS[name].dynamic,
                include_synonyms,
                include_documentation,
            )
            for name in sorted(DEFINITIONS)
            if DEFINITIONS[name].broker and (not names or name in names)
        )

    def default_entries(
        self,
        names: Collection[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> tuple[ConfigEntry, ...]:
        """Entries of the cluster's dynamic default: only what is set there."""
        return tuple(
            _entry(
                DEFINITIONS[name],
                [(name, self._default[name], DYNAMIC_DEFAULT_SOURCE)],
                False,
                include_synonyms,
                include_documentation,
            )
            for name in sorted(self._default)
            if name in DEFINITIONS and (not names or name in names)
        )


def _entry(
    definition: ConfigDefinition,
    synonyms: list[Synonym],
    read_only: bool,
    include_synonyms: bool,
    include_documentation: bool,
) -> ConfigEntry:
    _, value, source = synonyms[0]
    is_sensitive = definition.type == "password"
    shown = tuple(synonyms) if include_synonyms else ()
    if is_sensitive:
        value = None
        shown = tuple((name, None, origin) for name, _value, origin in shown)
    return ConfigEntry(
        definition.name,
        value,
        source,
        is_sensitive,
        read_only,
        _CONFIG_TYPES[definition.type],
        source == DEFAULT_SOURCE,
        shown,
        "" if include_documentation else None,
    )
