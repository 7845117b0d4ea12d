"""Records scenarios for the pages: the same run that ``fakekafka run NAME -o FILE`` records."""

from __future__ import annotations

import logging
from pathlib import Path

from fakekafka import Trace
from fakekafka.scenarios.file import load_scenario
from fakekafka.scenarios.run import ScenarioRun, header_of
from fakekafka.tracing.recording.recorder import Recorder


def record(scenario: str, version: str, path: Path | None = None) -> Trace:
    """Run a scenario and give its trace; with ``path`` it is saved there, too."""
    logging.getLogger("fakekafka").addHandler(logging.NullHandler())  # belongs to the run
    spec = load_scenario(scenario, {"cluster.kafka_version": version})
    recorder = Recorder()
    run = ScenarioRun(spec, None, recorder)
    result = run.run()
    assert result.ok, result.problems
    header = header_of(run)
    if path is not None:
        recorder.save(path, header)
    return Trace(recorder.trace(header))
