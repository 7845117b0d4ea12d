"""Every recorded run has the same header fields, however it was started."""

from __future__ import annotations

from pathlib import Path

from fakekafka import Cluster, Simulation, __version__
from fakekafka.actors.runtime.runtime import VIRTUAL_EPOCH_MS
from fakekafka.scenarios.file import parse_scenario
from fakekafka.scenarios.run import ScenarioRun, header_of
from fakekafka.tracing.header import build_header
from fakekafka.tracing.trace_file import TraceReader

NAMES = set(build_header(mode="sim", kafka_version="3.9"))
SCENARIO = """
name = "short"
[cluster]
brokers = 1
[stop]
at_ms = 10
"""


def test_the_header_of_a_simulation_says_how_to_repeat_it(tmp_path: Path) -> None:
    """A simulation's header has seed, version, configuration, virtual epoch and the expression."""
    with Simulation(1, seed=5, kafka_version="2.8", config={"num.partitions": 2}) as simulation:
        simulation.save(tmp_path / "a.fktrace")
    with TraceReader(tmp_path / "a.fktrace") as trace:
        header = trace.header
    assert set(header) - {"record_bytes_limit"} == NAMES
    assert (header["seed"], header["kafka_version"]) == (5, "2.8")
    assert header["config"]["num.partitions"] == "2"
    assert header["virtual_epoch_ms"] == VIRTUAL_EPOCH_MS
    assert header["fakekafka"] == __version__
    assert header["reproduce"] == "Simulation(brokers=1, seed=5)"


def test_a_scenario_brings_its_text_along() -> None:
    """A scenario's header contains its text, so the trace alone suffices to run it again."""
    run = ScenarioRun(parse_scenario(SCENARIO, "short.toml"), 3)
    header = header_of(run)
    assert set(header) == NAMES
    assert (header["scenario"], header["seed"]) == (SCENARIO, 3)


def test_a_live_cluster_has_no_seed_and_no_virtual_clock(tmp_path: Path) -> None:
    """The header of a live cluster has the mode "live", without seed and virtual epoch."""
    with Cluster(1, trace=tmp_path / "live.fktrace", kafka_version="2.8"):
        pass
    with TraceReader(tmp_path / "live.fktrace") as trace:
        header = trace.header
    assert set(header) == NAMES
    assert (header["mode"], header["kafka_version"]) == ("live", "2.8")
    assert header["seed"] is header["virtual_epoch_ms"] is None
