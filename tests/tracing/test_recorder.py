"""The recorder, its payloads and its fingerprints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fakekafka.protocol.data import FetchPartitionResponse, FetchResponse
from fakekafka.protocol.errors import ErrorCode, UsageError
from fakekafka.protocol.records.batch import RecordBatch, build_batch
from fakekafka.protocol.records.format import Record
from fakekafka.tests.support.present import present
from fakekafka.tests.support.traces import (
    ORDERS_0,
    Scribe,
    acknowledge,
    fetch,
    header,
    leader_and_isr,
    produce,
    record_failover,
    record_fetches,
)
from fakekafka.tracing.events import KINDS, Event, Truncated
from fakekafka.tracing.fingerprint import Fingerprint
from fakekafka.tracing.recording.locked_recorder import LockedRecorder
from fakekafka.tracing.recording.recorder import RECORD_BYTES_LIMIT, Recorder
from fakekafka.tracing.recording.writer import TraceWriter
from fakekafka.tracing.trace_file import TraceReader
from fakekafka.zkfake.messages import (
    CheckRequest,
    ClientPacket,
    CreateRequest,
    EventType,
    MultiRequest,
    ServerPacket,
    WatchEvent,
    ZkCode,
    ZkResponse,
)


def one_event(message: object, record_bytes_limit: int = RECORD_BYTES_LIMIT) -> Event:
    recorder = Recorder(record_bytes_limit=record_bytes_limit)
    recorder.event(5, "send", "a", "b", message, 1, None)
    return recorder.events[0]


def test_seqs_are_dense_from_zero() -> None:
    """Events of every kind are numbered consecutively from 0."""
    recorder = Recorder()
    assert [recorder.event(0, kind, "a", None, None, None, None) for kind in KINDS] == list(
        range(len(KINDS))
    )
    assert len(recorder) == len(KINDS)
    assert [event.kind for event in recorder.events] == list(KINDS)


def test_unknown_kind_is_refused() -> None:
    """The error for an unknown kind of event lists the kinds."""
    with pytest.raises(UsageError, match="'sent' is not an event kind; use one of send, deliver"):
        Recorder().event(0, "sent", "a", None, None, None, None)


def test_payload_has_fields_in_slot_order_and_names_on_reading() -> None:
    """Nested messages are lists in the file and dictionaries for readers."""
    event = one_event(leader_and_isr(2, 5, (2, 3), controller_epoch=4))
    assert present(event.payload)[:2] == [3, 4]
    assert event.fields["partition_states"][0]["isr"] == [2, 3]
    assert event.epochs == [4, 5, 5]


def test_error_codes_are_read_by_name_and_partitions_as_one_word() -> None:
    """Readers get the names of error codes and partitions."""
    event = one_event(acknowledge(-1, ErrorCode.NOT_ENOUGH_REPLICAS))
    entry = event.fields["partitions"][0]
    assert entry["error"] == "NOT_ENOUGH_REPLICAS"
    assert entry["topic_partition"] == "orders-0"


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_long_bytes_are_cut_and_keep_their_length(kind: type) -> None:
    """Bytes beyond the limit are cut, so that no trace holds whole records."""
    event = one_event(produce(kind(b"ab" * 500)), record_bytes_limit=4)
    assert event.fields["partitions"][0]["records"] == Truncated(1000, b"abab")


def test_short_bytes_are_kept_whole() -> None:
    """Bytes within the limit are kept whole and unmarked."""
    assert one_event(produce(b"abc")).fields["partitions"][0]["records"] == b"abc"


def test_record_batch_is_offsets_epoch_and_size() -> None:
    """A stored batch is recorded as base offset, last offset, leader epoch and size."""
    data = build_batch([Record(0, 1000, None, b"v", ())])
    batch = RecordBatch.from_bytes(data)
    entry = FetchPartitionResponse(ORDERS_0, ErrorCode.NONE, 1, records=(batch,))
    event = one_event(FetchResponse(ErrorCode.NONE, 0, (entry,)))
    stored = event.fields["partitions"][0]["records"][0]
    assert stored == {
        "base_offset": 0,
        "last_offset": 0,
        "leader_epoch": batch.partition_leader_epoch,
        "size": len(data),
    }


def test_messages_of_open_type_carry_their_type() -> None:
    """A message in a field of open type, as in a ZooKeeper packet, is recorded with its type."""
    operations = (CreateRequest("/a", b"{}"), CheckRequest("/b", 3))
    event = one_event(ClientPacket(1, 2, 3, 4, MultiRequest(operations)))
    request = event.fields["request"]
    assert request["@type"] == "MultiRequest"
    assert [operation["@type"] for operation in request["operations"]] == [
        "CreateRequest",
        "CheckRequest",
    ]


def test_znode_data_is_kept_longer_than_records() -> None:
    """Data of znodes is kept beyond the limit for records, as elections depend on it."""
    data = b'{"leader":1,"isr":[1,2,3]}' * 8
    event = one_event(ServerPacket(1, 2, 3, 4, ZkResponse(ZkCode.OK, data=data)))
    assert event.fields["response"]["data"] == data
    assert event.fields["response"]["code"] == "OK"


def test_enums_are_recorded_by_value_and_errors_by_text() -> None:
    """Enums are recorded by their values and errors by their text."""
    event = one_event(WatchEvent(1, 2, 3, EventType.NODE_DELETED, "/controller"))
    assert event.fields["type"] == "NodeDeleted"
    failed = one_event(TimeoutError("no answer"))
    assert (failed.type, failed.fields) == ("TimeoutError", {"text": "no answer"})


def test_strangers_are_recorded_without_their_identity() -> None:
    """An object without a value is recorded by its type, so that equal runs stay equal."""
    assert one_event({"x": object()}).fields == {"value": {"x": "<object>"}}
    assert one_event({"b", "a", "c"}).fields == {"value": ["a", "b", "c"]}


def test_string_message_names_the_type() -> None:
    """A message that is a string, such as a timer's name, is the type and has no payload."""
    event = one_event("Partition.shrink_isr")
    assert (event.type, event.payload, event.fields) == ("Partition.shrink_isr", None, {})


