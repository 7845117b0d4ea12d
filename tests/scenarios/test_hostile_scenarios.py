"""Scenario files that would exhaust memory or time are refused when they are read."""

from __future__ import annotations

import pytest
from fakekafka.protocol.errors import UsageError
from fakekafka.scenarios.file import TEXT_MAX, parse_scenario

CLUSTER = "[cluster]\nbrokers = 3\n[cluster.topics.orders]\npartitions = 1\n"

HOSTILE: dict[str, tuple[str, str]] = {
    "deep arrays": ("name = " + "[" * 50_000 + "]" * 50_000, "nested too deeply"),
    "deep tables": ("name = " + "{a=" * 20_000 + "1" + "}" * 20_000, "nested too deeply"),
    "a number of 5000 digits": (CLUSTER + "[stop]\nat_ms = " + "9" * 5000, "not valid TOML"),
    "a number of 400 digits": (CLUSTER + "[stop]\nat_ms = 1" + "0" * 400, "stop.at_ms: must be"),
    "a long seed": ("seed = 1" + "0" * 400 + "\n" + CLUSTER, "seed: must be at most"),
    "brokers": (
        "[cluster]\nbrokers = 100_000_000",
        "brokers: must be a whole number from 1 to 10000",
    ),
    "zookeepers": (
        "[cluster]\nzookeepers = 1_000_000",
        "zookeepers: must be a whole number from 1 to 99",
    ),
    "partitions": (
        "[cluster]\n[cluster.topics.orders]\npartitions = 1_000_000_000",
        "cluster.topics.orders.partitions: must be a whole number from 1 to 1,000,000",
    ),
    "producers": (
        CLUSTER + "[workload]\nproducers = 1_000_000_000",
        "producers: must be a whole number from",
    ),
    "consumers": (
        CLUSTER + "[workload]\nconsumers = 1_000_000_000",
        "consumers: must be a whole number from",
    ),
    "members": (
        CLUSTER + "[[groups]]\nmembers = 1_000_000_000",
        "members: must be a whole number from",
    ),
    "records": (CLUSTER + "[workload]\nrecord_bytes = 1_000_000_000_000", "record_bytes: must be"),
    "times": (
        CLUSTER + "[[faults]]\nat_ms = 1\naction = 'note'\ntext = 'x'\nevery_ms = 1\n"
        "times = 1_000_000_000",
        "times: must be a whole number from 1 to 1,000,000",
    ),
    "a long file": ("#" * TEXT_MAX + "\n" + CLUSTER, "is longer than 1,000,000 characters"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_excessive_size_is_refused_with_the_key_and_the_limit(name: str) -> None:
    """An excessive size is refused with the key and the limit, before anything of that size is
    created."""
    text, told = HOSTILE[name]
    with pytest.raises(UsageError, match=r"hostile\.toml(: | is )") as refused:
        parse_scenario(text, "hostile.toml")
    assert told in str(refused.value)
    assert len(str(refused.value)) < 1000
