"""Kafka's tools and brokers read our log directories, and our brokers read Kafka's.

The tests need Java and Kafka's jars, which ``make oracle-files VERSION=3.9`` downloads. Continuous
integration leaves them out, as downloading jars and starting brokers would take minutes.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from fakekafka.tests.fidelity.files import dumping
from fakekafka.tests.fidelity.files.carrying import OurSide, carry
from fakekafka.tests.fidelity.files.story import Story
from fakekafka.tests.fidelity.sides import releases
from fakekafka.tests.fidelity.stage.stage import Stage

pytestmark = [pytest.mark.slow, pytest.mark.serial, pytest.mark.timeout(900)]


@pytest.fixture(params=["3.9", "2.8"])
def kafka_version(request: pytest.FixtureRequest) -> str:
    version: str = request.param
    missing = releases.missing(version)
    if missing:
        pytest.skip(missing)
    return version


@pytest.fixture
def stopped(kafka_version: str, tmp_path: Path) -> Path:
    """Return the log directory of one of our brokers after a clean shutdown."""
    side = OurSide(kafka_version, tmp_path)
    try:
        Story(Stage(side))
        side.stop(1)
    finally:
        side.close()
    return tmp_path / "broker-1"


def test_kafkas_tool_reads_our_files(kafka_version: str, stopped: Path) -> None:
    """DumpLogSegments finds nothing wrong with segments, indexes and snapshots; it decodes
    committed offsets and the state of transactions."""
    assert list(dumping.complaints(kafka_version, stopped)) == []
    segments = sorted(stopped.glob("__consumer_offsets-0/*.log"))
    printed = dumping.dump(kafka_version, segments, "--offsets-decoder")
    assert "seven" in printed


@pytest.mark.parametrize("way", ["stop", "kill"])
@pytest.mark.parametrize("to_kafka", [True, False], ids=["ours-to-kafka", "kafkas-to-ours"])
def test_kafka_and_fakekafka_resume_from_each_others_files(
    kafka_version: str, to_kafka: bool, way: str
) -> None:
    """The other broker serves the same records, offsets, epochs and commits, knows producers, and
    commits the open transaction, after a clean shutdown and after a crash."""
    carried = carry(kafka_version, to_kafka=to_kafka, way=way)
    assert carried.notes == []
    assert carried.after == carried.before
    assert carried.next["repeated"] == ["NONE", 22]
    assert carried.next["nothing was written"]
    assert carried.next["next"] == ["NONE", 24]
    assert carried.next["in the open transaction"] == ["NONE", 10]
    assert carried.next["commit"]["errorCode"] == "NONE"
    assert [value for _, value in carried.next["committed"]][-3:] == ["open", "more", "commit"]
