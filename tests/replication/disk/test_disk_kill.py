"""A process that writes a data directory is killed: nothing acknowledged is lost or torn."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fakekafka.protocol.values import TopicPartition
from fakekafka.replication.disk.file_disk import FileDisk
from fakekafka.tests.support.batches import parse_batches
from fakekafka.tests.support.logs import Tools

WRITER = """
import sys
from fakekafka.protocol.config import BrokerConfig, TopicConfig
from fakekafka.protocol.records.batch import build_batch
from fakekafka.protocol.records.format import Record
from fakekafka.protocol.values import TopicPartition
from fakekafka.replication.disk.file_disk import FileDisk
from fakekafka.replication.log.leader_append import append_as_leader

path, per_batch, flush_every = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
disk = FileDisk(path)
config = TopicConfig(BrokerConfig(), {"segment.bytes": sys.argv[4], "index.interval.bytes": "500"})
log = disk.open_log(TopicPartition("t", 0), config)
count = 0
while True:
    records = [Record(i, 1700000000000, b"k", b"v" * 80) for i in range(per_batch)]
    sequence = log.log_end_offset % 2147483648
    data = build_batch(records, producer_id=1, producer_epoch=0, base_sequence=sequence)
    append_as_leader(log, data, count // 50, 1700000000000)
    count += 1
    if count % flush_every == 0:
        log.flush()
        disk.checkpoint_log_offsets()
        disk.checkpoint_high_watermarks({TopicPartition("t", 0): log.log_end_offset})
    sys.stdout.write(f"{log.log_end_offset}\\n")
    sys.stdout.flush()
"""


def run_and_kill(path: Path, rng: random.Random, per_batch: int, batches: int) -> int:
    """Let a child process write until it has acknowledged some offsets, kill it, and return the
    last of them."""
    segment_bytes = str(6000 * per_batch)
    arguments = [sys.executable, "-c", WRITER, str(path), str(per_batch), "7", segment_bytes]
    child = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    acknowledged = 0
    for _ in range(rng.randrange(1, batches)):
        acknowledged = int(child.stdout.readline())
    os.kill(child.pid, signal.SIGKILL)
    for line in child.stdout.read().split("\n")[:-1]:  # acknowledged before the kill arrived
        acknowledged = int(line)
    child.stdout.close()
    child.wait()
    return acknowledged


def check(path: Path, acknowledged: int, tools: type[Tools]) -> int:
    disk = FileDisk(path, sync=False)
    log = disk.open_log(TopicPartition("t", 0), tools.config())
    batches = list(log.batches())
    assert log.log_end_offset >= acknowledged
    assert all(batch.is_intact() for batch in batches)
    expected = 0
    for batch in batches:
        assert batch.base_offset == expected
        expected = batch.last_offset + 1
    assert expected == log.log_end_offset
    assert disk.read_high_watermarks().get(TopicPartition("t", 0), 0) <= log.log_end_offset
    assert log.producers is None or log.producers.entries[1].last_sequence == expected - 1
    folder = path / "t-0"
    for segment in log.segments:
        data = (folder / f"{segment.base_offset:020d}.log").read_bytes()
        assert sum(b.size_in_bytes for b in parse_batches(data, verify=True)) == len(data)
    disk.kill()
    return log.log_end_offset


@pytest.mark.slow
def test_killed_writer_loses_nothing_acknowledged(tmp_path: Path, tools: type[Tools]) -> None:
    """After twenty kills at random moments the log has whole batches only, and all acknowledged
    records."""
    rng = random.Random(4)
    end = 0
    for _ in range(20):
        acknowledged = run_and_kill(tmp_path, rng, per_batch=3, batches=120)
        end = check(tmp_path, max(acknowledged, end), tools)
    assert end > 0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_writer_of_a_million_records(tmp_path: Path, tools: type[Tools]) -> None:
    """Issue 4: twenty kills over a million records and more lose no acknowledged record."""
    if not os.environ.get("FAKEKAFKA_LARGE_TESTS"):
        pytest.skip("set FAKEKAFKA_LARGE_TESTS=1 to write a million records")
    rng = random.Random(5)
    end = 0
    for _ in range(20):
        acknowledged = run_and_kill(tmp_path, rng, per_batch=500, batches=300)
        end = check(tmp_path, max(acknowledged, end), tools)
    assert end >= 1_000_000
