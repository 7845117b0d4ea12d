"""Checks of a running broker's new configuration, with their error messages (KIP-226,
docs/kafka/administration.md#dynamic-configurations).

A change is checked twice. First each name and value: may the setting change while the broker runs,
at this level, and does the value have the right type? Then the resulting configuration, for the
components that would have to apply it: thread pools, log cleaner, logs, listeners.

Source: Kafka's ``DynamicBrokerConfig``, the ``validateReconfiguration`` methods that it calls, and
``KafkaConfig.validateValues``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from ...protocol.config import BrokerConfig, value_text
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.java_hashing import in_hash_order
from ...protocol.release_configs import (
    ConfigException,
    ReleaseConfig,
    ReleaseConfigs,
    listener_base_name,
    release_configs,
)
from ...protocol.versions import Behaviour
from .listener_settings import (
    LISTENER_SETTINGS,
    check_listeners,
    check_protocols_stay,
    listener_names,
    pairs,
)

Texts = Mapping[str, str]

_KEYSTORES = (
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.key.password",
)
_TRUSTSTORES = (
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.truststore.certificates",
)
_THREADS = (
    "num.io.threads",
    "num.network.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
)
_CLEANER = (
    "log.cleaner.threads",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.buffer.load.factor",
    "log.cleaner.io.buffer.size",
    "message.max.bytes",
    "log.cleaner.io.max.bytes.per.second",
    "log.cleaner.backoff.ms",
)
_LOCAL_RETENTION = ("log.local.retention.ms", "log.local.retention.bytes")
_RETENTION = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
_LIMITED_ADDRESSES = "max.connections.per.ip.overrides"
_CONNECTION_LIMITS = ("max.connections", "max.connection.creation.rate")
_OLD_COMPRESSIONS = "uncompressed,snappy,lz4,gzip,producer"
_COMPRESSIONS = "uncompressed,zstd,lz4,snappy,gzip,producer"
_JMX_REPORTER = "org.apache.kafka.common.metrics.JmxReporter"
_MINUTE_MS = 60_000
_MB = 1 << 20


def usable(
    stored: Texts, kafka_version: str, behaviour: Behaviour, *, per_broker: bool
) -> tuple[dict[str, str], list[str]]:
    """Return (stored values that a broker accepts, log lines about the others).

    Stored values are checked again because a tool may have written them directly to ZooKeeper
    (``DynamicBrokerConfig.fromPersistentProps``).
    """
    if not stored:
        return {}, []  # without reading the release's table
    release = release_configs(kafka_version)
    source = "broker" if per_broker else "default cluster"
    taken: dict[str, str] = {}
    errors: list[str] = []
    for name, value in stored.items():
        try:
            check_names_and_types({name: value}, release, behaviour, per_broker=per_broker)
        except ConfigException as error:
            errors.append(f"Dynamic {source} config {name}={value} will be ignored: {error}")
        else:
            taken[name] = value
    return taken, errors


def check_names_and_types(
    values: Texts, release: ReleaseConfigs, behaviour: Behaviour, *, per_broker: bool
) -> None:
    """Raise ``ConfigException`` for a setting that may not change dynamically, or not at this
    level, or for a value of the wrong type; names that Kafka does not know are allowed
    (``DynamicBrokerConfig.validateConfigs``)."""
    known = release.broker
    named = in_hash_order(values)
    _refuse_any(
        "Cannot update these configs dynamically",
        (n for n in named if n in known and known[n].update in ("", "by-synonym")),
    )
    security = _KEYSTORES + (_TRUSTSTORES if behaviour.truststores_change_live else ())
    _refuse_any(
        "These security configs can be dynamically updated only per-listener using the listener "
        "prefix",
        (name for name in named if name in security and name in known),
        "HashSet" if behaviour.maps_shown_as_hash_maps else "Set",
    )
    for name, value in values.items():
        config = release.broker_config(name)
        if config is not None and is_dynamic(config):
            config.validate(value)
    if not per_broker:
        own = [name for name in named if _is_per_broker(name, release, behaviour)]
        _refuse_any(
            "Cannot update these configs at default cluster level, broker id must be specified",
            sorted(own, key=lambda name: listener_base_name(name) is not None),
        )


def is_dynamic(config: ReleaseConfig) -> bool:
    """Return whether a setting may change while the broker runs."""
    return config.update in ("cluster", "per-broker")


def _is_per_broker(name: str, release: ReleaseConfigs, behaviour: Behaviour) -> bool:
    base_name = listener_base_name(name)
    if base_name is None:
        config = release.broker.get(name)
        return config is not None and config.update == "per-broker"
    config = release.broker.get(base_name)
    is_limit = base_name in _CONNECTION_LIMITS and config is not None
    is_pool = base_name == "num.network.threads" and behaviour.network_threads_per_listener
    return not is_limit and not is_pool


def _refuse_any(text: str, names: Iterable[str], collection: str = "Set") -> None:
    refused = list(names)
    if refused:
        raise ConfigException(f"{text}: {collection}({', '.join(refused)})")


def is_password(name: str, release: ReleaseConfigs) -> bool:
    """Return whether a dynamic setting is a password, which is stored encrypted with the brokers'
    secret."""
    return any(
        name.endswith(config.name)
        for config in release.broker.values()
        if config.is_sensitive and is_dynamic(config)
    )


def static_texts(config: BrokerConfig) -> dict[str, str]:
    """Return a broker's static settings as text."""
    texts = {name: value_text(value) for name, value in config.static.items()}
    return {name: text for name, text in texts.items() if text is not None}


