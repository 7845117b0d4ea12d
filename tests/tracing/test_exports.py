"""Exports of traces to other tools' formats, read back as those tools read them."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakekafka import Simulation, Trace, UsageError, open_trace
from fakekafka.scenarios.file import parse_scenario
from fakekafka.scenarios.run import ScenarioRun, header_of
from fakekafka.tests.support.paths import ROOT
from fakekafka.tracing.exports import forms, mermaid, shiviz
from fakekafka.tracing.recording.recorder import Recorder
from fakekafka.tracing.slices import write_slice


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record a run with a client, whose name needs escaping, a crash and an election."""
    found = tmp_path_factory.mktemp("exports") / "run.fktrace"
    topics = {"orders": {"assignment": {0: [2, 1]}}}
    with Simulation(2, topics=topics, kafka_version="2.8") as simulation:
        producer = simulation.producer(name="p <b>;x", acks="all")
        for _ in range(3):
            producer.produce(("orders", 0), b"x")
        simulation.run_for(100)
        simulation.broker(2).kill()
        simulation.run_until(lambda: simulation.partition("orders", 0).leader == 1)
        simulation.save(found)
    return found


@pytest.fixture
def trace(path: Path) -> Iterator[Trace]:
    with open_trace(path) as opened:
        yield opened


def export(trace: Trace, form: str, directory: Path) -> bytes:
    out = directory / form
    forms.export_file(trace.stored, form, out)
    return out.read_bytes()


def lines_of(trace: Trace, form: str, directory: Path) -> list[str]:
    return export(trace, form, directory).decode().splitlines()


def test_json_lines_have_every_event_whole(trace: Trace, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in lines_of(trace, "jsonl", tmp_path)]
    assert rows == [json.loads(json.dumps(event.as_dict())) for event in trace.events]


def test_shiviz_reads_every_line_by_its_own_expression(trace: Trace, tmp_path: Path) -> None:
    text = export(trace, "shiviz", tmp_path).decode()
    expression, delimiter, log = text.split("\n", 2)
    assert expression == r"(?<event>.*)\n(?<host>\S*) (?<clock>{.*})"  # suggested by ShiViz
    assert delimiter == ""
    pattern = re.compile(expression.replace("(?<", "(?P<"))
    found = list(pattern.finditer(log))
    assert len(found) == len(trace)
    assert "".join(match[0] + "\n" for match in found) == log


def test_vector_clocks_of_shiviz_order_causes_before_effects(trace: Trace, tmp_path: Path) -> None:
    """Each host of a ShiViz log counts its events, and a cause's clock precedes its effect's."""
    log = lines_of(trace, "shiviz", tmp_path)[2:]
    clocks: dict[int, dict[str, int]] = {}
    counts: dict[str, int] = {}
    for event, line in zip(trace.events, log[1::2], strict=True):
        host, _, text = line.partition(" ")
        clock = clocks[event.seq] = json.loads(text)
        counts[host] = counts.get(host, 0) + 1
        assert clock[host] == counts[host]
        if event.cause is not None:
            cause = clocks[event.cause]
            assert all(count <= clock[name] for name, count in cause.items())
            assert cause != clock


def _part(trace: Trace, directory: Path, stop: int) -> Trace:
    found = directory / "part.fktrace"
    write_slice(trace.stored, trace.stored.events(stop - 60, stop), found, "the end")
    return open_trace(found)


def test_mermaid_draws_messages_and_escapes_its_own_syntax(trace: Trace, tmp_path: Path) -> None:
    named = next(trace.filter("kind == client_invoke")).seq
    with _part(trace, tmp_path, named + 40) as part:
        lines = lines_of(part, "mermaid", tmp_path)
        deliveries = sum(event.kind == "deliver" for event in part.events)
    assert lines[0] == "sequenceDiagram"
    assert sum("->>" in line for line in lines) == deliveries > 0
    (client,) = [line for line in lines if line.startswith("participant") and "as p " in line]
    assert client.endswith("as p #60;b#62;#59;x")
    known = {line.split()[1] for line in lines if line.startswith("participant")}
    assert {end for line in lines for end in re.findall(r"^(p\d+)(?:->>|-x)", line)} <= known


