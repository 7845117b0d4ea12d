"""Configuration of embedded clusters: Kafka's defaults, replaced where tests need faster ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..protocol.config import CONSUMER_PROTOCOL, definitions
from ..protocol.errors import UsageError
from ..protocol.versions import DEFAULT_KAFKA_VERSION, behaviour

TEST_DEFAULTS: dict[str, tuple[str, str]] = {
    "zookeeper.session.timeout.ms": ("1000", "a killed broker is noticed after a second"),
    "zookeeper.connection.timeout.ms": ("30000", "brokers start on a busy machine, too"),
    "replica.lag.time.max.ms": ("5000", "a stuck follower leaves the ISR soon"),
    "replica.fetch.backoff.ms": ("50", "a restarted follower catches up at once"),
    "controlled.shutdown.retry.backoff.ms": ("100", "shutting down never waits for seconds"),
    "group.initial.rebalance.delay.ms": ("50", "members that start together join together"),
    "group.min.session.timeout.ms": ("100", "tests may use short sessions"),
    "group.consumer.heartbeat.interval.ms": ("100", "rebalances proceed with the heartbeats"),
    "group.consumer.min.heartbeat.interval.ms": ("10", "tests may use short intervals"),
    "group.consumer.session.timeout.ms": ("6000", "a dead member is noticed in seconds"),
    "group.consumer.min.session.timeout.ms": ("100", "tests may use short sessions"),
    "offsets.topic.num.partitions": ("1", "one internal partition is created, not fifty"),
    "transaction.state.log.num.partitions": ("1", "one internal partition is created, not fifty"),
}
"""Values that ``Cluster`` sets instead of Kafka's defaults: name to (value, reason)."""

RESTART_DELAY_MS = 3000
TEST_RESTART_DELAY_MS = 200
"""Time in milliseconds after which a broker that found itself still registered starts again."""

_PER_BROKER_COUNT = {
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
}
"""Kafka's defaults, lowered to the number of brokers so that one broker is enough."""


def kafka_defaults(kafka_version: str = DEFAULT_KAFKA_VERSION) -> dict[str, str | None]:
    """Return Kafka's own defaults of the configurations that ``Cluster`` changes.

    Pass the result as ``config``. A value is None if another configuration gives the default.
    """
    known = definitions(kafka_version)
    defaults = {name: known[name].default for name in (*TEST_DEFAULTS, *_PER_BROKER_COUNT)}
    return {name: None if value is None else str(value) for name, value in defaults.items()}


def cluster_config(
    config: Mapping[str, Any] | None, brokers: int, kafka_version: str, *, test_friendly: bool
) -> dict[str, Any]:
    """Return the static configuration of every broker: the user's on top of the defaults."""
    values: dict[str, Any] = {}
    if test_friendly:
        values.update({name: value for name, (value, _) in TEST_DEFAULTS.items()})
    for name, wanted in _PER_BROKER_COUNT.items():
        values[name] = min(wanted, brokers)
    values.update(config or {})
    _check_protocols(values.get("group.coordinator.rebalance.protocols", ()), kafka_version)
    _check_consumer_bounds(values, kafka_version)
    for name in (*TEST_DEFAULTS, *_PER_BROKER_COUNT):
        if name in values and _is_default(name, values[name], kafka_version):
            del values[name]  # so that DescribeConfigs reports it as a default
    return values


def _check_protocols(protocols: Any, kafka_version: str) -> None:
    """Refuse the consumer protocol for a release that does not have it."""
    names = protocols.split(",") if isinstance(protocols, str) else protocols
    is_wanted = CONSUMER_PROTOCOL in [str(name).strip() for name in names]
    if is_wanted and not behaviour(kafka_version).consumer_groups:
        raise UsageError(
            "group.coordinator.rebalance.protocols: groups of the consumer protocol (KIP-848) "
            f"need kafka_version='3.7' or later, not {kafka_version!r}"
        )


def _check_consumer_bounds(values: Mapping[str, Any], kafka_version: str) -> None:
    """Refuse times that a broker would refuse at its start (Kafka: ``GroupCoordinatorConfig``)."""

    def given(name: str) -> int:
        definition = definitions(kafka_version)[name]
        try:
            return int(definition.parse(values.get(name, definition.default)))
        except ValueError as error:
            raise UsageError(f"config {name!r}: {error}") from None

    for time in ("heartbeat.interval.ms", "session.timeout.ms"):
        name, least, most = (f"group.consumer.{bound}{time}" for bound in ("", "min.", "max."))
        for lower, upper in ((least, most), (least, name), (name, most)):
            if given(lower) > given(upper):
                raise UsageError(
                    f"{lower} is {given(lower)}, and {upper} {given(upper)}: it must not be more"
                )


def _is_default(name: str, value: Any, kafka_version: str) -> bool:
    """Return whether a value is Kafka's own default; False if it cannot be parsed."""
    definition = definitions(kafka_version)[name]
    try:
        return bool(definition.read(value) == definition.default)
    except ValueError:
        return False


def log_dirs(value: str | None) -> tuple[str, ...]:
    """Return the directories that ``log.dirs`` names; empty if it is not set.

    Every broker has its own directories of these names. Raises ``UsageError`` for a path, a
    repeated name, or an empty name.
    """
    if value is None:
        return ()
    names = tuple(name.strip() for name in value.split(","))
    bad = [name for name in names if name in ("", ".", "..") or "/" in name or "\\" in name]
    if bad or len(set(names)) < len(names):
        raise UsageError(
            f"log.dirs {value!r}: write names, each once and without a path, such as 'a,b'; "
            "every broker has such directories for itself"
        )
    return names
