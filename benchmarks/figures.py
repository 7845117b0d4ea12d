"""Figures of the measurements: timing, a line for each, librdkafka's own mock cluster."""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from typing import Any


def line(what: str, figure: str, target: str = "", ok: bool | None = None) -> None:
    """Print one figure, with its target when there is one."""
    mark = "" if ok is None else (" ok" if ok else " MISSED")
    print(f"  {what:58} {figure:>24}  {target}{mark}", flush=True)


def spread(values: list[float], digits: int) -> str:
    """``median (least-most)``."""
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{middle:,.{digits}f} ({low:,.{digits}f}-{high:,.{digits}f})"


def in_child(code: str, *arguments: Any) -> Any:
    """Run Python code in another process; what it prints last is JSON."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the child failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


@contextlib.contextmanager
def mock_cluster(brokers: int = 3) -> Iterator[str]:
    """librdkafka's mock cluster in a process of its own; gives its bootstrap servers."""
    code = (
        "import sys, time\n"
        "from confluent_kafka import Producer\n"
        f"p = Producer({{'test.mock.num.brokers': {brokers}, 'bootstrap.servers': 'unused'}})\n"
        "m = p.list_topics(timeout=10)\n"
        "print(','.join(f'{b.host}:{b.port}' for b in m.brokers.values()), flush=True)\n"
        "sys.stdin.read()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        yield child.stdout.readline().strip()
    finally:
        child.kill()
        child.communicate()


@contextlib.contextmanager
def served_cluster(**arguments: Any) -> Iterator[Any]:
    """A cluster in this process, for clients in another one."""
    from fakekafka import Cluster

    with Cluster(**arguments) as cluster:
        yield cluster
