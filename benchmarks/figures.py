"""Figures of the measurements: timing, a line for each, librdkafka's own mock cluster."""

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
"""Whether everything is measured at a small size: to see that it runs, its figures say nothing."""
FIGURES_VARIABLE = "BENCH_FIGURES"
"""Names the environment variable that names a file to which each figure goes, too: a line of JSON
with what it is of and what was printed."""
_Size = TypeVar("_Size")
_TRACEBACK = "Traceback (most recent call last):"


class MeasurementFailed(Exception):
    """A process that a measurement started did not do its part.

    Its text is one line, the exception that ended the process or else the last that it said;
    ``said`` has all of them.
    """

    def __init__(self, what: str, said: str) -> None:
        reason = _reason(said.strip().splitlines())
        super().__init__(f"{what}: {reason}" if reason else f"{what} and said nothing")
        self.said = said


def _reason(lines: list[str]) -> str:
    """The first line of the last exception, whose text may have more; without one the last line."""
    if _TRACEBACK in lines:
        last = len(lines) - lines[::-1].index(_TRACEBACK)
        raised = next((line for line in lines[last:] if line and not line[0].isspace()), "")
        if raised:
            return raised
    return lines[-1].strip() if lines else ""


def sized(usual: _Size, small: _Size) -> _Size:
    """A size, number or choice, and what takes its place where ``IS_SMALL``."""
    return small if IS_SMALL else usual


def line(what: str, figure: str, target: str = "", ok: bool | None = None) -> None:
    """Print one figure, with its target when there is one."""
    if IS_SMALL:
        target, ok = "", None
    mark = "" if ok is None else (" ok" if ok else " MISSED")
    print(f"  {what:58} {figure:>24}  {target}{mark}", flush=True)
    if path := os.environ.get(FIGURES_VARIABLE):
        with open(path, "a", encoding="utf-8") as file:
            print(json.dumps([what, figure]), file=file)


def spread(values: list[float], digits: int) -> str:
    """``median (least-most)``."""
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{middle:,.{digits}f} ({low:,.{digits}f}-{high:,.{digits}f})"


def in_child(code: str, *arguments: Any) -> Any:
    """Run Python code in another process; what it prints last is JSON.

    Raises ``MeasurementFailed`` with its standard error where it ends with another status than 0,
    or prints nothing.
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


def require_success(done: subprocess.CompletedProcess[str], said: str) -> None:
    """Raise ``MeasurementFailed`` with what a process said unless its status is 0."""
    if done.returncode:
        raise MeasurementFailed(f"the child ended with status {done.returncode}", said)


def ended_early(child: subprocess.Popen[str], errors: IO[str]) -> MeasurementFailed:
    """The failure of a child that closed its output: its status, its standard error."""
    status = child.wait()
    errors.seek(0)
    return MeasurementFailed(f"the child ended with status {status}", errors.read())


ANNOUNCED = "bootstrap.servers="
"""Begins the line with which a program says where its cluster is reached."""


@contextlib.contextmanager
def announced_cluster(command: Sequence[str]) -> Iterator[tuple[str, int]]:
    """A program that serves a cluster; gives its bootstrap servers and the id of its process.

    Raises ``MeasurementFailed`` where it does not start.
    """
    with tempfile.TemporaryFile("w+") as errors:  # a pipe that nobody reads would fill up
        child = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},  # as a package that is installed
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        try:
            assert child.stdout is not None
            for said in child.stdout:
                if said.startswith(ANNOUNCED):
                    yield said.removeprefix(ANNOUNCED).strip(), child.pid
                    break
            else:
                raise ended_early(child, errors)
        finally:
            child.kill()
            child.communicate()


def mock_command(brokers: int = 3) -> list[str]:
    """A program that serves librdkafka's mock cluster."""
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
    """librdkafka's mock cluster in a process of its own; gives its bootstrap servers.

    Raises ``MeasurementFailed`` where it does not start.
    """
    with announced_cluster(mock_command()) as (servers, _):
        yield servers


@contextlib.contextmanager
def served_cluster(**arguments: Any) -> Iterator[Any]:
    """A cluster in this process, for clients in another one."""
    from fakekafka import Cluster

    with Cluster(**arguments) as cluster:
        yield cluster
