"""A run of one program once more, in another process."""

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

_JOB, _REFUSED = "job", "refused"
_CHILD = "import sys; from fakekafka.testing.programs.again import answer; answer(sys.argv[1])"


class _Now:
    """The work of this process for another one."""

    runs = 0
    """The number of runs that other processes have done for this one."""
    is_preparing = False
    """Whether it imports the script in which the other one found main."""


def pack(run: ProgramRun) -> bytes:
    """Return a run so that another process can do it; ``UsageError`` says what it cannot find."""
    if _Now.is_preparing:
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


def run_again(packed: bytes, under: int) -> sameness.Recorded:
    """Do a packed run in another process, under a hash seed."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        preparation = multiprocessing.spawn.get_preparation_data("fakekafka-verify")
        del preparation["authkey"]  # only a process of multiprocessing may have it
        _Now.runs += 1
        (folder / _JOB).write_bytes(pickle.dumps((_Now.runs, preparation, packed)))
        command = [sys.executable, "-c", _CHILD, name]
        done = process(command, under, PYTHONPATH=os.pathsep.join(preparation["sys_path"]))
        if (folder / _REFUSED).exists():
            raise UsageError((folder / _REFUSED).read_text("utf-8"))
        recorded = sameness.Recorded.load(folder, under)
        if recorded is None:
            raise UsageError(f"the second process of verify=True has failed:\n{done.stderr}")
        return recorded


def ballast(number: int) -> list[object]:
    """Return objects of all small sizes, after which others are at other addresses.

    Addresses of two processes differ by whole pages otherwise, and many orders are the same.
    """
    held: list[object] = []
    for count in range(7 * number):
        held += [object(), float(count), *(bytes(size) for size in range(8, 480, 16))]
    return held


def process(
    command: list[str], under: int, folder: str | Path = ".", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, under a hash seed and with more variables in its environment."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XD")}
    environment = {**others, hash_seed.VARIABLE: str(under), **variables}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def answer(name: str) -> None:
    """Do the run that the folder of this name holds; called in the other process."""
    folder = Path(name)
    number, preparation, packed = pickle.loads((folder / _JOB).read_bytes())
    held = ballast(number)
    _Now.is_preparing = True
    try:
        multiprocessing.spawn.prepare(preparation)
        run: ProgramRun = pickle.loads(packed)
    except UsageError as error:
        (folder / _REFUSED).write_text(str(error), "utf-8")
        raise
    finally:
        _Now.is_preparing = False
    with run.simulation() as simulation:
        simulation.running.acts = Acts()
        with suppress(Exception):  # an event of the trace tells of it
            run.carry_out(simulation)
        sameness.save(simulation, folder)
    del held
