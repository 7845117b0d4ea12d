"""Tests whose run is compared with a second run in another pytest process."""

from __future__ import annotations

import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..recording.kept_traces import arguments_of
from . import sameness
from .async_tests import MARK

if TYPE_CHECKING:
    from ..simulation import Simulation
    from .sameness import Recorded

_FOLDER = "FAKEKAFKA_VERIFIED"
"""Environment variable with the folder in which the second process saves its run."""
_OUTPUT_MAX = 3000


def _is_verified(item: Any) -> bool:
    mark = item.get_closest_marker(MARK)
    if mark is None or _FOLDER in os.environ:
        return mark is not None
    return bool(mark.kwargs.get("verify", item.config.getoption("--kafka-verify")))


def prepare(item: Any, simulation: Simulation) -> None:
    """Have a simulation keep what its programs do, if the run of its test is to be compared."""
    if _is_verified(item) and simulation.recorder is not None:
        from ...programs.acts import Acts

        simulation.running.acts = Acts()


def save(item: Any) -> None:
    """Save the run of a test, passed or failed, for the process that compares it."""
    simulation = _simulation_of(item)
    if simulation is not None and _FOLDER in os.environ:
        sameness.save(simulation, Path(os.environ[_FOLDER]))


def _simulation_of(item: Any) -> Simulation | None:
    """Return the simulation of a test whose run is compared; None for other tests."""
    simulation: Simulation | None = getattr(item, "funcargs", {}).get("kafka_simulation")
    return simulation if simulation is not None and _is_verified(item) else None


def verify(item: Any) -> None:
    """Compare the run of a test that has passed with a run in another process."""
    simulation = _simulation_of(item)
    if simulation is None or _FOLDER in os.environ:
        return
    if simulation.running.acts is None:
        raise pytest.UsageError(f"{item.name}: verify compares recordings; leave out trace=False")
    failures: list[str] = []
    first = sameness.Recorded.of(simulation)
    message = ""
    try:
        sameness.require_same(first, partial(_run_again, item, failures), simulation.seed)
    except sameness.RunsDiffer as error:
        message = str(error)
    if failures:
        message = f"{message or 'the runs are the same'}\n{failures[0]}"
    if message:
        pytest.fail(message, pytrace=False)


def _run_again(item: pytest.Item, failures: list[str], hash_seed: int) -> Recorded:
    """Run a test in another process, under a hash seed; add to ``failures`` if it fails."""
    from . import again, sameness

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        command = [sys.executable, "-m", "pytest", *arguments_of(item)]
        start_folder = item.config.invocation_params.dir
        completed = again.process(command, hash_seed, start_folder, **{_FOLDER: name})
        if completed.returncode:
            failures.append(
                f"{item.name} passes here, and fails in another process with the hash seed "
                f"{hash_seed}:\n{(completed.stdout + completed.stderr)[-_OUTPUT_MAX:]}"
            )
        recorded = sameness.Recorded.load(Path(name), hash_seed)
        if recorded is None:
            raise sameness.RunsDiffer(failures[0])
        return recorded
