"""Common parts of the measurements: printing figures, child processes, clusters to measure."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO, Any, TypeVar

IS_SMALL = os.environ.get("BENCH_SIZE") == "small"
"""True if everything is measured at a small size, to check that it runs: the figures mean nothing.
"""
FIGURES_VARIABLE = "BENCH_FIGURES"
"""Environment variable with the name of a file to which each figure is also written: as a line of
JSON with its title and the printed figure."""
_Size = TypeVar("_Size")
_TRACEBACK = "Traceback (most recent call last):"


class MeasurementFailed(Exception):
    """A process that a measurement started has failed.

    The text is one line: the exception that ended the process, or else the last line of its output;
    ``output`` is all of its output.
    """

    def __init__(self, problem: str, output: str) -> None:
        reason = _reason(output.strip().splitlines())
        super().__init__(f"{problem}: {reason}" if reason else f"{problem}, without any output")
        self.output = output


def _reason(lines: list[str]) -> str:
    """Return the first line of the last exception's text; without an exception the last line."""
    if _TRACEBACK in lines:
        last = len(lines) - lines[::-1].index(_TRACEBACK)
        raised = next((line for line in lines[last:] if line and not line[0].isspace()), "")
        if raised:
            return raised
    return lines[-1].strip() if lines else ""


def sized(usual: _Size, small: _Size) -> _Size:
    """Return the usual size, number or choice, or the small one if ``IS_SMALL``."""
    return small if IS_SMALL else usual


def line(title: str, figure: str, target: str = "", ok: bool | None = None) -> None:
    """Print one figure, with its target if there is one."""
    if IS_SMALL:
        target, ok = "", None
    mark = "" if ok is None else (" ok" if ok else " MISSED")
    print(f"  {title:58} {figure:>24}  {target}{mark}", flush=True)
    if path := os.environ.get(FIGURES_VARIABLE):
        with open(path, "a", encoding="utf-8") as file:
            print(json.dumps([title, figure]), file=file)


def spread(values: list[float], digits: int) -> str:
    """Format values as ``median (least-most)``."""
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{middle:,.{digits}f} ({low:,.{digits}f}-{high:,.{digits}f})"


def in_child(code: str, *arguments: Any) -> Any:
    """Run Python code in another process; return the last line that it prints, parsed as JSON.

    Raises ``MeasurementFailed`` with the standard error if the status is not 0, or nothing is
    printed.
    """
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    require_success(done, done.stderr)
    printed = done.stdout.strip().splitlines()
    if not printed:
        raise MeasurementFailed("the child printed no figures", done.stderr)
    return json.loads(printed[-1])


def require_success(done: subprocess.CompletedProcess[str], output: str) -> None:
    """Raise ``MeasurementFailed`` with the output of a process unless its status is 0."""
    if done.returncode:
        raise MeasurementFailed(f"the child ended with status {done.returncode}", output)


def ended_early(child: subprocess.Popen[str], errors: IO[str]) -> MeasurementFailed:
    """Return the error for a child that closed its output, with its status and standard error."""
    status = child.wait()
    errors.seek(0)
    return MeasurementFailed(f"the child ended with status {status}", errors.read())


ANNOUNCED = "bootstrap.servers="
"""Prefix of the line in which a program prints the address of its cluster."""


@contextlib.contextmanager
def announced_cluster(command: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Run a program that serves a cluster; yield its bootstrap servers and process id.

    Raises ``MeasurementFailed`` if the program does not start.
    """
    with tempfile.TemporaryFile("w+") as errors:  # a pipe that is not read would fill up
        child = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},  # cached bytecode, as if installed
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        try:
            assert child.stdout is not None
            for text in child.stdout:
                if text.startswith(ANNOUNCED):
                    yield text.removeprefix(ANNOUNCED).strip(), child.pid
                    break
            else:
                raise ended_early(child, errors)
        finally:
            child.kill()
            child.communicate()


def mock_command(brokers: int = 3) -> list[str]:
    """Return the command of a program that serves librdkafka's mock cluster."""
    code = (
        "import sys\n"
        "from confluent_kafka import Producer\n"
        f"p = Producer({{'test.mock.num.brokers': {brokers}, 'bootstrap.servers': 'unused'}})\n"
        "m = p.list_topics(timeout=10)\n"
        "servers = ','.join(f'{b.host}:{b.port}' for b in m.brokers.values())\n"
        f"print('{ANNOUNCED}' + servers, flush=True)\n"
        "sys.stdin.read()\n"
    )
    return [sys.executable, "-c", code]


@contextlib.contextmanager
def mock_cluster() -> Iterator[str]:
    """Run librdkafka's mock cluster in a process of its own; yield its bootstrap servers.

    Raises ``MeasurementFailed`` if the cluster does not start.
    """
    with announced_cluster(mock_command()) as (servers, _):
        yield servers


@contextlib.contextmanager
def served_cluster(**arguments: Any) -> Iterator[Any]:
    """Serve a cluster from this process to clients in another one."""
    from fakekafka import Cluster

    with Cluster(**arguments) as cluster:
        yield cluster
