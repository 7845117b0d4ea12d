"""Power failures of brokers in the middle of writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakekafka import Cluster, Simulation
from fakekafka.exploration.cluster_steps import PowerOff
from fakekafka.exploration.step import parse_step
from fakekafka.protocol.records.format import HEADER_SIZE

RECORDS = 20


def ends_after_torn_writes(seed: int) -> list[int]:
    """Return the log end offset of the only broker after each of three power failures."""
    ends = []
    with Simulation(1, topics={"t": {}}, seed=seed) as simulation:
        for _ in range(3):
            for _ in range(RECORDS):
                simulation.produce("t", "value")
            simulation.broker(1).power_off(torn=True)
            simulation.run_for(20_000)  # its session expires
            simulation.broker(1).start()
            simulation.produce("t", "one more")
            ends.append(simulation.partition("t", 0).replica(1).log_end_offset)
    return ends


def test_a_seed_tears_the_same_bytes() -> None:
    """Another seed tears other bytes, and the records found at a start are on the disk from then
    on.
    """
    ends = ends_after_torn_writes(3)
    assert ends_after_torn_writes(3) == ends
    assert ends_after_torn_writes(4) != ends
    assert 0 < ends[0] < RECORDS
    before = 0
    for end in ends:
        assert before < end <= before + RECORDS + 1
        before = end


def test_files_are_torn(tmp_path: Path) -> None:
    """A broker on real files starts with a prefix of its records."""
    values = [b"%d" % number for number in range(RECORDS)]
    with Cluster(1, topics={"t": {}}, data_dir=tmp_path) as cluster:
        for value in values:
            cluster.produce("t", value)
        cluster.broker(1).power_off(torn=True)
        (file,) = tmp_path.rglob("t-0/*.log")
        left_bytes = file.stat().st_size
    with Cluster(1, data_dir=tmp_path) as cluster:
        cluster.wait_until(lambda: cluster.partition("t", 0).leader == 1)
        found = [record.value for record in cluster.records("t", 0)]
        assert found == values[: len(found)]
        assert len(found) * HEADER_SIZE <= left_bytes
        assert file.stat().st_size <= left_bytes


def test_a_torn_write_does_not_change_other_random_draws() -> None:
    """Torn writes have a random generator of their own."""
    with Simulation(1, seed=1) as one, Simulation(1, seed=1) as other:
        one.broker(1).power_off(torn=True)
        other.broker(1).power_off()
        assert one.runtime.rng.random() == other.runtime.rng.random()


@pytest.mark.parametrize(
    ("torn", "text"),
    [(True, "broker-1 loses power in the middle of a write"), (False, "broker-1 loses power")],
)
def test_the_trace_records_a_torn_write(torn: bool, text: str) -> None:
    """The text of the broker's crash says whether writes were torn."""
    with Simulation(1) as simulation:
        simulation.broker(1).power_off(torn=torn)
        assert [event.why for event in simulation.trace().filter("kind == crash")] == [text]


def test_a_step_without_the_word_torn_tears_no_write() -> None:
    """Steps of earlier finds are parsed unchanged; a torn power failure has one more word."""
    assert parse_step("power_off 2") == PowerOff(2, is_torn=False)
    assert str(PowerOff(2)) == "power_off 2"
    assert parse_step(str(PowerOff(2, is_torn=True))) == PowerOff(2, is_torn=True)