def test_state_change_joins_the_event_being_handled() -> None:
    """A state change is added to its event with the old and the new value."""
    recorder = Recorder()
    seq = recorder.event(0, "deliver", "broker-1", "b", fetch(0), 1, None)
    recorder.event(0, "send", "broker-1", "b", fetch(1), 2, seq)
    recorder.state(seq, "broker-1/orders-0/hw", 3, 4)
    recorder.state(seq, "broker-1/orders-0/isr", (1, 2), (1,))
    assert recorder.events[0].delta == [
        ("broker-1/orders-0/hw", 3, 4),
        ("broker-1/orders-0/isr", [1, 2], [1]),
    ]
    assert recorder.events[1].delta == []


def test_late_state_change_becomes_an_event_of_its_own() -> None:
    """A state change after its event was packed becomes an event of its own."""
    recorder = record_fetches(Recorder(), 1000)
    recorder.state(3, "broker-1/orders-0/hw", 3, 4)
    event = recorder.events[-1]
    assert (event.seq, event.kind, event.cause, event.actor) == (1000, "state", 3, "broker-1")
    assert event.delta == [("broker-1/orders-0/hw", 3, 4)]


def test_state_change_of_no_event_is_refused() -> None:
    """A state change of an event that is not recorded is refused."""
    with pytest.raises(UsageError, match=r"broker-1/hw for event #5, which is not recorded"):
        Recorder().state(5, "broker-1/hw", 0, 1)


def test_reading_the_fingerprint_does_not_change_it() -> None:
    """Reading the fingerprint in mid-run changes neither fingerprint nor chunks."""
    one, other = Recorder(), Recorder()
    for number in range(2500):
        for recorder in (one, other):
            recorder.event(number, "send", "a", f"b{number % 7}", fetch(number), number, None)
        if number % 333 == 0:
            one.fingerprint()
            one.outline()
            len(one.events)
    assert one.fingerprint() == other.fingerprint()
    assert one.outline() == other.outline()
    assert [c.digest for c in one.trace().chunks] == [c.digest for c in other.trace().chunks]


def test_fingerprint_sees_payloads_and_the_outline_does_not() -> None:
    """The fingerprint covers payloads; the outline covers only the order of events."""
    one, other = record_fetches(Recorder(), 50), record_fetches(Recorder(), 50, changed=7)
    assert one.fingerprint() != other.fingerprint()
    assert one.outline() == other.outline()


def test_fingerprint_sees_a_renamed_actor() -> None:
    """The fingerprint covers the text of actors' names, not their numbers."""
    one, other = Recorder(), Recorder()
    one.event(0, "spawn", "broker-1", None, None, None, None)
    other.event(0, "spawn", "broker-2", None, None, None, None)
    assert one.fingerprint() != other.fingerprint()
    assert one.outline() != other.outline()


def test_cheap_sink_gives_the_outline_of_the_recorder() -> None:
    """``Fingerprint`` gives the outline of a recorder, so a batch's run can be found in a trace."""
    cheap, full = Fingerprint(), Recorder()
    record_failover(full)
    for event in full.events:
        message: object = type(event.type, (), {})() if event.type else None
        cheap.event(
            event.time_us, event.kind, event.actor, event.peer, message, event.message_id, None
        )
    assert cheap.fingerprint() == full.outline()
    assert len(cheap) == len(full)


