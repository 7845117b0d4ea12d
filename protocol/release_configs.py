"""Every configuration of each emulated release: name, type, default, bounds, and update mode.

This module has all configurations that a release knows, so that they are described, validated and
refused as its brokers do; ``config`` lists the ones that have an effect in this package. The table
``releases/configurations.tsv`` has the declarations in the ``ConfigDef`` of each release; real
brokers of 0.10.1, 1.1, 2.8 and 3.9 describe the same.

A line holds these columns: scope; name; the first release it applies to (empty for the oldest); the
first release it no longer applies to (empty if there is none); type; default (``\\N`` is null); for
a broker configuration its update mode (``cluster``, ``per-broker``, or empty for read-only), for a
topic configuration the name of the corresponding broker configuration; and the check of values. The
check ``version 2.8-IV1`` permits the versions in the second line of the file up to that one.
"""

from __future__ import annotations

import math
import pkgutil
import re
from collections.abc import Container, Mapping
from functools import cache
from typing import Any

from .declaring.native import checks_arguments
from .releases.release import Release
from .values import frozen

_BITS = {"int": 31, "short": 15, "long": 63}
_NULL = "\\N"
_SYNONYMS = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
"""Groups of synonyms, highest precedence first (Kafka: ``DynamicBrokerConfig``)."""
_SYNONYMS_BY_NAME = {
    **{name: group for group in _SYNONYMS for name in group},
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}


_LISTENER_CONFIG = re.compile(r"listener\.name\.[^.]*\.(.*)$", re.DOTALL)
_OLD_THROTTLED = ("comma", "etc")
_THROTTLED_FORMATS = {
    "": " must be the literal '*' or a list of replicas in the following format: "
    "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
    "comma": " must be the literal '*' or a list of replicas in the following format: "
    "[partitionId],[brokerId]:[partitionId],[brokerId]:...",
    "etc": "  must match for format [partitionId],[brokerId]:[partitionId],[brokerId]:"
    "[partitionId],[brokerId] etc",
}
"""Error messages of the releases for an invalid list of throttled replicas."""
_COMPACTION_LAGS = ("min.compaction.lag.ms", "max.compaction.lag.ms")
_KRAFT_ONLY = ("remote.log.delete.on.disable", "remote.log.copy.disable")
LEADER_THROTTLED_RATE = "leader.replication.throttled.rate"
FOLLOWER_THROTTLED_RATE = "follower.replication.throttled.rate"
LEADER_THROTTLED_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_THROTTLED_REPLICAS = "follower.replication.throttled.replicas"


class ConfigException(ValueError):
    """Kafka's ``ConfigDef`` refuses a value."""


class InvalidTopicConfig(ValueError):
    """A topic configuration is unknown to the release, or conflicts with another one."""


