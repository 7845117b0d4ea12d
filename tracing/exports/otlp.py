"""OTLP: what happened to each operation of a client, as OpenTelemetry traces in JSON lines.

An operation of a client is a trace; its first span is the operation itself, and every message that
belongs to it is a span from its sending to its arrival. Changes of state are events of the span.
"""

from __future__ import annotations

import base64
import json
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, BinaryIO

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status, TracesData

from ..events import Event, jsonable
from ..text import summary
from ..trace import StoredTrace

_SPANS_PER_LINE = 500
_REMEMBERED = 100_000
"""Events whose span is known; what is caused by an older one hangs on the operation itself."""
_IDS = {"traceId": 16, "spanId": 8, "parentSpanId": 8}


def write(trace: StoredTrace, stream: BinaryIO) -> None:
    """Write lines of at most 500 spans, as OpenTelemetry's file exporter does."""
    waiting: list[tuple[str, Span]] = []
    for actor, span in _spans(trace):
        waiting.append((actor, span))
        if len(waiting) == _SPANS_PER_LINE:
            stream.write(_line(waiting))
            waiting.clear()
    if waiting:
        stream.write(_line(waiting))


def _line(spans: list[tuple[str, Span]]) -> bytes:
    by_actor: dict[str, list[Span]] = {}
    for actor, span in spans:
        by_actor.setdefault(actor, []).append(span)
    data = TracesData()
    for actor, own in by_actor.items():
        resource = data.resource_spans.add()
        attribute = resource.resource.attributes.add(key="service.name")
        attribute.value.string_value = actor
        scope = resource.scope_spans.add()
        scope.scope.name = "fakekafka"
        scope.spans.extend(own)
    value = MessageToDict(data, use_integers_for_enums=True)
    for resource_spans in value["resourceSpans"]:
        for span in resource_spans["scopeSpans"][0]["spans"]:
            _write_ids(span)
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"


def _write_ids(span: dict[str, Any]) -> None:
    """OTLP writes ids in hexadecimal, where JSON of protocol buffers has base64."""
    for name in _IDS:
        if name in span:
            span[name] = base64.b64decode(span[name]).hex()


class _Spans:
    """Which span each recent event belongs to."""

    def __init__(self) -> None:
        self._spans: OrderedDict[int, tuple[int, int]] = OrderedDict()

    def of(self, cause: int | None, op: int) -> tuple[int, int | None]:
        """The span of a cause and when the cause was; the operation's if it is forgotten."""
        return self._spans.get(-1 if cause is None else cause, (op, None))

    def put(self, seq: int, span: int, time_us: int) -> None:
        self._spans[seq] = (span, time_us)
        if len(self._spans) > _REMEMBERED:
            self._spans.popitem(last=False)


def _spans(trace: StoredTrace) -> Iterator[tuple[str, Span]]:
    epoch_ns = int(trace.header.get("virtual_epoch_ms") or 0) * 1_000_000
    spans = _Spans()
    under_way: dict[int, Event] = {}
    last_us = 0
    for event in trace.events():
        op, last_us = event.op, event.time_us
        if op is None:
            continue
        if event.kind == "client_invoke":
            under_way[op] = event
        parent, sent_us = spans.of(event.cause, op)
        is_arrival = event.kind == "deliver"
        spans.put(event.seq, event.seq if is_arrival else parent, event.time_us)
        if is_arrival:
            start_us = event.time_us if sent_us is None else sent_us
            yield event.actor, _message(event, op, parent, start_us, epoch_ns)
        elif event.kind in ("client_ok", "client_fail"):
            begun = under_way.pop(op, None)
            if begun is not None:
                yield begun.actor, _operation(begun, event, event.time_us, epoch_ns)
    for begun in under_way.values():
        yield begun.actor, _operation(begun, None, last_us, epoch_ns)


def _span(op: int, span: int, name: str, start_us: int, end_us: int, epoch_ns: int) -> Span:
    return Span(
        trace_id=(op + 1).to_bytes(_IDS["traceId"]),
        span_id=(span + 1).to_bytes(_IDS["spanId"]),
        name=name,
        start_time_unix_nano=epoch_ns + start_us * 1000,
        end_time_unix_nano=epoch_ns + end_us * 1000,
    )


def _operation(begun: Event, ended: Event | None, end_us: int, epoch_ns: int) -> Span:
    op = begun.seq
    span = _span(op, op, begun.type or "operation", begun.time_us, end_us, epoch_ns)
    span.kind = Span.SPAN_KIND_CLIENT
    if ended is not None:
        failed = ended.kind == "client_fail"
        span.status.code = Status.STATUS_CODE_ERROR if failed else Status.STATUS_CODE_OK
        span.status.message = (ended.why or "") if failed else ""
    return span


def _message(event: Event, op: int, parent: int, start_us: int, epoch_ns: int) -> Span:
    span = _span(op, event.seq, event.type or "message", start_us, event.time_us, epoch_ns)
    span.parent_span_id = (parent + 1).to_bytes(_IDS["parentSpanId"])
    span.kind = Span.SPAN_KIND_CONSUMER
    for key, text in (("from", event.peer or ""), ("fields", summary(event))):
        span.attributes.add(key=key).value.string_value = text
    for path, old, new in event.delta:
        change = span.events.add(name=path, time_unix_nano=epoch_ns + event.time_us * 1000)
        for key, value in (("old", old), ("new", new)):
            text = json.dumps(jsonable(value), ensure_ascii=False)
            change.attributes.add(key=key).value.string_value = text
    return span
