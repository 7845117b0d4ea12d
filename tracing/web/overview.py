"""The page's overview of the whole run: marked events, leaderships, logs over time."""

from __future__ import annotations

import re
from base64 import b64encode
from heapq import merge
from typing import Any

from ..chunks import in_bitmap
from ..events import KIND_CODES, KINDS, Event, jsonable
from ..reading.state_history import changes
from ..schema import ENUM_NAMES
from ..trace import StoredTrace

_MARKED = tuple(KIND_CODES[k] for k in ("crash", "restart", "fault", "note", "step", "expire"))
MARKS_MAX = 20_000
BUCKETS = 240
"""Number of moments for which the history of the logs is given."""
PARTITIONS_MAX = 60
_REPLICA_PATH = re.compile(r"(broker-(\d+))/(.+-\d+)/(log_end_offset|high_watermark)")
_ROLE_PATH = re.compile(r"broker-(\d+)/(.+-\d+)/role")
_DELETION_PATH = re.compile(r"(zk-\d+)/znodes/admin/delete_topics/([^/]+)")
_BAND_PATTERNS = "zk-*/znodes/admin/delete_topics/*", "broker-*/*/role"
DELETED = -1
"""Stands for the leader of a partition whose topic is deleted or being deleted, so that the page
does not show the leader as missing."""
_SHORT = {"log_end_offset": "leo", "high_watermark": "hw"}


def overview(trace: StoredTrace) -> dict[str, Any]:
    """Return marks, bands of leadership by partition, and the history of every replica's log."""
    return {
        "marks": _marks(trace),
        "bands": _bands(trace),
        "history": _history(trace),
    }


def _marks(trace: StoredTrace) -> list[Any]:
    """Return [event, microseconds, kind, actor, text] of marked events, up to ``MARKS_MAX``."""
    found: list[Any] = []
    for index, info in enumerate(trace.chunks):
        if not any(in_bitmap(info.kinds, code) for code in _MARKED):
            continue
        for raw in trace.raw_events(index):
            if raw[2] in _MARKED:
                event = trace.event(raw[0])
                found.append([event.seq, event.time_us, event.kind, event.actor, event.why or ""])
        if len(found) > MARKS_MAX:
            break
    return found[:MARKS_MAX]


def _bands(trace: StoredTrace) -> dict[str, list[Any]]:
    """Return partition to a list of [from event, microseconds, leader or None or ``DELETED``]: the
    leader according to the brokers. The partitions with the most records come first."""
    found: dict[str, list[Any]] = {}
    leading: dict[str, int] = {}
    deleting: dict[str, set[str]] = {}  # topic to the ZooKeeper servers that have its deletion

    def band(event: Event, partition: str) -> None:
        bands = found.setdefault(partition, [])
        leader = leading.get(partition)
        if leader is None and deleting.get(partition.rpartition("-")[0]):
            leader = DELETED
        if bands and bands[-1][0] == event.seq:
            bands.pop()
        if not bands or bands[-1][2] != leader or leader not in (None, DELETED):
            bands.append([event.seq, event.time_us, leader])

    change_streams = [changes(trace, pattern) for pattern in _BAND_PATTERNS]
    for event, path, _, new in merge(*change_streams, key=lambda change: change.event.seq):
        match = _DELETION_PATH.fullmatch(path)
        if match is not None:
            server, topic = match[1], match[2]
            if new is None:
                deleting.get(topic, set()).discard(server)
                continue
            deleting.setdefault(topic, set()).add(server)
            for partition in [name for name in found if name.rpartition("-")[0] == topic]:
                if partition not in leading:
                    band(event, partition)
            continue
        match = _ROLE_PATH.fullmatch(path)
        if match is None:
            continue
        broker, partition = int(match[1]), match[2]
        if new == "leader":
            leading[partition] = broker
        elif leading.get(partition) == broker:
            del leading[partition]
        else:
            continue
        band(event, partition)
    load = _load(trace)
    return dict(
        sorted(found.items(), key=lambda item: (-load.get(item[0], 0), *_partition_key(item[0])))
    )