@frozen
class ReleaseConfig:
    """A configuration as a release declares it."""

    name: str
    type: str
    default: str | None
    update: str
    """Update mode of a broker configuration: ``cluster``, ``per-broker``, ``by-synonym`` (shown as
    if it could be changed), or empty for read-only."""
    broker_name: str
    """For a topic configuration, the broker configuration that supplies the default; may be
    empty."""
    check: str

    @property
    def is_sensitive(self) -> bool:
        return self.type == "password"

    @property
    def synonyms(self) -> tuple[str, ...]:
        """All names of a broker configuration, highest precedence first."""
        return _SYNONYMS_BY_NAME.get(self.name, (self.name,))

    @property
    def documentation(self) -> str:
        default = "null" if self.default is None else repr(self.default)
        return f"{self.name}: {self.type}, {default} by default. Kafka's documentation tells more."

    def validate(self, value: str) -> Any:
        """Return the parsed value; raises ``ConfigException`` with Kafka's message.

        Kafka: ``ConfigDef.parseType``, validators.
        """
        parsed = self.parse(value)
        kind, _, rest = self.check.partition(" ")
        if kind == "range":
            self._check_range(parsed, rest)
        elif kind in ("one", "list"):
            allowed = rest.split(",")
            for item in parsed if isinstance(parsed, list) else [parsed]:
                if item not in allowed:
                    raise self._invalid(item, f"String must be one of: {', '.join(allowed)}")
        elif kind == "throttled":
            # Releases up to 2.7 check only whether the list begins with the asterisk.
            is_all = parsed[:1] == ["*"] if rest in _OLD_THROTTLED else "".join(parsed) == "*"
            if not is_all and not all(map(_is_replica_or_nothing, parsed)):
                shown = f"[{', '.join(parsed)}]"
                raise self._invalid(shown, f"{self.name}{_THROTTLED_FORMATS[rest]}")
        elif self.type == "class" and parsed != self.default:
            if not parsed.startswith("org.apache.kafka."):  # the only classes assumed to exist
                raise self._invalid(parsed, f"Class {parsed} could not be found.")
        elif kind == "version":
            self._check_version(parsed, rest)
        return parsed

    def normalized(self, value: str) -> str:
        """Return a value as Kafka prints it after parsing; unchanged if it cannot be parsed."""
        try:
            parsed = self.parse(value)
        except ConfigException:
            return value
        if isinstance(parsed, bool):
            return str(parsed).lower()
        if isinstance(parsed, float):
            return _java_double(parsed)
        return ",".join(parsed) if isinstance(parsed, list) else str(parsed)

    def parse(self, value: str) -> Any:
        """Parse a value of this type; raises ``ConfigException`` for an invalid one."""
        if self.type == "password":
            return value
        text = value.strip()
        if self.type == "boolean":
            if text.lower() not in ("true", "false"):
                raise self._invalid(value, "Expected value to be either true or false")
            return text.lower() == "true"
        if self.type in _BITS:
            limit = 1 << _BITS[self.type]
            digits = text[1:] if text[:1] in ("-", "+") else text
            if not (digits.isascii() and digits.isdecimal() and -limit <= int(text) < limit):
                raise self._invalid(value, f"Not a number of type {self.type.upper()}")
            return int(text)
        if self.type == "double":
            try:
                return float(text)
            except ValueError:
                raise self._invalid(value, "Not a number of type DOUBLE") from None
        if self.type == "list":
            return [item.strip() for item in text.split(",")] if text else []
        return text

    def _check_range(self, value: float, bounds: str) -> None:
        between, _, other = bounds.partition(" or ")
        low, high = between.split("..")
        if other:
            if value != int(other) and not float(low) <= value <= float(high):
                reason = f"Value must be between {low} and {high} or equal to {other}"
                raise self._invalid(value, reason)
            return
        if low and value < float(low):
            raise self._invalid(value, f"Value must be at least {low}")
        if high and value > float(high):
            raise self._invalid(value, f"Value must be no more than {high}")

    def _check_version(self, value: str, known: str) -> None:
        parts = value.split(".")[: 3 if value.startswith("0.") else 2]
        names = known.split(",")
        if ".".join(parts) not in {*names, *(name.partition("-IV")[0] for name in names)}:
            shown = f"`{value}`" if "3.0-IV0" not in names else value
            raise self._invalid(value, f"Version {shown} is not a valid version")

    def _invalid(self, value: object, reason: str) -> ConfigException:
        value = _java_double(value) if isinstance(value, float) else value
        return ConfigException(f"Invalid value {value} for configuration {self.name}: {reason}")


def _is_true(value: str | None) -> bool:
    return value is not None and value.strip().lower() == "true"


def _java_double(value: float) -> str:
    """Return a number as Java's ``Double.toString`` formats it."""
    if value == 0 or 1e-3 <= abs(value) < 1e7 or not math.isfinite(value):
        return repr(value)
    from decimal import Decimal  # rarely needed

    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    first, rest = digits[0], "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{first}.{rest}E{len(digits) - 1 + int(exponent)}"


def _is_replica_or_nothing(item: str) -> bool:
    return re.fullmatch("([0-9]+:[0-9]+)?", item) is not None


def listener_base_name(name: str) -> str | None:
    """Return the configuration that a listener's configuration overrides; None for other names.

    For example ``ssl.keystore.type`` for ``listener.name.internal.ssl.keystore.type``.
    """
    match = _LISTENER_CONFIG.match(name)
    return None if match is None else match.group(1)


