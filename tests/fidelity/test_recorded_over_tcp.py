"""Scenarios on a ``Cluster``: its sockets and its ZooKeeper's port show what Kafka showed.

Other scenarios run only in a simulation, whose requests pass through the same code behind the
sockets. ``python -m fakekafka.tests.fidelity compare --version 3.9 --tcp`` runs all over TCP.
"""

from __future__ import annotations

import pytest
from fakekafka.tests.fidelity import catalogue, comparison, differences, recording, running
from fakekafka.tests.fidelity.sides.embedded import EmbeddedSide

SOON_OVER = (
    "configs_of_a_broker_are_described",
    "deletion_errors",
    "fetch_errors",
    "group_errors",
    "growth_errors",
    "idempotent_producer",
    "offered_versions",
    "offered_versions_to_a_client_with_a_bad_name",
    "produce_errors",
    "transaction_errors",
    "znodes_of_a_cluster",
)
OF_ONE_RELEASE = (
    "cluster_is_described",
    "leader_freezes",
    "preferred_election_errors",
    "topic_grows_by_znode",
)
CHOSEN = [
    *(("3.9", name) for name in (*SOON_OVER, *OF_ONE_RELEASE)),
    *(("2.8", name) for name in SOON_OVER),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kafka_version", "name"), CHOSEN, ids=lambda value: value)
def test_a_cluster_shows_over_tcp_what_kafka_showed(kafka_version: str, name: str) -> None:
    """A client and a ZooKeeper client see each step as they saw it with brokers of Kafka."""
    scenario = catalogue.all_scenarios()[name]
    known = recording.load(kafka_version, name)
    assert known is not None
    side = EmbeddedSide(kafka_version, scenario.shape)
    try:
        stage = running.play(scenario, side)
    finally:
        side.close()
    found = comparison.differences(known, stage.steps)
    unknown, _ = differences.split(kafka_version, name, found)
    assert stage.notes == []
    assert unknown == [], "\n" + "\n".join(map(str, unknown))
