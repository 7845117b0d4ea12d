"""What a broker's disk keeps after a kill, a power failure, a clean shutdown and failed
directories."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.errors import ErrorCode, KafkaError, UsageError
from fakekafka.protocol.values import TopicPartition
from fakekafka.replication.disk.memory_disk import MemoryDisk
from fakekafka.replication.log.follower_append import append_as_follower
from fakekafka.replication.log.leader_append import append_as_leader
from fakekafka.replication.log.log import Log
from fakekafka.replication.log.storage import LogDirectory, LogStorage
from fakekafka.tests.support.logs import Tools


def values(log: Any) -> list[bytes | None]:
    return [record.value for record in log.records()]


def test_kill_keeps_the_page_cache(tools: type[Tools]) -> None:
    """A killed process loses what it kept in memory, not what it appended."""
    disk = MemoryDisk()
    log = disk.open_log(tools.name, tools.config())
    tools.fill(log, 5)
    log.update_high_watermark(5)
    disk.checkpoint_high_watermarks({tools.name: 2})
    disk.kill()
    log = disk.open_log(tools.name, tools.config())
    assert (log.log_end_offset, log.high_watermark) == (5, 0)
    assert disk.read_high_watermarks() == {tools.name: 2}


def test_power_off_keeps_what_was_flushed(tools: type[Tools]) -> None:
    """A power failure cuts every log to its flushed offset, and its epochs and snapshots with
    it."""
    disk = MemoryDisk()
    log = disk.open_log(tools.name, tools.config())
    tools.fill(log, 3, epoch=0)
    log.flush()
    tools.fill(log, 2, epoch=1)
    disk.power_off()
    log = disk.open_log(tools.name, tools.config())
    assert (log.log_end_offset, log.epochs) == (3, ((0, 0),))
    tools.fill(log, 1, epoch=2)
    assert log.log_end_offset == 4


def test_power_off_cuts_a_copy_in_another_directory_as_well(tools: type[Tools]) -> None:
    """A power failure also cuts the future copy of a log in another directory (KIP-113)."""
    disk = MemoryDisk(("one", "two"))
    disk.open_log(tools.name, tools.config())
    copy = disk.open_future(tools.name, tools.config(), "two")
    tools.fill(copy, 3)
    copy.flush()
    tools.fill(copy, 2)
    disk.power_off()
    assert disk.open_future(tools.name, tools.config()).log_end_offset == 3


def test_more_may_survive_a_power_failure(tools: type[Tools]) -> None:
    """The operating system may have written any larger prefix of batches."""
    disk = MemoryDisk()
    for _ in range(3):
        append_as_leader(
            disk.open_log(tools.name, tools.config()), tools.data(b"a", b"b"), 0, tools.now_ms
        )
    disk.power_off({tools.name: 5})
    assert disk.open_log(tools.name, tools.config()).log_end_offset == 4


@pytest.mark.parametrize(("share", "end"), [(0, 1), (0.4, 1), (0.5, 2), (0.9, 2), (1, 3)])
def test_write_may_be_torn(tools: type[Tools], share: float, end: int) -> None:
    """A batch that is only partly on the disk is lost; the batches before it are kept."""
    disk = MemoryDisk()
    log = tools.fill(disk.open_log(tools.name, tools.config()), 1)
    log.flush()
    tools.fill(log, 2)
    disk.power_off(torn=lambda unflushed: int(share * unflushed))
    assert disk.open_log(tools.name, tools.config()).log_end_offset == end


def test_copy_in_another_directory_may_be_torn(tools: type[Tools]) -> None:
    """A power failure tears each log separately, in the order of the partitions (KIP-113)."""
    disk = MemoryDisk(("one", "two"))
    tools.fill(disk.open_log(tools.name, tools.config()), 1)
    tools.fill(disk.open_future(tools.name, tools.config(), "two"), 2)
    sizes: list[int] = []

    def half(unflushed_bytes: int) -> int:
        sizes.append(unflushed_bytes)
        return unflushed_bytes // 2

    disk.power_off(torn=half)
    ends = [disk.open_log(tools.name, tools.config()).log_end_offset]
    ends.append(disk.open_future(tools.name, tools.config()).log_end_offset)
    assert (sizes[1], ends) == (2 * sizes[0], [0, 1])


def test_clean_shutdown_loses_nothing(tools: type[Tools]) -> None:
    """Closing flushes and checkpoints, so that a power failure afterwards loses no records."""
    disk = MemoryDisk()
    log = disk.open_log(tools.name, tools.config())
    tools.fill(log, 4)
    disk.close()
    disk.close()
    disk.power_off()
    assert disk.open_log(tools.name, tools.config()).log_end_offset == 4
    assert disk.read_checkpoint("recovery-point-offset-checkpoint") == {tools.name: 4}


def test_opening_twice_gives_the_same_log(tools: type[Tools]) -> None:
    """Opening a log twice returns the same object."""
    disk = MemoryDisk()
    first = disk.open_log(tools.name, tools.config())
    assert disk.open_log(tools.name, tools.config()) is first
    assert disk.existing_partitions() == [tools.name]


def test_log_start_survives_by_its_checkpoint(tools: type[Tools]) -> None:
    """A checkpointed log start survives a restart."""
    disk = MemoryDisk()
    log = tools.fill(disk.open_log(tools.name, tools.config()), 5)
    log.update_high_watermark(5)
    log.maybe_increment_log_start_offset(3)
    disk.checkpoint_log_offsets()
    disk.kill()
    log = disk.open_log(tools.name, tools.config())
    assert (log.log_start_offset, log.high_watermark, log.epochs) == (3, 3, ((0, 3),))
    log.maybe_increment_log_start_offset(3)
    disk.kill()
    assert disk.open_log(tools.name, tools.config()).log_start_offset == 3


def test_log_that_ends_below_its_start_is_emptied(tools: type[Tools]) -> None:
    """DP-114: a recovered end below the log start leaves an empty log at the log start."""
    disk = MemoryDisk()
    log = tools.fill(disk.open_log(tools.name, tools.config()), 2)
    log.flush()
    tools.fill(log, 6)
    log.update_high_watermark(8)
    log.maybe_increment_log_start_offset(5)
    disk.checkpoint_log_offsets()
    disk.power_off()
    log = disk.open_log(tools.name, tools.config())
    assert (log.log_start_offset, log.log_end_offset, log.size_in_bytes) == (5, 5, 0)
    assert log.epochs == ()


def test_high_watermarks_are_checkpointed_per_topic(tools: type[Tools]) -> None:
    """DP-49: each run writes the given high watermarks and leaves those of other topics
    unchanged."""
    disk = MemoryDisk()
    first, second = TopicPartition("a", 0), TopicPartition("b", 0)
    assert disk.read_high_watermarks() == {}
    disk.checkpoint_high_watermarks({first: 0, second: 7})
    disk.checkpoint_high_watermarks({first: 5, second: 7})
    disk.kill()
    assert disk.read_high_watermarks() == {first: 5, second: 7}


def test_deleted_log_leaves_nothing(tools: type[Tools]) -> None:
    """Deleting removes records, epochs and checkpoint entries."""
    disk = MemoryDisk()
    tools.fill(disk.open_log(tools.name, tools.config()), 2)
    disk.checkpoint_high_watermarks({tools.name: 2})
    disk.delete_log(tools.name)
    disk.delete_log(tools.name)
    assert (disk.existing_partitions(), disk.read_high_watermarks()) == ([], {})
    assert disk.open_log(tools.name, tools.config()).log_end_offset == 0


# -- directories ----------------------------------------------------------------------------------


def storage_error(call: Any, *arguments: Any, **more: Any) -> None:
    with pytest.raises(KafkaError) as caught:
        call(*arguments, **more)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_new_logs_go_to_the_emptiest_directory(tools: type[Tools]) -> None:
    """Partitions spread over the log directories."""
    disk = MemoryDisk(("one", "two"))
    logs = [disk.open_log(TopicPartition("t", n), tools.config()) for n in range(4)]
    assert [log.directory for log in logs] == ["one", "two", "one", "two"]
    assert disk.directory_of(TopicPartition("t", 1)) == "two"


def test_failed_directory_takes_its_logs_along(tools: type[Tools]) -> None:
    """Logs in a failed directory raise KAFKA_STORAGE_ERROR; logs in other directories work on."""
    disk = MemoryDisk(("one", "two"))
    names = [TopicPartition("t", n) for n in range(2)]
    failed, healthy = (tools.fill(disk.open_log(name, tools.config()), 1) for name in names)
    disk.checkpoint_high_watermarks({names[0]: 1, names[1]: 1})
    disk.fail("one")
    assert disk.offline_dirs == ("one",)
    storage_error(append_as_leader, failed, tools.data(b"v"), 0, tools.now_ms)
    storage_error(append_as_follower, failed, [tools.batch_at(1)])
    storage_error(failed.read, 0, 100, 1)
    storage_error(failed.truncate_to, 0)
    storage_error(failed.roll)
    storage_error(disk.delete_log, names[0])
    tools.fill(healthy, 1)
    assert disk.existing_partitions() == [names[1]]
    assert disk.read_high_watermarks() == {names[1]: 1}
    storage_error(disk.open_log, TopicPartition("t", 9), tools.config(), is_new=False)
    assert disk.open_log(TopicPartition("t", 9), tools.config()).directory == "two"


def test_a_repaired_directory_has_its_logs_after_a_restart(tools: type[Tools]) -> None:
    """After a repair and a restart the logs are found again."""
    disk = MemoryDisk()
    tools.fill(disk.open_log(tools.name, tools.config()), 2)
    disk.fail()
    disk.kill()
    storage_error(disk.open_log, tools.name, tools.config())
    storage_error(disk.open_log, TopicPartition("t", 1), tools.config())
    disk.repair()
    assert disk.open_log(tools.name, tools.config()).log_end_offset == 2


def test_unknown_directories_are_named(tools: type[Tools]) -> None:
    """A wrong directory is a usage error that lists the right ones."""
    with pytest.raises(UsageError, match="the disk has one, two"):
        MemoryDisk(("one", "two")).fail("three")
    with pytest.raises(UsageError, match="at least one"):
        MemoryDisk(())


def test_meta_properties(tools: type[Tools]) -> None:
    """Broker and cluster id are kept in every directory."""
    disk = MemoryDisk(("one", "two"))
    assert disk.read_meta_properties() == {}
    disk.write_meta_properties({"broker.id": "3"})
    disk.kill()
    assert disk.read_meta_properties("two") == {"broker.id": "3"}


def test_empty_log_is_small(tools: type[Tools]) -> None:
    """A log without records, its storage included, costs less than one kilobyte."""
    import tracemalloc

    from fakekafka.protocol.versions import behaviour
    from fakekafka.replication.log.settings import LogSettings

    settings = LogSettings(tools.config(), behaviour("3.9"))
    directory = LogDirectory("memory")
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        logs = [Log(tools.name, settings, None, LogStorage(directory)) for _ in range(200)]
        for log in logs:
            log.assign_epoch_start_offset(0, 0)
        used = (tracemalloc.get_traced_memory()[0] - before) / len(logs)
    finally:
        tracemalloc.stop()
    assert used < 1000


def test_replicas_share_their_bytes(tools: type[Tools]) -> None:
    """Three replicas of 4 KB batches cost at most 1.1 times the bytes stored once."""
    import tracemalloc

    data = tools.data(b"x" * 4000)
    logs = [tools.log() for _ in range(3)]
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(500):
            batches = append_as_leader(logs[0], data, 0, tools.now_ms).batches
            for log in logs[1:]:
                append_as_follower(log, batches)
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert used <= 1.1 * 500 * len(data)