@frozen
class ReleaseConfigs:
    """All configurations of a release, by name."""

    broker: dict[str, ReleaseConfig]
    topic: dict[str, ReleaseConfig]
    dynamic: dict[str, ReleaseConfig]
    """Broker configurations that can only be set dynamically (``DynamicConfig.Broker``)."""

    def broker_config(self, name: str) -> ReleaseConfig | None:
        """Return a broker configuration, also by a name that sets it for one listener."""
        known = self.broker.get(name) or self.dynamic.get(name)
        base = listener_base_name(name) if known is None else None
        return known if base is None else self.broker.get(base)

    def validate_topic(self, values: Mapping[str, str]) -> None:
        """Validate the configurations of a topic as ``LogConfig.validate`` does.

        Raises ``InvalidTopicConfig`` for an unknown name, ``ConfigException`` for an invalid value,
        and either of them for configurations that cannot be combined or enabled.
        """
        for name in values:
            if name not in self.topic:
                raise InvalidTopicConfig(f"Unknown topic config name: {name}")
        for name, value in values.items():
            self.topic[name].validate(value)
        min_lag_ms, max_lag_ms = (self._topic_text(values, name) for name in _COMPACTION_LAGS)
        if min_lag_ms is not None and max_lag_ms is not None and int(min_lag_ms) > int(max_lag_ms):
            raise InvalidTopicConfig(
                f"conflict topic config setting {_COMPACTION_LAGS[0]} ({int(min_lag_ms)}) > "
                f"{_COMPACTION_LAGS[1]} ({int(max_lag_ms)})"
            )
        if any(_is_true(values.get(name)) for name in _KRAFT_ONLY):
            raise InvalidTopicConfig(
                "It is invalid to set `remote.log.delete.on.disable` or `remote.log.copy.disable` "
                "under Zookeeper's mode."
            )
        if _is_true(values.get("remote.storage.enable")):
            raise ConfigException(
                "Tiered Storage functionality is disabled in the broker. Topic cannot be "
                "configured with remote log storage."
            )

    def _topic_text(self, values: Mapping[str, str], name: str) -> str | None:
        if name in values:
            return values[name]
        return self.topic[name].default if name in self.topic else None


Cells = tuple[str, ...]


@cache
def _table() -> tuple[tuple[str, ...], tuple[Cells, ...]]:
    """Return the versions in the second line of the table, and the lines after it."""
    # Read through the import system, as the package may be in a zip file, as on a Spark worker.
    table = pkgutil.get_data(__package__, "releases/configurations.tsv")
    assert table is not None
    _, versions, *lines = table.decode().splitlines()
    names = tuple(versions.partition("\t")[2].split(","))
    return names, tuple([tuple(line.split("\t")) for line in lines])


def _parse_declaration(cells: Cells) -> ReleaseConfig:
    scope, name, _, _, type_, default, update_or_broker_name, check = (*cells, "", "", "")[:8]
    kind, _, last_version = check.partition(" ")
    if kind == "version":
        versions = _table()[0]
        check = "version " + ",".join(versions[: versions.index(last_version) + 1])
    is_topic = scope == "topic"
    return ReleaseConfig(
        name,
        type_,
        None if default == _NULL else default,
        "" if is_topic else update_or_broker_name,
        update_or_broker_name if is_topic else "",
        check,
    )


@cache
@checks_arguments
def release_configs(kafka_version: str) -> ReleaseConfigs:
    """Return all configurations that an emulated release declares, read only once.

    Raises ``UsageError`` for a version that is not emulated.
    """
    release = Release(kafka_version)
    scopes: dict[str, dict[str, ReleaseConfig]] = {"broker": {}, "topic": {}, "dynamic": {}}
    for cells in _table()[1]:
        if _applies_to(cells, release):
            scopes[cells[0]][cells[1]] = _parse_declaration(cells)
    return ReleaseConfigs(scopes["broker"], scopes["topic"], scopes["dynamic"])


def _applies_to(cells: Cells, release: Release) -> bool:
    since, before = cells[2], cells[3]
    return (not since or release.since(since)) and (not before or release.before(before))


def declarations(kafka_version: str, names: Container[str]) -> dict[tuple[str, str], ReleaseConfig]:
    """Return a release's declarations of some configurations, by scope and name.

    A configuration that the release does not have yet is declared as in the first release that has
    it; one that was removed before, as in the last release that had it.
    """
    release = Release(kafka_version)
    found: dict[tuple[str, str], Cells] = {}
    for cells in _table()[1]:
        if cells[1] in names:
            key = (cells[0], cells[1])
            # The lines of a name are in release order; the first that has not ended applies.
            removed_in = found[key][3] if key in found else ""
            if key not in found or (removed_in and release.since(removed_in)):
                found[key] = cells
    return {key: _parse_declaration(cells) for key, cells in found.items()}