def test_cheap_sink_does_not_depend_on_its_buffer() -> None:
    """``Fingerprint`` does not depend on when its buffer is packed or read."""
    one, other = Fingerprint(), Fingerprint()
    for number in range(10_000):
        one.event(number, "send", "a", "b", "x", number, None)
        if number % 777 == 0:
            one.fingerprint()
        other.event(number, "send", "a", "b", "x", number, None)
    assert one.fingerprint() == other.fingerprint()


@pytest.mark.slow
def test_fingerprint_is_the_same_under_any_hash_seed() -> None:
    """Equal runs in different processes have equal fingerprints."""
    program = (
        "from fakekafka.tests.support.traces import record_failover, Recorder\n"
        "r = record_failover(Recorder())\n"
        "r.event(0, 'note', 'x', None, {'b', 'a', 'c'}, None, None)\n"
        "print(r.fingerprint(), r.outline())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(outputs) == 1


def test_ring_keeps_the_last_events_and_the_whole_fingerprint() -> None:
    """A recorder with ``keep`` keeps the last events in whole chunks."""
    ring, whole = record_fetches(Recorder(keep=1500), 5000), record_fetches(Recorder(), 5000)
    trace = ring.trace()
    assert trace.last_seq == 4999
    assert 1500 <= len(trace) <= 2500
    assert ring.fingerprint() == whole.fingerprint()


def test_ring_can_be_saved_and_read(tmp_path: Path) -> None:
    """A saved ring is readable without the dropped events, and its header names the part."""
    ring = record_fetches(Recorder(keep=1500), 5000)
    ring.save(tmp_path / "ring.fktrace", header())
    with TraceReader(tmp_path / "ring.fktrace") as trace:
        assert trace.header["part"] == f"the last events, from #{trace.first_seq} on"
        assert trace.event(4999).fields["partitions"][0]["fetch_offset"] == 4999
        assert trace.event(trace.first_seq).actor == "broker-2"


def test_saving_in_mid_run_keeps_recording(tmp_path: Path) -> None:
    """A file saved in mid-run ends at that event, and recording continues."""
    recorder = record_fetches(Recorder(), 1500)
    recorder.save(tmp_path / "a.fktrace", header())
    recorder.event(99999, "note", "a", None, None, None, None, "more")
    recorder.save(tmp_path / "b.fktrace", header())
    with TraceReader(tmp_path / "a.fktrace") as a, TraceReader(tmp_path / "b.fktrace") as b:
        assert (len(a), len(b)) == (1500, 1501)
        assert b.fingerprint == recorder.fingerprint()


def test_writer_and_memory_give_the_same_file(tmp_path: Path) -> None:
    """A file written while recording equals a file saved at the end, byte for byte."""
    streaming = Recorder(
        TraceWriter(tmp_path / "a.fktrace", {**header(), "record_bytes_limit": 64})
    )
    record_failover(record_fetches(streaming, 2500))
    streaming.close()
    saved = record_failover(record_fetches(Recorder(), 2500))
    saved.save(tmp_path / "b.fktrace", header())
    assert (tmp_path / "a.fktrace").read_bytes() == (tmp_path / "b.fktrace").read_bytes()


def test_large_events_make_small_chunks() -> None:
    """A chunk stays near 256 KiB even when single events are large."""
    recorder = Recorder(record_bytes_limit=100_000)
    for number in range(1000):
        recorder.event(number, "send", "a", "b", produce(b"z" * 5000), number, None)
    sizes = [info.length for info in recorder.trace().chunks]
    assert len(sizes) > 10
    assert max(sizes) < 300_000
    assert [event.seq for event in recorder.events] == list(range(1000))


def test_locked_recorder_takes_events_from_threads() -> None:
    """No thread's events are lost, and event numbers stay consecutive."""
    from threading import Thread

    recorder = LockedRecorder()

    def work(name: str) -> None:
        for number in range(800):
            recorder.event(number, "send", name, None, fetch(number), number, None)

    threads = [Thread(target=work, args=(f"t{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [event.seq for event in recorder.events] == list(range(3200))


def test_events_are_a_sequence() -> None:
    """Indexes, negative indexes, slices and bounds of events work as for a list."""
    events = record_fetches(Recorder(), 1200).events
    assert events[-1].seq == 1199
    assert [event.seq for event in events[998:1002]] == [998, 999, 1000, 1001]
    with pytest.raises(IndexError):
        events[1200]


def test_scribe_numbers_messages() -> None:
    """Sending and delivery of a message share its id."""
    recorder = Recorder()
    Scribe(recorder).message(0, "a", "b", fetch(0))
    assert [event.message_id for event in recorder.events] == [1, 1]
