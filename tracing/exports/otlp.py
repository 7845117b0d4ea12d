"""OTLP: client operations as OpenTelemetry traces in JSON lines.

Each operation of a client is a trace; its first span is the operation itself, and every message
that belongs to it is a span from its sending to its arrival. Changes of state are events of a span.
A message caused by another operation (the response to a produce request that a fetch completed) is
a child of its own operation, with a link to the other operation's span. The first half of a trace's
id identifies the run, so the operations of two runs stay apart in one store.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status, TracesData

from ...protocol.errors import UsageError
from ..events import Event, jsonable
from ..text import summary
from ..trace import StoredTrace

_SPANS_PER_LINE = 500
_EVENTS_REMEMBERED_MAX = 100_000
"""Number of recent events whose span is remembered. A message caused by an older event is a child
of the operation itself."""
_IDS = {"traceId": 16, "spanId": 8, "parentSpanId": 8}


def write(trace: StoredTrace, stream: BinaryIO) -> None:
    """Write lines of at most 500 spans, as OpenTelemetry's file exporter does.

    Raises ``UsageError`` for a trace without client operations, which would give an empty file.
    """
    if "client_invoke" not in trace.counts()[0]:
        raise UsageError(
            "this trace has no client operations, and an OpenTelemetry trace shows what happened "
            "because of one: only modelled clients record them (a workload's, "
            "Simulation.producer() and consumer()); `--to perfetto` shows all messages"
        )
    unwritten: list[tuple[str, Span]] = []
    for actor, span in _spans(trace):
        unwritten.append((actor, span))
        if len(unwritten) == _SPANS_PER_LINE:
            stream.write(_line(unwritten))
            unwritten.clear()
    if unwritten:
        stream.write(_line(unwritten))


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
            for link in span.get("links", ()):
                _write_ids(link)
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"


def _write_ids(span: dict[str, Any]) -> None:
    """Convert ids from base64, as in the JSON of protocol buffers, to OTLP's hexadecimal."""
    for name in _IDS:
        if name in span:
            span[name] = base64.b64decode(span[name]).hex()


class _EventSpan(NamedTuple):
    """The span that an event belongs to, the span's operation, and the time of the event."""

    span: int
    op: int
    time_us: int


class _Spans:
    """The spans that recent events belong to."""

    def __init__(self) -> None:
        self._spans: OrderedDict[int, _EventSpan] = OrderedDict()

    def of(self, cause: int | None) -> _EventSpan | None:
        """Return the span of a cause; None if it belongs to no operation or is forgotten."""
        return None if cause is None else self._spans.get(cause)

    def put(self, seq: int, span_of_cause: _EventSpan) -> None:
        self._spans[seq] = span_of_cause
        if len(self._spans) > _EVENTS_REMEMBERED_MAX:
            self._spans.popitem(last=False)


class _Run(NamedTuple):
    """The values that all spans of a run share."""

    number: bytes
    """First half of the ids of the run's traces."""
    epoch_ns: int

    def trace_id(self, op: int) -> bytes:
        """Return the id of an operation's trace."""
        return self.number + (op + 1).to_bytes(_IDS["traceId"] - len(self.number))


def _read_run(trace: StoredTrace) -> _Run:
    header = json.dumps(jsonable(trace.header), sort_keys=True)
    identity = f"{trace.fingerprint or ''} {header}".encode()
    number = hashlib.blake2b(identity, digest_size=_IDS["traceId"] // 2).digest()
    return _Run(number, int(trace.header.get("virtual_epoch_ms") or 0) * 1_000_000)


def _spans(trace: StoredTrace) -> Iterator[tuple[str, Span]]:
    run = _read_run(trace)
    spans = _Spans()
    open_operations: dict[int, Event] = {}
    last_us = 0
    for event in trace.events():
        op, last_us = event.op, event.time_us
        if op is None:
            continue
        if event.kind == "client_invoke":
            open_operations[op] = event
        span_of_cause = spans.of(event.cause) or _EventSpan(op, op, event.time_us)
        is_arrival = event.kind == "deliver"
        if is_arrival:
            spans.put(event.seq, _EventSpan(event.seq, op, event.time_us))
            yield event.actor, _message(event, op, span_of_cause, run)
        else:
            spans.put(event.seq, span_of_cause._replace(time_us=event.time_us))
        if event.kind in ("client_ok", "client_fail"):
            begun = open_operations.pop(op, None)
            if begun is not None:
                yield begun.actor, _operation(begun, event, event.time_us, run)
    for begun in open_operations.values():
        yield begun.actor, _operation(begun, None, last_us, run)


def _span(op: int, span: int, name: str, start_us: int, end_us: int, run: _Run) -> Span:
    return Span(
        trace_id=run.trace_id(op),
        span_id=_span_id(span),
        name=name,
        start_time_unix_nano=run.epoch_ns + start_us * 1000,
        end_time_unix_nano=run.epoch_ns + end_us * 1000,
    )


def _span_id(span: int) -> bytes:
    return (span + 1).to_bytes(_IDS["spanId"])


def _operation(begun: Event, ended: Event | None, end_us: int, run: _Run) -> Span:
    op = begun.seq
    span = _span(op, op, begun.type or "operation", begun.time_us, end_us, run)
    span.kind = Span.SPAN_KIND_CLIENT
    if ended is not None:
        failed = ended.kind == "client_fail"
        span.status.code = Status.STATUS_CODE_ERROR if failed else Status.STATUS_CODE_OK
        span.status.message = (ended.why or "") if failed else ""
    return span


def _message(event: Event, op: int, span_of_cause: _EventSpan, run: _Run) -> Span:
    span = _span(op, event.seq, event.type or "message", span_of_cause.time_us, event.time_us, run)
    span.parent_span_id = _span_id(span_of_cause.span if span_of_cause.op == op else op)
    if span_of_cause.op != op:
        span.links.add(
            trace_id=run.trace_id(span_of_cause.op), span_id=_span_id(span_of_cause.span)
        )
    span.kind = Span.SPAN_KIND_CONSUMER
    for key, text in (("from", event.peer or ""), ("fields", summary(event))):
        span.attributes.add(key=key).value.string_value = text
    for path, old, new in event.delta:
        change = span.events.add(name=path, time_unix_nano=run.epoch_ns + event.time_us * 1000)
        for key, value in (("old", old), ("new", new)):
            text = json.dumps(jsonable(value), ensure_ascii=False)
            change.attributes.add(key=key).value.string_value = text
    return span
