"""``make sameness``: all kinds of programs, in several processes and under several Pythons.

Each Python needs the packages of the extra ``programs``, aiokafka, faststream, kstreams, httpx and
uvicorn.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import Any

from .comparing import compare
from .runs import KINDS


def _told(python: str, seeds: int, processes: int) -> Iterator[Any]:
    began = time.monotonic()
    outcomes = compare(python, seeds, processes)
    yield not outcomes.differing
    yield (
        f"{python}: {outcomes.runs} runs of {len(KINDS)} kinds, {seeds} seeds, in {processes} "
        f"processes: {len(outcomes.differing)} differ, {time.monotonic() - began:.0f} s"
    )
    yield from outcomes.differing
    yield from outcomes.failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pythons", nargs="*", default=[sys.executable])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--processes", type=int, default=5)
    options = parser.parse_args()
    are_same = True
    for python in options.pythons:
        is_same, *lines = _told(python, options.seeds, options.processes)
        print(*lines, sep="\n", flush=True)
        are_same = are_same and is_same
    return 0 if are_same else 1


if __name__ == "__main__":
    sys.exit(main())
