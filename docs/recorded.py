"""Records scenarios for the pages, as ``fakekafka run NAME -o FILE`` does."""

from __future__ import annotations

import logging
from pathlib import Path

from fakekafka import Trace
from fakekafka.scenarios.file import load_scenario
from fakekafka.scenarios.run import ScenarioRun, header_of
from fakekafka.tracing.recording.recorder import Recorder


def record(scenario: str, version: str, path: Path | None = None) -> Trace:
    """Run a scenario and return its trace; if ``path`` is given, also save the trace there."""
    logging.getLogger("fakekafka").addHandler(logging.NullHandler())  # warnings are expected
    spec = load_scenario(scenario, {"cluster.kafka_version": version})
    recorder = Recorder()
    run = ScenarioRun(spec, None, recorder)
    result = run.run()
    assert result.ok, result.problems
    header = header_of(run)
    if path is not None:
        recorder.save(path, header)
    return Trace(recorder.trace(header))