def test_mermaid_refuses_a_diagram_too_long_to_read_and_says_what_to_do(
    trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mermaid, "ARROWS_MAX", 20)
    with pytest.raises(UsageError, match=r"too long for a sequence diagram.*\n.*trace slice"):
        export(trace, "mermaid", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_shiviz_refuses_more_events_than_it_can_draw(
    trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shiviz, "EVENTS_MAX", 20)
    with pytest.raises(UsageError, match=r"ShiViz draws at most about 20.*\n.*trace slice"):
        export(trace, "shiviz", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_perfetto_has_a_track_for_each_actor_and_flows_for_messages(
    trace: Trace, tmp_path: Path
) -> None:
    trace_pb2 = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    packets = trace_pb2.Trace.FromString(export(trace, "perfetto", tmp_path)).packet
    names = {p.track_descriptor.uuid: p.track_descriptor.name for p in packets}
    assert set(trace.actors) <= set(names.values())
    assert "orders-0/high_watermark" in names.values()
    events = [p.track_event for p in packets if p.HasField("track_event")]
    instants = [e for e in events if e.type == trace_pb2.TrackEvent.TYPE_INSTANT]
    assert [(names[e.track_uuid], e.categories[0]) for e in instants] == [
        (event.actor, event.kind) for event in trace.events
    ]
    sent = {flow for e in events for flow in e.flow_ids}
    arrived = {flow for e in events for flow in e.terminating_flow_ids}
    assert arrived
    assert arrived <= sent
    begun = [e for e in events if e.type == trace_pb2.TrackEvent.TYPE_SLICE_BEGIN]
    ended = [e for e in events if e.type == trace_pb2.TrackEvent.TYPE_SLICE_END]
    assert len(begun) == len(ended) > 0
    counted = [e.counter_value for e in events if names[e.track_uuid] == "orders-0/log_end_offset"]
    assert 3 in counted


def _otlp_spans(trace: Trace, directory: Path) -> dict[str, dict[str, Any]]:
    spans = {}
    for line in lines_of(trace, "otlp", directory):
        for resource in json.loads(line)["resourceSpans"]:
            for span in resource["scopeSpans"][0]["spans"]:
                spans[span["spanId"]] = span
    return spans


def test_otlp_has_a_trace_for_each_operation_and_every_parent_in_it(
    trace: Trace, tmp_path: Path
) -> None:
    pytest.importorskip("opentelemetry.proto")
    spans = _otlp_spans(trace, tmp_path)
    roots = [span for span in spans.values() if "parentSpanId" not in span]
    operations = list(trace.filter("kind == client_invoke"))
    assert len(roots) == len(operations) > 0
    assert all(re.fullmatch("[0-9a-f]{32}", span["traceId"]) for span in spans.values())
    for span in spans.values():
        parent = spans.get(span.get("parentSpanId", ""))
        assert (parent is None) == (span in roots)
        assert parent is None or parent["traceId"] == span["traceId"]
        assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
    appended = [e["name"] for span in spans.values() for e in span.get("events", ())]
    assert "broker-2/orders-0/log_end_offset" in appended


def test_otlp_links_a_span_to_the_operation_that_unblocked_it(tmp_path: Path) -> None:
    """A span freed by another operation links to it and keeps its parent in its own trace."""
    pytest.importorskip("opentelemetry.proto")
    spans = _otlp_spans(open_trace(_loaded(tmp_path, 1)), tmp_path)
    for span in spans.values():
        if "parentSpanId" in span:
            assert spans[span["parentSpanId"]]["traceId"] == span["traceId"]
    links = [(span, link) for span in spans.values() for link in span.get("links", ())]
    assert links
    for span, link in links:
        assert spans[link["spanId"]]["traceId"] == link["traceId"] != span["traceId"]


@pytest.mark.slow
def test_otlp_traces_of_two_runs_have_different_ids(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.proto")
    ids = []
    for seed in (1, 2, 1):
        spans = _otlp_spans(open_trace(_loaded(tmp_path, seed)), tmp_path)
        ids.append({span["traceId"] for span in spans.values()})
    assert ids[0] == ids[2]
    assert not ids[0] & ids[1]


def test_otlp_refuses_a_trace_without_operations(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.proto")
    with Simulation(1) as simulation:
        simulation.run_for(100)
        simulation.save(tmp_path / "idle.fktrace")
    with pytest.raises(UsageError, match="has no client operations"):
        forms.export_file(open_trace(tmp_path / "idle.fktrace").stored, "otlp", tmp_path / "x")
    assert not (tmp_path / "x").exists()


def _loaded(tmp_path: Path, seed: int) -> Path:
    """Record a run with consumers and a producer that waits for followers."""
    path = tmp_path / f"{seed}.fktrace"
    text = (ROOT / "examples/scenarios/failover.toml").read_text(encoding="utf-8")
    text = text.replace("rate_per_s = 100", "rate_per_s = 40")
    recorder = Recorder()
    run = ScenarioRun(parse_scenario(text, "failover"), seed, recorder)
    run.run()
    recorder.save(path, header_of(run))
    return path


def test_parquet_has_a_row_for_each_event_and_the_header(trace: Trace, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    export(trace, "parquet", tmp_path)
    table = parquet.read_table(tmp_path / "parquet")
    assert table.column("seq").to_pylist() == [event.seq for event in trace.events]
    assert table.column("kind").to_pylist() == [event.kind for event in trace.events]
    deltas = [json.loads(text) for text in table.column("delta").to_pylist() if text]
    assert ["broker-2/orders-0/log_end_offset", 0, 3] in [change for d in deltas for change in d]
    header = json.loads(table.schema.metadata[b"fakekafka.header"])
    assert header["kafka_version"] == "2.8"


def test_a_missing_library_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(_: str, __: str) -> None:
        raise ImportError("no", name="perfetto")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(UsageError, match=r"needs perfetto.*fakekafka\[export\]"):
        forms.writer_of("perfetto")
