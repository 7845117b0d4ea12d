"""The pytest plugin: fixtures ``kafka_cluster``, ``shared_kafka_cluster``, ``kafka_simulation``.

``@pytest.mark.kafka(brokers=3, topics={"orders": 3}, config={...})`` gives the arguments of
``Cluster`` or ``Simulation`` for one test. When a test with a simulation fails, its trace is kept
and the command that opens it is printed.
"""

from __future__ import annotations

import inspect
import os
import re
import shlex
import zlib
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .cluster import Cluster
    from .simulation import Simulation

_TRACES = ".fakekafka-traces"
"""Directory of kept traces, in pytest's rootdir: a test may change the working directory."""
_NAME_MAX = 200
"""Characters of a trace's name; file systems take 255 bytes."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fakekafka")
    group.addoption(
        "--fk-trace",
        choices=("failed", "always", "never"),
        default="failed",
        help="when to keep the traces of simulations (default: of failed tests)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "kafka(**arguments): arguments of the test's Cluster or Simulation"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        simulation = item.stash.get(_SIMULATION, None)
        mode = item.config.getoption("--fk-trace")
        if simulation is not None and mode != "never" and (report.failed or mode == "always"):
            text = _kept(item, simulation, report.failed)
            if text:
                report.sections.append(("fakekafka", text))
    return report


_SIMULATION: pytest.StashKey[Any] = pytest.StashKey()


def _kept(item: pytest.Item, simulation: Simulation, failed: bool) -> str:
    """Keep the trace and say so; an error here is told, because it would end the whole session."""
    told = f"seed {simulation.seed}; "
    if not hasattr(simulation.recorder, "save"):
        return told + "it ran without recording (trace=False): no trace kept" if failed else ""
    try:
        path = _keep_trace(item, simulation)
    except Exception as error:
        return told + f"the trace could not be kept: {error}"
    shown = os.path.relpath(path, item.config.invocation_params.dir)
    return told + f"trace kept, open it with\n    fakekafka trace show {shlex.quote(shown)}"


def _keep_trace(item: pytest.Item, simulation: Simulation) -> Path:
    traces = item.config.rootpath / _TRACES
    traces.mkdir(exist_ok=True)
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", item.nodeid).strip("-")
    # Parameters that differ only in such characters, or far behind, must not share a file.
    if name != item.nodeid.replace("::", "-").replace("/", "-") or len(name) > _NAME_MAX:
        name = f"{name[:_NAME_MAX]}-{zlib.crc32(item.nodeid.encode()):08x}"
    path = traces / f"{name}.fktrace"
    simulation.save(path)
    return path


def _arguments(request: pytest.FixtureRequest) -> dict[str, Any]:
    marker = request.node.get_closest_marker("kafka")
    if marker is None:
        return {}
    if marker.args:
        raise pytest.UsageError("the kafka mark takes keyword arguments only, as Cluster does")
    return dict(marker.kwargs)


def _checked_arguments(request: pytest.FixtureRequest, kind: type[Any]) -> dict[str, Any]:
    """What the mark gives, if ``kind`` can be made with it."""
    arguments = _arguments(request)
    known = [name for name in inspect.signature(kind).parameters if name != "self"]
    for name in arguments:
        if name not in known:
            raise pytest.UsageError(
                f"the kafka mark gives {request.fixturename} an unknown argument {name!r}; "
                f"there are {', '.join(known)}"
            )
    return arguments


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Generator[Cluster, None, None]:
    """A fresh cluster for this test alone."""
    from .cluster import Cluster

    with Cluster(**_checked_arguments(request, Cluster)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def _shared_cluster() -> Generator[Cluster, None, None]:
    from .cluster import Cluster

    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def shared_kafka_cluster(
    request: pytest.FixtureRequest, _shared_cluster: Cluster
) -> Generator[Cluster, None, None]:
    """One cluster of three brokers per session, emptied after every test.

    The ``kafka`` mark may give ``topics`` only: everything else is the same for all tests.
    """
    arguments = _arguments(request)
    topics = arguments.pop("topics", {})
    if arguments:
        raise pytest.UsageError(
            f"shared_kafka_cluster takes only topics, not {', '.join(sorted(arguments))}; "
            "use kafka_cluster for a cluster of its own"
        )
    try:
        for name, shape in topics.items():
            _shared_cluster.create_shaped_topic(name, shape)
        yield _shared_cluster
    finally:
        _shared_cluster.reset()


@pytest.fixture
def kafka_simulation(request: pytest.FixtureRequest) -> Generator[Simulation, None, None]:
    """A simulated cluster; its trace is kept when the test fails."""
    from .simulation import Simulation

    with Simulation(**_checked_arguments(request, Simulation)) as simulation:
        request.node.stash[_SIMULATION] = simulation
        yield simulation