def _load(trace: StoredTrace) -> dict[str, int]:
    """Return partition to the number of records appended to its logs, all replicas together."""
    numbers = {}
    for number, path in enumerate(trace.strings):
        match = _REPLICA_PATH.fullmatch(path)
        if match is not None and match[4] == "log_end_offset":
            numbers[number] = match[3]
    load: dict[str, int] = {}
    for index, info in enumerate(trace.chunks):
        if not info.paths:
            continue
        for _, number, old, new in trace.changes_in(index):
            partition = numbers.get(number)
            if partition is not None and isinstance(old, int) and isinstance(new, int):
                load[partition] = load.get(partition, 0) + max(new - old, 0)
    return load


def _partition_key(partition: str) -> tuple[bool, str, int]:
    topic, _, number = partition.rpartition("-")
    return topic.startswith("__"), topic, int(number)


def _history(trace: StoredTrace) -> dict[str, Any]:
    """Return, by partition and broker, the log end and high watermark as [[moment, value], ...].

    Moments without a change are left out; a value is None while the replica is down.
    """
    numbers = {}
    for number, path in enumerate(trace.strings):
        match = _REPLICA_PATH.fullmatch(path)
        if match is not None:
            numbers[number] = (match[3], int(match[2]), _SHORT[match[4]])
    load = _load(trace)
    partitions = sorted(
        {partition for partition, _, _ in numbers.values()},
        key=lambda partition: (-load.get(partition, 0), *_partition_key(partition)),
    )
    shown = frozenset(partitions[:PARTITIONS_MAX])
    first_us = trace.chunks[0].time_first_us if trace.chunks else 0
    width_us = max(trace.duration_us / BUCKETS, 1)
    found: dict[str, dict[str, dict[str, list[Any]]]] = {}
    for index, info in enumerate(trace.chunks):
        if not info.paths:
            continue
        for raw in trace.raw_events(index):
            for number, _, new in raw[10]:
                place = numbers.get(number)
                if place is None or place[0] not in shown:
                    continue
                partition, broker, name = place
                bucket = min(int((raw[1] / 1000 - first_us) / width_us), BUCKETS)
                series = found.setdefault(partition, {}).setdefault(str(broker), {})
                points = series.setdefault(name, [])
                if points and points[-1][0] == bucket:
                    points[-1][1] = new
                else:
                    points.append([bucket, new])
    return {"buckets": BUCKETS, "width_us": width_us, "first_us": first_us, "logs": found}


def index_of(trace: StoredTrace) -> dict[str, Any]:
    """Return what the page needs to know before it reads any chunk."""

    def bits(value: bytes) -> str:
        return b64encode(value).decode()

    return {
        "kinds": list(KINDS),
        "strings": trace.strings,
        "schema": {name: list(fields) for name, fields in trace.schema.types.items()},
        "enums": {
            name: {str(code): text for code, text in names.items()}
            for name, names in ENUM_NAMES.items()
        },
        "actors": trace.actors(),
        "snapshot_seqs": trace.snapshot_seqs,
        "chunks": [
            {
                "first": info.first_seq,
                "last": info.last_seq,
                "from_us": info.time_first_us,
                "to_us": info.time_last_us,
                "events": info.events,
                "actors_in": bits(info.actors),
                "types_in": bits(info.types),
                "kinds_in": bits(info.kinds),
                "paths_in": bits(info.paths),
            }
            for info in trace.chunks
        ],
        "header": {
            name: jsonable(trace.header.get(name))
            for name in ("mode", "seed", "kafka_version", "reproduce", "part")
        },
        "title": title_of(trace.header),
        "fingerprint": trace.fingerprint,
        "problem": trace.problem,
    }


def title_of(header: dict[str, Any]) -> str:
    """Return a title for the run: the name of its scenario, Kafka's version and the seed."""
    name = header.get("scenario_name") or header.get("name")
    version, seed = header.get("kafka_version"), header.get("seed")
    words = [str(name or "run")]
    words += [f"Kafka {version}"] if version else []
    words += [f"seed {seed}"] if seed is not None else []
    return " · ".join(words)
