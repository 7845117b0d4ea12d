"""Repeating the run of a program in another process."""

from __future__ import annotations

import multiprocessing.spawn
import os
import pickle
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ...programs.acts import Acts
from ...protocol.errors import UsageError
from ..recording import hash_seed
from . import sameness

if TYPE_CHECKING:
    from .program_run import ProgramRun

_REQUEST, _REJECTION = "job", "refused"
_CHILD = (
    "import sys; from fakekafka.testing.programs.again import repeat_in_child; "
    "repeat_in_child(sys.argv[1])"
)


class _ProcessState:
    """The state of this process, which repeats runs or has them repeated."""

    runs = 0
    """Number of runs that other processes have repeated for this one."""
    is_preparing = False
    """True while this process imports the script of the process whose run it repeats."""


def pack(run: ProgramRun) -> bytes:
    """Pickle a run for another process; ``UsageError`` names a part that it could not find."""
    if _ProcessState.is_preparing:
        raise UsageError(
            "simulate(verify=True) runs while another process imports this script to do the same "
            "once more: write it under `if __name__ == '__main__':`"
        )
    try:
        packed = pickle.dumps(run)
    except Exception:
        for name, part in run.parts():
            _require_found(name, part)
        raise
    if getattr(sys.modules.get("__main__"), "__file__", None) is None and b"__main__" in packed:
        raise UsageError(
            "verify=True runs main in another process, which cannot find what an interactive "
            "session or `python -c` holds; save the code in a file"
        )
    return packed


def _require_found(name: str, part: object) -> None:
    try:
        pickle.dumps(part)
    except Exception as error:
        raise UsageError(
            f"verify=True runs main in another process, and that cannot find {name}: {error}. "
            "Write an `async def` or `def` at the top of a module; lambdas and functions inside "
            "of others cannot be found by name"
        ) from error


def run_again(packed: bytes, seed: int) -> sameness.Recorded:
    """Repeat a packed run in another process, under a hash seed."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        preparation = multiprocessing.spawn.get_preparation_data("fakekafka-verify")
        del preparation["authkey"]  # which only multiprocessing itself can pickle
        _ProcessState.runs += 1
        (folder / _REQUEST).write_bytes(pickle.dumps((_ProcessState.runs, preparation, packed)))
        command = [sys.executable, "-c", _CHILD, name]
        completed = process(command, seed, PYTHONPATH=os.pathsep.join(preparation["sys_path"]))
        if (folder / _REJECTION).exists():
            raise UsageError((folder / _REJECTION).read_text("utf-8"))
        recorded = sameness.Recorded.load(folder, seed)
        if recorded is None:
            raise UsageError(f"the second process of verify=True has failed:\n{completed.stderr}")
        return recorded


def allocate_padding(number: int) -> list[object]:
    """Return objects of all small sizes, to give later objects other addresses.

    Otherwise the addresses in two processes differ by whole pages, and many sets of objects have
    the same order.
    """
    padding: list[object] = []
    for count in range(7 * number):
        padding += [object(), float(count), *(bytes(size) for size in range(8, 480, 16))]
    return padding


def process(
    command: list[str], seed: int, folder: str | Path = ".", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, under a hash seed and with further environment variables."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XD")}
    environment = {**others, hash_seed.VARIABLE: str(seed), **variables}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def repeat_in_child(name: str) -> None:
    """Repeat the run that a folder holds and save it there; called in the other process."""
    folder = Path(name)
    number, preparation, packed = pickle.loads((folder / _REQUEST).read_bytes())
    padding = allocate_padding(number)
    _ProcessState.is_preparing = True
    try:
        multiprocessing.spawn.prepare(preparation)
        run: ProgramRun = pickle.loads(packed)
    except UsageError as error:
        (folder / _REJECTION).write_text(str(error), "utf-8")
        raise
    finally:
        _ProcessState.is_preparing = False
    with run.simulation() as simulation:
        simulation.running.acts = Acts()
        with suppress(Exception):  # the trace records it
            run.carry_out(simulation)
        sameness.save(simulation, folder)
    del padding
