"""The compiled build behaves like the source: the same events and the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fakekafka import builds
from fakekafka.tests.support.paths import ROOT
from fakekafka.tracing.header import build_header
from fakekafka.tracing.reading.reader import open_trace

pytestmark = [pytest.mark.compiled, pytest.mark.slow]

SCENARIO = ROOT / "examples" / "scenarios" / "failover.toml"


def run_on(build: str, *arguments: str | Path) -> str:
    """Run a module on one of the builds and return its output."""
    environment = {**os.environ, builds.VARIABLE: build}
    command = [sys.executable, "-m", *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{arguments}: {done.stdout}\n{done.stderr}"
    return done.stdout


def test_random_histories_have_the_same_fingerprints() -> None:
    """Twenty seeds are compared."""
    program = ("fakekafka.tests.support.fingerprints", "--seeds", "20")
    pure, *lines = run_on("pure", *program).splitlines()
    compiled, *others = run_on("compiled", *program).splitlines()
    assert (pure, compiled) == ("(pure Python)", f"({builds.running})")
    assert len(lines) == 20
    assert lines == others


@pytest.mark.parametrize(("writer", "reader"), [("pure", "compiled"), ("compiled", "pure")])
def test_a_trace_of_one_build_holds_on_the_other(writer: str, reader: str, tmp_path: Path) -> None:
    """The header names the build if that is the compiled one."""
    file = tmp_path / "run.fktrace"
    run_on(writer, "fakekafka", "run", SCENARIO, "--out", file)
    assert run_on(reader, "fakekafka", "trace", "verify", file).startswith("verified: ")
    with open_trace(file) as trace:
        assert trace.header.get("build") == (None if writer == "pure" else "compiled")


def test_this_build_is_named_in_headers_and_the_version() -> None:
    """The version has the number of compiled modules in the manifest."""
    manifest = builds.read_manifest(builds.ROOT / "compiled")
    assert manifest is not None
    assert builds.told_version().endswith(f"(compiled: {len(manifest['modules'])} modules)")
    assert build_header(mode="sim", kafka_version="3.9")["build"] == "compiled"
