"""The znodes that ZooKeeper keeps for itself, per release."""

from __future__ import annotations

import pytest
from fakekafka.testing.simulation import Simulation
from fakekafka.zkfake.messages import GetEphemeralsRequest, ZkCode


@pytest.mark.parametrize(
    ("version", "names", "tells"),
    [
        ("0.10", ["quota"], False),
        ("1.1", ["quota"], False),
        ("2.8", ["config", "quota"], False),
        ("3.9", ["config", "quota"], True),
    ],
)
def test_each_release_has_the_zookeeper_of_its_time(
    version: str, names: list[str], tells: bool
) -> None:
    """Releases 0.10 and 1.1 have ZooKeeper 3.4, 2.8 has 3.5, and 3.9 has 3.8."""
    with Simulation(brokers=1, kafka_version=version, seed=1) as simulation:
        server = simulation.running.zookeepers[1].server
        assert server.children("/zookeeper") == names
        assert "zookeeper" in server.children("/")
        assert server.stat("/zookeeper").czxid == 0
        session_id = next(iter(server.storage.tree.sessions))
        answer = server._read(session_id, GetEphemeralsRequest("/brokers/ids"))
        expected = (ZkCode.OK, ("/brokers/ids/1",)) if tells else (ZkCode.UNIMPLEMENTED, ())
        assert (answer.code, answer.children) == expected
