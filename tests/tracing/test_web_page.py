"""The file of a trace's page, and that no content of a trace is executed in it."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path

import pytest
from fakekafka import Simulation
from fakekafka.cli.trace import app
from fakekafka.tests.support.traces import header, record_failover, write_failover
from fakekafka.tracing.packing import unpack
from fakekafka.tracing.recording.recorder import Recorder
from fakekafka.tracing.recording.writer import TraceWriter
from fakekafka.tracing.trace_file import TraceReader
from fakekafka.tracing.web.overview import DELETED, overview
from fakekafka.tracing.web.page import script, write_page
from typer.testing import CliRunner


def part(page: str, name: str) -> bytes:
    """Return a part of the page, decompressed."""
    match = re.search(rf'<script type="text/plain" id="{name}">([^<]*)</script>', page)
    assert match is not None, name
    return gzip.decompress(base64.b64decode(match[1]))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_failover(tmp_path / "run.fktrace")
    return tmp_path / "run.fktrace"


def test_the_page_carries_every_event(file: Path, tmp_path: Path) -> None:
    """The page contains the chunks of the trace and their index."""
    with TraceReader(file) as trace:
        size = write_page(trace, tmp_path / "run.html")
        page = (tmp_path / "run.html").read_text(encoding="utf-8")
        assert size == len(page.encode())
        index = json.loads(part(page, "a-index"))
        assert [chunk["events"] for chunk in index["chunks"]] == [len(trace)]
        events = unpack(part(page, "a-chunk-0"))[3]
        assert [event[0] for event in events] == [event.seq for event in trace.events()]


def test_two_pages_of_one_trace_are_equal(file: Path, tmp_path: Path) -> None:
    """Two pages of one trace are identical, as no clock or set order enters them."""
    with TraceReader(file) as trace:
        write_page(trace, tmp_path / "a.html")
        write_page(trace, tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_the_page_loads_nothing(file: Path, tmp_path: Path) -> None:
    """The page loads nothing from the network, and its policy forbids other scripts."""
    with TraceReader(file) as trace:
        write_page(trace, tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', page) == []
    assert "default-src 'none'; script-src 'sha256-" in page
    assert "connect-src 'none'" in page
    assert "unsafe" not in page.split("</head>")[0].split("<style>")[0]


def test_names_of_a_run_cannot_close_an_element(tmp_path: Path) -> None:
    """Markup in a scenario's name is escaped in the title."""
    evil = "</title><script>alert(1)</script>"
    path = tmp_path / "run.fktrace"
    with Recorder(TraceWriter(path, header(scenario_name=evil))) as recorder:
        record_failover(recorder)
    with TraceReader(path) as trace:
        write_page(trace, tmp_path / "run.html", trace)
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_the_modules_become_one_script() -> None:
    """The modules become one script without imports and without duplicate top-level names."""
    whole = script()
    assert not re.search(r"^(import|export) ", whole, re.MULTILINE)
    assert "</script" not in whole
    names = re.findall(r"^(?:async )?(?:function|class|const|let) (\w+)", whole, re.MULTILINE)
    assert len(names) > 60
    assert sorted(names) == sorted(set(names))


def test_the_marks_are_faults_crashes_and_restarts(file: Path) -> None:
    """Marks are the faults, crashes and restarts in order, with their texts."""
    with TraceReader(file) as trace:
        marks = overview(trace)["marks"]
        assert [mark[0] for mark in marks if mark[2] in ("crash", "restart", "fault")] == (
            trace.interesting()
        )


def test_the_partitions_with_load_come_first_and_a_deleted_topic_misses_no_leader() -> None:
    """A deleted topic's bands show that it was deleted, not that its leader is missing."""
    topics = {"aaa": 3, "orders": {"partitions": 1, "replication_factor": 1}}
    with Simulation(2, topics=topics) as simulation:
        producer = simulation.producer()
        for _ in range(5):
            producer.produce(("orders", 0), b"x")
        simulation.run_for(500)
        bands = overview(simulation.trace().stored)["bands"]
        assert list(bands) == ["orders-0", "aaa-0", "aaa-1", "aaa-2"]
        leader = bands["orders-0"][-1][2]
        simulation.broker(leader).kill()
        simulation.run_for(100)
        assert overview(simulation.trace().stored)["bands"]["orders-0"][-1][2] is None
        simulation.broker(leader).start()
        simulation.run_until(lambda: simulation.partition("orders", 0).leader == leader)
        simulation.run_for(1000)
        simulation.delete_topic("orders")
        simulation.run_for(5000)
        told = [band[2] for band in overview(simulation.trace().stored)["bands"]["orders-0"]]
        assert told == [leader, None, leader, DELETED]
        simulation.create_topic("orders", 1)
        simulation.run_for(1000)
        assert overview(simulation.trace().stored)["bands"]["orders-0"][-1][2] in (1, 2)


def test_html_from_the_command_line(file: Path, tmp_path: Path) -> None:
    """``trace html`` reports what it wrote and refuses to overwrite the trace."""
    out = tmp_path / "run.html"
    result = CliRunner().invoke(app, ["html", str(file), "-o", str(out), "--compare", str(file)])
    assert result.exit_code == 0, result.output
    assert "22 events written to" in result.output
    assert "The same events." in out.read_text(encoding="utf-8")
    result = CliRunner().invoke(app, ["html", str(file), "-o", str(file)])
    assert result.exit_code == 2
