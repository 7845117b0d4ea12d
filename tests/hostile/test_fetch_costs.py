"""Large fetches do not block the event loop for long."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka import Cluster
from fakekafka.actors.broker.handlers import data as handlers
from fakekafka.protocol.host import sleep
from fakekafka.protocol.records import batch as batches
from fakekafka.protocol.records import compression as codecs
from fakekafka.protocol.records.batch import RecordBatch, build_batch
from fakekafka.protocol.records.format import Record
from fakekafka.protocol.records.legacy import down_converted_batch, parse_message
from fakekafka.replication.leader import down_conversion
from fakekafka.replication.log.leader_append import append_as_leader
from fakekafka.replication.log.lookups import offset_for_timestamp
from fakekafka.tests.support.hostile_payloads import produce
from fakekafka.tests.support.logs import NOW_MS, Tools
from fakekafka.tests.support.timed_answers import answer
from fakekafka.tests.support.wire_trees import frame


def old_fetch(topic: str) -> bytes:
    partition = {"partition": 0, "partitionMaxBytes": 1 << 20}
    return frame(1, 2, {"topics": [{"topic": topic, "partitions": [partition]}]})


def test_a_long_down_conversion_does_not_delay_other_requests(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """55 MB of small records took 10 s in one piece; the answer is the same in parts."""
    cluster.create_topic("old")
    for number in range(4):
        records = [Record(0, NOW_MS, b"k", b"%d" % number)]
        answer(cluster, produce("old", [build_batch(records)]))
    pauses: list[float] = []

    async def pause(host: Any, delay_ms: float) -> None:
        pauses.append(delay_ms)
        await sleep(host, delay_ms)

    monkeypatch.setattr(handlers, "sleep", pause)
    at_once, _ = answer(cluster, old_fetch("old"))
    assert pauses == []
    monkeypatch.setattr(down_conversion, "_STEP_BYTES", 50)
    in_steps, _ = answer(cluster, old_fetch("old"))
    assert in_steps == at_once
    assert pauses == [0, 0]
    found: list[bytes | None] = []
    position = at_once.index(b"old") + 3 + 4 + 4 + 2 + 8 + 4
    while (message := parse_message(at_once, position)) and len(found) < 4:
        found.append(message.value)
        position += message.size
    assert found == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("codec", [codecs.NONE, codecs.GZIP])
def test_no_record_is_decoded_for_old_consumers_or_for_its_time(
    monkeypatch: pytest.MonkeyPatch, codec: int
) -> None:
    """Decoding 138,000 records took 0.6 s, both for a conversion and to find one by its time."""
    given = [Record(at, NOW_MS + at, b"k" if at % 2 else None, b"v") for at in range(300)]
    log = Tools.log()
    append_as_leader(log, build_batch(given, compression=codec), 0, NOW_MS)
    (stored,) = log.batches()

    def refuse(*_: Any) -> Any:
        raise AssertionError("a record was decoded")

    with monkeypatch.context() as patched:
        patched.setattr(batches, "decode_records", refuse)
        converted = down_converted_batch(stored, 1, 100)[0]
        found = offset_for_timestamp(log, NOW_MS + 250)
    assert found is not None
    assert (found.offset, found.timestamp) == (250, NOW_MS + 250)
    message = parse_message(converted, 0)
    assert message is not None
    assert message.offset == (299 if codec else 100)
    assert isinstance(stored, RecordBatch)