def in_force(release: ReleaseConfigs, static: Texts, layers: Iterable[Texts]) -> dict[str, str]:
    """Return static settings overridden by layers of dynamic ones, the last on top. A value also
    overrides its setting's synonyms (``DynamicBrokerConfig.overrideProps``)."""
    found = dict(static)
    for layer in layers:
        for name in in_hash_order(layer):
            config = release.broker.get(name)
            for synonym in (name,) if config is None else config.synonyms:
                found.pop(synonym, None)
            found[name] = layer[name]
    return found


def check_reconfiguration(
    static: Texts,
    old: Sequence[Texts],
    new: Sequence[Texts],
    release: ReleaseConfigs,
    behaviour: Behaviour,
) -> None:
    """Raise ``ConfigException`` if a running broker cannot change from ``old`` to ``new``.

    Both are layers of dynamic settings over the static ones, as for ``in_force``. Raises
    ``KafkaError`` where Kafka fails unexpectedly.
    """
    _Check(static, old, new, release, behaviour).run()


def check_values(
    static: Texts, layers: Sequence[Texts], release: ReleaseConfigs, behaviour: Behaviour
) -> None:
    """Raise ``ConfigException`` for values that are inconsistent with each other.

    A broker checks its dynamic settings in this way when it starts. Raises ``KafkaError`` where
    Kafka fails unexpectedly.
    """
    _Check(static, (), layers, release, behaviour).check_values()


