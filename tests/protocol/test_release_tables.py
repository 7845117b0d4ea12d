"""Tables of all releases: the APIs that brokers advertise, and the declared configurations."""

from __future__ import annotations

from itertools import pairwise

import pytest
from fakekafka.protocol.api_versions import release_ranges
from fakekafka.protocol.config import NAMES, BrokerConfig, TopicConfig, definitions
from fakekafka.protocol.errors import UsageError
from fakekafka.protocol.release_configs import ConfigException, declarations, release_configs
from fakekafka.protocol.releases.release import Release
from fakekafka.protocol.versions import JUDGED_VERSIONS, KAFKA_VERSIONS, behaviour

BROUGHT_BY_VERSIONS = {
    "assignment_may_be_skipped": (11, 9),
    "api_versions_range_told": (18, 3),
    "alter_isr": (56, 0),
    "broker_configs_api": (32, 1),
    "broker_epochs": (4, 2),
    "consumer_groups": (68, 0),
    "default_counts_for_new_topics": (19, 4),
    "delegation_tokens": (38, 0),
    "earliest_local_lookup": (2, 8),
    "elect_leaders_api": (43, 0),
    "epoch_cache": (23, 0),
    "epoch_truncation_rounds": (23, 1),
    "feature_update_types": (57, 1),
    "feature_versioning": (57, 0),
    "fetch_epoch_fencing": (1, 9),
    "fetch_sessions": (1, 7),
    "group_filters_ignore_case": (16, 5),
    "log_dir_failure_handling": (4, 1),
    "max_timestamp_lookup": (2, 7),
    "member_id_required": (11, 4),
    "prefixed_acls": (29, 1),
    "producer_fenced_error": (22, 4),
    "producer_ids_from_controller": (67, 0),
    "reassignment_api": (45, 0),
    "sasl_reauthentication": (36, 1),
    "special_timestamps_versioned": (2, 9),
    "stop_replica_per_partition_delete": (5, 3),
    "throttled_after_answers": (0, 6),
    "topic_ids": (3, 10),
    "transactions": (24, 0),
    "transactions_verified": (24, 4),
    "unclean_elections_api": (43, 1),
    "unclean_leaders_recover": (56, 1),
    "zstd_compression": (0, 7),
}
"""The API key and version that came with the KIP of each flag."""


@pytest.mark.parametrize(("flag", "version"), BROUGHT_BY_VERSIONS.items())
def test_a_flag_switches_where_brokers_first_advertised_its_version(
    flag: str, version: tuple[int, int]
) -> None:
    """A flag read from Kafka's source changes in the release that first advertises its version."""
    key, first = version
    advertising = [
        kafka_version
        for kafka_version in KAFKA_VERSIONS
        if key in (ranges := release_ranges(kafka_version)) and ranges[key].maximum >= first
    ]
    having = [version for version in KAFKA_VERSIONS if getattr(behaviour(version), flag)]
    assert having == advertising


def test_no_release_takes_back_a_version() -> None:
    """Each release adds APIs and versions; none is removed before 4.0."""
    for older, newer in pairwise(KAFKA_VERSIONS):
        before, after = release_ranges(older), release_ranges(newer)
        assert before.keys() <= after.keys()
        assert all(before[key].maximum <= after[key].maximum for key in before)


@pytest.mark.parametrize("version", KAFKA_VERSIONS)
def test_every_default_of_a_release_passes_its_own_check(version: str) -> None:
    """A configuration in use has a default in every release, if need be that of another release."""
    found = definitions(version)
    assert tuple(found) == NAMES
    for known in found.values():
        if known.declaration.default is not None:
            assert known.parse(known.declaration.default) == known.default


@pytest.mark.parametrize(
    ("name", "older", "newer"),
    [
        ("zookeeper.session.timeout.ms", ("2.4", 6000), ("2.5", 18000)),
        ("replica.lag.time.max.ms", ("2.4", 10000), ("2.5", 30000)),
        ("group.max.session.timeout.ms", ("2.2", 300000), ("2.3", 1800000)),
        ("offsets.retention.minutes", ("1.1", 1440), ("2.0", 10080)),
        ("unclean.leader.election.enable", ("0.10.2", True), ("0.11.0", False)),
        ("delete.topic.enable", ("0.11.0", False), ("1.0", True)),
        ("zookeeper.max.in.flight.requests", ("1.0", 1), ("1.1", 10)),
    ],
)
def test_a_default_changes_with_its_release(
    name: str, older: tuple[str, object], newer: tuple[str, object]
) -> None:
    """Releases change defaults: KIP-537, KIP-186 and others (docs/kafka/releases.md#defaults)."""
    for version, value in (older, newer):
        assert BrokerConfig(kafka_version=version)[name] == value


def test_a_topic_takes_its_default_from_the_brokers_release() -> None:
    assert TopicConfig(BrokerConfig(kafka_version="2.4"))["max.message.bytes"] == 1000012
    assert TopicConfig(BrokerConfig(kafka_version="2.5"))["max.message.bytes"] == 1048588


def test_a_value_is_checked_as_its_release_does() -> None:
    """A flush interval of 0 messages may be set up to 3.2, and is refused since 3.3."""
    definitions("3.2")["flush.messages"].parse("0")
    with pytest.raises(ConfigException, match="Value must be at least 1"):
        definitions("3.3")["flush.messages"].parse("0")


def test_each_release_knows_the_message_formats_up_to_its_own() -> None:
    formats = release_configs("2.4").topic["message.format.version"]
    formats.validate("2.4-IV1")
    with pytest.raises(ConfigException, match=r"Version `2\.5` is not a valid version"):
        formats.validate("2.5")


def test_a_missing_configuration_has_the_default_of_the_next_release_that_has_it() -> None:
    """Code may ask any release for a configuration in use; only the description leaves it out."""
    name = "producer.id.expiration.ms"
    assert name not in release_configs("2.4").broker
    assert declarations("2.4", {name}) == declarations("3.9", {name})
    gone = "delegation.token.master.key"
    assert declarations("3.9", {gone})["broker", gone] == release_configs("3.9").broker[gone]


def test_another_name_of_a_release_is_that_release() -> None:
    """The releases 0.10 and 0.11.0 are also called 0.10.1 and 0.11, as in Kafka's documents."""
    assert behaviour("0.10.1").kafka_version == "0.10"
    assert BrokerConfig(kafka_version="0.11").kafka_version == "0.11.0"
    assert release_ranges("0.10.1") == release_ranges("0.10")


def test_a_release_with_bug_fixes_is_answered_with_its_line() -> None:
    with pytest.raises(UsageError, match=r"'2\.4\.1' is not emulated; use '2\.4', which stands"):
        Release("2.4.1")
    with pytest.raises(UsageError, match=r"'4\.0' is not emulated; use one of '0\.10'"):
        Release("4.0")


def test_the_judged_releases_are_among_the_emulated() -> None:
    assert [version for version in KAFKA_VERSIONS if version in JUDGED_VERSIONS] == [
        *JUDGED_VERSIONS
    ]
