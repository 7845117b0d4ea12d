"""What the pytest plugin does at the end of a test: report on a failed test, and keep its trace."""

from __future__ import annotations

import os
import re
import shlex
import threading
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .failure_report import failure_report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..emulated_cluster import EmulatedCluster

KEPT_EVENTS = 20_000
"""Number of latest events that a ``Cluster`` keeps in memory, in case its test fails."""
_TRACES = ".fakekafka-traces"
"""Directory of kept traces in pytest's rootdir, as a test may change the working directory."""
_NAME_MAX = 200
"""Maximum number of characters of a trace's name; file systems allow 255 bytes."""
_REPORT_TIMEOUT_S = 10
"""Time in seconds that a cluster has to report its state, as its threads may be what failed."""
_OPTIONS_WITH_VALUE = (
    *("-o", "--override-ini", "-c", "--config-file", "--rootdir", "-p"),
    *("--kafka-seeds", "--fakekafka-seeds"),
)
"""Options of pytest, each with a value, that the command to repeat a test needs, too."""


class Emulated:
    """The cluster or simulation of a test, and the failures it had before the test."""

    def __init__(self, cluster: EmulatedCluster) -> None:
        self.cluster: Any = cluster
        self.failures_before: int = len(cluster.failures)

    @property
    def is_simulated(self) -> bool:
        return hasattr(self.cluster, "seed")

    def raise_failure(self) -> None:
        """Raise ``AssertionError`` if the cluster or an observer failed during the test."""
        failures = self.cluster.failures[self.failures_before :]
        if not failures:
            return
        name, error = failures[0]
        more = f", and {len(failures) - 1} more failures" if len(failures) > 1 else ""
        raise AssertionError(f"{name} failed during the test: {error!r}{more}") from error


def cluster_report(
    item: pytest.Item, emulated: Emulated, has_failed: bool, mode: str, name_suffix: str
) -> str:
    """Return what the report of a test says about its cluster; empty if there is nothing to say.

    ``name_suffix`` distinguishes the traces of a test with more than one cluster.
    """
    simulation = emulated.cluster if emulated.is_simulated else None
    parts = []
    if has_failed:
        parts.append(_report(emulated))
    seed = "" if simulation is None else f"seed {simulation.seed}; "
    if mode == "never":
        kept = f"{seed}no trace kept (--kafka-trace=never)" if has_failed else ""
    else:
        kept = _keep_and_describe_trace(item, emulated, has_failed, seed, name_suffix)
    if kept:
        parts.append(kept)
    if has_failed:
        again = "reproduce it" if simulation is not None else "run it again"
        command, warning = _hash_seed(simulation)
        parts.append(f"{again} with\n    {command}{command_of(item)}{warning}")
    return "\n".join(parts)


def _hash_seed(simulation: Any) -> tuple[str, str]:
    """Return a prefix of the command and a warning, as sets in programs depend on the hash seed.

    Both are empty for a run whose events depend on its seed alone.
    """
    if simulation is None or simulation.running.programs is None:
        return "", ""
    given = os.environ.get("PYTHONHASHSEED", "random")
    if given == "random":
        return "", (
            "\nsets in the programs may have another order then, as PYTHONHASHSEED was not set: "
            "set it to a number, and a seed always gives the same run"
        )
    return f"PYTHONHASHSEED={given} ", ""


def _report(emulated: Emulated) -> str:
    """Return the report on a cluster, or a note that the cluster hangs."""
    cluster = emulated.cluster

    def make_report() -> str:
        return failure_report(cluster, _stored_trace(cluster))

    if emulated.is_simulated:
        return make_report()
    reports: list[str] = []
    thread = threading.Thread(target=lambda: reports.append(make_report()), daemon=True)
    thread.start()
    thread.join(_REPORT_TIMEOUT_S)
    return (
        reports[0]
        if reports
        else f"the cluster did not report its state within {_REPORT_TIMEOUT_S} s"
    )


def _stored_trace(cluster: Any) -> Any:
    try:
        return cluster.trace().stored
    except Exception:  # nothing is recorded
        return None


def _keep_and_describe_trace(
    item: pytest.Item, emulated: Emulated, has_failed: bool, seed: str, name_suffix: str
) -> str:
    """Keep the trace and name its file; an error becomes text, as raising would end the session."""
    cluster = emulated.cluster
    if _stored_trace(cluster) is None:
        if not has_failed:
            return ""
        if emulated.is_simulated:
            return f"{seed}it ran without recording (trace=False): no trace kept"
        return "it ran without keeping events (Cluster(trace=20_000) does): no trace kept"
    try:
        path = _keep_trace(item, cluster, name_suffix)
    except Exception as error:
        return f"{seed}the trace could not be kept: {error}"
    shown = shlex.quote(os.path.relpath(path, item.config.invocation_params.dir))
    return f"{seed}trace kept, open it with\n    fakekafka trace show {shown}"


def _keep_trace(item: pytest.Item, cluster: Any, name_suffix: str) -> Path:
    traces = item.config.rootpath / _TRACES
    traces.mkdir(exist_ok=True)
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", item.nodeid).strip("-")
    # Tests whose ids differ only in replaced characters, or after the limit, must not share a file.
    if name != item.nodeid.replace("::", "-").replace("/", "-") or len(name) > _NAME_MAX:
        name = f"{name[:_NAME_MAX]}-{zlib.crc32(item.nodeid.encode()):08x}"
    path = traces / f"{name}{name_suffix}.fktrace"
    cluster.save(path)
    return path


def command_of(item: pytest.Item) -> str:
    """Return the command that repeats this test, from the directory where pytest was started."""
    return shlex.join(["pytest", *arguments_of(item)])


def arguments_of(item: pytest.Item) -> list[str]:
    """Return the arguments with which pytest runs this test alone."""
    started = item.config.invocation_params
    _, separator, inside = item.nodeid.partition("::")
    test = os.path.relpath(item.path, started.dir) + separator + inside
    return [*_options(started.args), test]


def _options(given: Any) -> Iterator[str]:
    """Yield the arguments of pytest that affect the run of a test."""
    arguments = iter([str(argument) for argument in given])
    for argument in arguments:
        if argument in _OPTIONS_WITH_VALUE:
            yield argument
            yield next(arguments, "")
        elif argument.startswith(
            tuple(f"{name}=" for name in _OPTIONS_WITH_VALUE if name[1] == "-")
        ):
            yield argument