class _Check:
    """Check of one change, with the values before and after it and the names that differ."""

    def __init__(
        self,
        static: Texts,
        old_layers: Sequence[Texts],
        new_layers: Sequence[Texts],
        release: ReleaseConfigs,
        behaviour: Behaviour,
    ) -> None:
        self._static = static
        self._old = old = in_force(release, static, old_layers)
        self._new = new = in_force(release, static, new_layers)
        self._release = release
        self._behaviour = behaviour
        names = dict.fromkeys((*new, *old) if behaviour.deleted_configs_checked else new)
        self._changed = [name for name in names if old.get(name) != new.get(name)]
        self._limits = [name for name in _CONNECTION_LIMITS if name in release.broker]
        self._listeners = listener_names(self._text(old, "listeners") or "") or [""]

    def run(self) -> None:
        self.check_values()
        if not self._changed:
            return
        try:
            self._check_values_of_listeners()
            for names, check in self._component_checks():
                if any(name in names for name in self._changed):
                    check()
        except ConfigException as error:
            # Kafka passes the exception to ``ConfigException(name, value)`` as the value.
            raise ConfigException(
                "Invalid value org.apache.kafka.common.config.ConfigException: "
                f"{error} for configuration Invalid dynamic configuration"
            ) from error

    def _component_checks(self) -> tuple[tuple[Iterable[str], Callable[[], None]], ...]:
        """Return (names, check) of each component that applies changes, in the order of checks."""
        base_names = [listener_base_name(name) or name for name in self._changed]
        limits = self._changed if any(name in self._limits for name in base_names) else []
        pools: list[str] = []
        threads: tuple[str, ...] = _THREADS
        if self._behaviour.network_threads_per_listener:
            threads = tuple(name for name in _THREADS if name != "num.network.threads")
            pools = self._changed if "num.network.threads" in base_names else []
        listeners = [name for name in self._changed if self._concerns_listeners(name)]
        cleaner = ((_CLEANER, self._check_cleaner),)
        is_last = self._behaviour.log_cleaner_asked_last
        return (
            (limits, self._check_connection_limits),
            (pools, self._check_threads_of_listeners),
            (("metric.reporters",), self._check_reporters),
            (threads, partial(self._check_threads, threads)),
            *(() if is_last else cleaner),
            ((*_RETENTION, "log.retention.bytes", *_LOCAL_RETENTION), self._check_local_retention),
            (listeners, self._check_listeners),
            *(cleaner if is_last else ()),
        )

    def _concerns_listeners(self, name: str) -> bool:
        """Return whether ``DynamicListenerConfig`` checks a setting: it checks per-broker settings,
        connection limits and the number of network threads."""
        config = self._release.broker.get(name)
        is_own = config is not None and config.update == "per-broker"
        return is_own or name in self._limits or name == "num.network.threads"

    def _text(self, texts: Texts, name: str) -> str | None:
        if name in texts:
            return texts[name]
        config = self._release.broker.get(name)
        return None if config is None else config.default

    def _number(self, name: str, texts: Texts | None = None) -> int | None:
        text = self._text(self._new if texts is None else texts, name)
        return None if text is None else int(text)

    def _time_ms(self, *names: tuple[str, int]) -> int:
        """Return a time in ms from (name, unit in ms) pairs: the first of these that is set."""
        for name, unit_ms in names:
            number = self._number(name)
            if number is not None:
                return number * unit_ms
        return 0

    @property
    def _retention_ms(self) -> int:
        units = (1, _MINUTE_MS, 60 * _MINUTE_MS)
        time_ms = self._time_ms(*zip(_RETENTION, units, strict=True))
        return -1 if time_ms < 0 else time_ms

    # -- checks of the values together (``KafkaConfig.validateValues``)

    def check_values(self) -> None:
        addresses = self._limited_addresses()
        is_new = self._behaviour.bounds_said_in_order
        least = "greater than or equal to" if is_new else "equal or greater than"
        hour_ms = 60 * _MINUTE_MS
        roll_ms = self._time_ms(("log.roll.ms", 1), ("log.roll.hours", hour_ms))
        _require(roll_ms >= 1, f"log.roll.ms must be {least} 1")
        jitter_ms = self._time_ms(("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", hour_ms))
        _require(jitter_ms >= 0, f"log.roll.jitter.ms must be {least} 0")
        _require(self._retention_ms != 0, f"log.retention.ms must be unlimited (-1) or, {least} 1")
        self._check_dedupe_buffer()
        self._check_compression()
        if addresses is not None:
            self._check_connections_per_address(addresses)
        if any(name in LISTENER_SETTINGS for name in self._changed):
            old, new = partial(self._text, self._old), partial(self._text, self._new)
            check_listeners(old, new, self._behaviour)

    def _check_dedupe_buffer(self) -> None:
        threads = self._number("log.cleaner.threads") or 0
        if not threads:
            if self._behaviour.config_changes_preprocessed:
                raise ConfigException("/ by zero")
            text = "/ by zero" if self._behaviour.unexpected_errors_told else ""
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text)
        size = self._number("log.cleaner.dedupe.buffer.size") or 0
        _require(
            size // threads > _MB,
            "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
        )

    def _check_compression(self) -> None:
        """Check ``compression.type``, unless its own value check covers that, as since 3.6."""
        if self._release.broker["compression.type"].check:
            return
        options = _COMPRESSIONS if self._behaviour.zstd_compression else _OLD_COMPRESSIONS
        compression = self._text(self._new, "compression.type") or ""
        _require(
            compression.lower() in options.split(","),
            f"compression.type : {compression} is not valid. Valid options are {options}",
        )

    def _limited_addresses(self) -> list[str] | None:
        """Return the addresses with a limit of their own; None if that setting is not dynamic."""
        config = self._release.broker.get(_LIMITED_ADDRESSES)
        if config is None or not is_dynamic(config):
            return None
        addresses = []
        for address, count in pairs(_LIMITED_ADDRESSES, partial(self._text, self._new)):
            if re.fullmatch("[-+]?[0-9]+", count) is None:
                raise ConfigException(f'For input string: "{count}"')
            addresses.append(address)
        return addresses

    def _check_connections_per_address(self, addresses: list[str]) -> None:
        _require(
            bool(addresses) or self._number("max.connections.per.ip") != 0,
            "max.connections.per.ip can be set to zero only if "
            f"{_LIMITED_ADDRESSES} property is set.",
        )
        wrong = [a for a in addresses if re.fullmatch(r"([0-9a-zA-Z\-%._:]*)", a) is None]
        if wrong:
            raise ConfigException(
                f"{_LIMITED_ADDRESSES} contains invalid addresses : {','.join(wrong)}"
            )

    # -- checks by the components that apply a change

    def _check_values_of_listeners(self) -> None:
        """Check all settings of single listeners, as a component that follows any of these parses
        them all (``AbstractConfig.valuesWithPrefixOverride``). There are such components since
        listeners have connection limits."""
        known = self._release.broker
        for listener in self._listeners if self._limits else ():
            for name, value in self._listener_settings(self._new, listener).items():
                config = known.get(name) or known.get(name.partition(".")[2])
                if config is not None:
                    config.validate(value)

    @staticmethod
    def _listener_settings(texts: Texts, listener: str) -> dict[str, str]:
        """Return the settings of a single listener, by name without the listener's prefix."""
        prefix = f"listener.name.{listener}."
        return {
            name.removeprefix(prefix): value
            for name, value in texts.items()
            if name.startswith(prefix)
        }

    def _check_connection_limits(self) -> None:
        """Check each listener's connection limits
        (``ListenerConnectionQuota.validateReconfiguration``)."""
        for listener in self._listeners:
            values = [self._listener_value(self._new, listener, name) for name in self._limits]
            if values == [self._listener_value(self._old, listener, name) for name in self._limits]:
                continue
            for name, value in zip(self._limits, values, strict=True):
                if value is not None and value <= 0:
                    raise ConfigException(f"Invalid {name} {value}")

    def _check_threads_of_listeners(self) -> None:
        """Check each listener's network threads (``DataPlaneAcceptor.validateReconfiguration``)."""
        name = "num.network.threads"
        for listener in self._listeners:
            before, after = (
                self._listener_value(texts, listener, name) or 0 for texts in (self._old, self._new)
            )
            _check_thread_count(name, before, after)

    def _listener_value(self, texts: Texts, listener: str, name: str) -> int | None:
        own = texts.get(f"listener.name.{listener}.{name}")
        return self._number(name, texts) if own is None else int(own)

    def _check_listeners(self) -> None:
        """Check changes of listeners (``DynamicListenerConfig.validateReconfiguration``)."""
        if self._behaviour.listener_configs_immutable:
            for listener in self._listeners:
                # Kafka compares with the settings of the file, even if others are in force.
                if self._immutable(self._new, listener) != self._immutable(self._static, listener):
                    raise ConfigException(
                        "Configs cannot be updated dynamically for existing listener "
                        f"ListenerName({listener.upper()}), restart broker or create a new "
                        "listener for update"
                    )
        old, new = partial(self._text, self._old), partial(self._text, self._new)
        check_protocols_stay(old, new)

    def _immutable(self, texts: Texts, listener: str) -> dict[str, str]:
        """Return the settings of a single listener that cannot change while it exists."""
        changeable = {*_KEYSTORES, *_TRUSTSTORES, *self._limits}
        if self._behaviour.network_threads_per_listener:
            changeable.add("num.network.threads")
        of_listener = self._listener_settings(texts, listener)
        return {name: value for name, value in of_listener.items() if name not in changeable}

    def _check_reporters(self) -> None:
        """Refuse reporters other than the JMX reporter, as no other class can be loaded
        (``DynamicMetricsReporters.validateReconfiguration``)."""
        named = (self._text(self._new, "metric.reporters") or "").split(",")
        if any(name.strip() not in ("", _JMX_REPORTER) for name in named):
            raise ConfigException(
                "Validation of dynamic config update of "
                f"Set({', '.join(in_hash_order(self._changed))}) failed "
                "with class class kafka.server.DynamicMetricsReporters"
            )

    def _check_threads(self, names: Iterable[str]) -> None:
        """Check thread pools, in the order of Kafka's hash map of all values
        (``DynamicThreadPool.validateReconfiguration``)."""
        for name in in_hash_order(names, len(self._release.broker)):
            before, after = self._number(name, self._old), self._number(name)
            _check_thread_count(name, before or 0, after or 0)

    def _check_local_retention(self) -> None:
        """Check the local retention of tiered storage (KIP-405,
        ``DynamicLogConfig.validateReconfiguration``)."""
        for name, bound_name in zip(
            _LOCAL_RETENTION, ("log.retention.ms", "log.retention.bytes"), strict=True
        ):
            local = self._number(name)
            is_time = name == "log.local.retention.ms"
            bound = self._retention_ms if is_time else self._number(bound_name) or 0
            if (
                name not in self._release.broker
                or local is None
                or local == -2
                or bound == -1
                or (not is_time and bound < 0)
            ):
                continue
            refused = f"Invalid value {local} for configuration {name}: Value must not be "
            if local == -1:
                raise ConfigException(f"{refused}-1 as {bound_name} value is set as {bound}.")
            if local > bound:
                raise ConfigException(f"{refused}more than {bound_name} property value: {bound}")

    def _check_cleaner(self) -> None:
        """Check the cleaner's threads, unless the cleaner is disabled
        (``LogCleaner.validateReconfiguration``)."""
        if (self._text(self._new, "log.cleaner.enable") or "true").strip().lower() != "true":
            return
        name = "log.cleaner.threads"
        before, after = self._number(name, self._old) or 0, self._number(name) or 0
        if after < 1:
            raise ConfigException("Log cleaner threads should be at least 1")
        if after < before // 2:
            raise ConfigException(
                "Log cleaner threads cannot be reduced to less than half the current value "
                f"{before}"
            )
        if after > before * 2:
            raise ConfigException(
                "Log cleaner threads cannot be increased to more than double the current value "
                f"{before}"
            )


def _check_thread_count(name: str, before: int, after: int) -> None:
    if after == before:
        return
    text = f"Dynamic thread count update validation failed for {name}={after}, value should "
    if after <= 0:
        raise ConfigException(f"{text}be at least 1")
    if after < before // 2:
        raise ConfigException(f"{text}be at least half the current value {before}")
    if after > before * 2:
        raise ConfigException(f"{text}not be greater than double the current value {before}")


def _require(is_fulfilled: bool, text: str) -> None:
    """Raise ``ConfigException`` with the prefix of Scala's ``require`` if a requirement fails."""
    if not is_fulfilled:
        raise ConfigException(f"requirement failed: {text}")
