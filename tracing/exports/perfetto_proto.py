"""Perfetto: a track for each actor, flows for messages, counters for logs.

Handling takes no virtual time, so each event is an instant; an operation of a client is a slice.
"""

from __future__ import annotations

from typing import Any, BinaryIO

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket, TrackEvent
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

from ..events import Event
from ..text import summary
from ..trace import StoredTrace

_SEQUENCE = 1
_STARTS_FLOW = frozenset({"send", "release"})
_ENDS_FLOW = frozenset({"deliver", "drop"})
_COUNTERS = frozenset({"log_end_offset", "high_watermark", "isr"})
_CLIENT_ENDS = frozenset({"client_ok", "client_fail"})


def write(trace: StoredTrace, stream: BinaryIO) -> None:
    _Export(stream).write(trace)


class _Export:
    """Writes the packets of one trace while its events are read."""

    def __init__(self, stream: BinaryIO) -> None:
        self._builder = StreamingTraceProtoBuilder(stream)
        self._tracks: dict[tuple[str, Any], int] = {}

    def write(self, trace: StoredTrace) -> None:
        open_operations: dict[int, str] = {}
        last_us = 0
        for event in trace.events():
            last_us = event.time_us
            if event.kind == "client_invoke":
                open_operations[event.seq] = event.actor
                self._operation(event.actor, event.seq, last_us, event.type or "operation")
            self._instant(event)
            if event.kind in _CLIENT_ENDS and event.op in open_operations:
                self._operation(open_operations.pop(event.op), event.op, last_us, None)
            if event.delta:
                self._counters(event)
        for op, actor in open_operations.items():
            self._operation(actor, op, last_us, None)

    def _packet(self, time_us: int, track: int, kind: Any) -> Any:
        packet = self._builder.create_packet()
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.timestamp = time_us * 1000
        packet.track_event.type = kind
        packet.track_event.track_uuid = track
        return packet

    def _track(self, key: tuple[str, Any], name: str, parent: int | None, kind: str = "") -> int:
        """Return the number of a track, which is declared on first use."""
        uuid = self._tracks.get(key)
        if uuid is not None:
            return uuid
        uuid = self._tracks[key] = len(self._tracks) + 1
        packet = self._builder.create_packet()
        packet.trusted_packet_sequence_id = _SEQUENCE
        if uuid == 1:
            packet.sequence_flags = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        descriptor = packet.track_descriptor
        descriptor.uuid = uuid
        descriptor.name = name
        if parent is not None:
            descriptor.parent_uuid = parent
        if kind == "counter":
            descriptor.counter.SetInParent()
        self._builder.write_packet(packet)
        return uuid

    def _actor(self, name: str) -> int:
        return self._track(("actor", name), name, None)

    def _instant(self, event: Event) -> None:
        packet = self._packet(event.time_us, self._actor(event.actor), TrackEvent.TYPE_INSTANT)
        track_event = packet.track_event
        track_event.name = f"{event.kind} {event.type}" if event.type else event.kind
        track_event.categories.append(event.kind)
        if event.message_id and event.kind in _STARTS_FLOW:
            track_event.flow_ids.append(event.message_id)
        elif event.message_id and event.kind in _ENDS_FLOW:
            track_event.terminating_flow_ids.append(event.message_id)
        notes: list[tuple[str, str | int | None]] = [
            ("seq", event.seq),
            ("cause", event.cause),
            ("op", event.op),
            ("peer", event.peer),
            ("event", summary(event)),
            *((path, f"{old} -> {new}") for path, old, new in event.delta),
        ]
        for name, value in notes:
            if value is None:
                continue
            note = track_event.debug_annotations.add(name=name)
            if isinstance(value, int):
                note.int_value = value
            else:
                note.string_value = value
        self._builder.write_packet(packet)

    def _operation(self, actor: str, op: int, time_us: int, name: str | None) -> None:
        """Begin or end an operation's slice; each has a track of its own, as operations overlap."""
        track = self._track(("op", op), "operations", self._actor(actor))
        kind = TrackEvent.TYPE_SLICE_END if name is None else TrackEvent.TYPE_SLICE_BEGIN
        packet = self._packet(time_us, track, kind)
        if name is not None:
            packet.track_event.name = name
        else:
            del self._tracks["op", op]
            self._tracks["ended", op] = track
        self._builder.write_packet(packet)

    def _counters(self, event: Event) -> None:
        for path, _, new in event.delta:
            leaf = path.rpartition("/")[2]
            if leaf not in _COUNTERS or (leaf == "isr" and not isinstance(new, list)):
                continue
            value = len(new) if isinstance(new, list) else new
            if not isinstance(value, int):
                continue
            actor, _, name = path.partition("/")
            track = self._track(("counter", path), name, self._actor(actor), "counter")
            packet = self._packet(event.time_us, track, TrackEvent.TYPE_COUNTER)
            packet.track_event.counter_value = value
            self._builder.write_packet(packet)
