"""``make clients``: run suites of released clients and say what came of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from . import checkouts
from .clients import RUNS
from .machine import SuiteError, require_tools, served
from .suite import Suite, Verdict


def run(name: str) -> Verdict:
    """Run one suite against a cluster of its own."""
    suite = Suite.load(name)
    require_tools(suite.tools)
    with served(suite.serve) as cluster:
        return Verdict.of(suite, RUNS[name](suite, cluster))


def runnable() -> list[str]:
    """Return all suites but those whose tests are in a repository that is not there."""
    return [name for name in RUNS if checkouts.is_there(Suite.load(name))]


def main(names: Sequence[str]) -> int:
    unknown = [name for name in names if name not in RUNS]
    if unknown:
        print(f"no suite {', '.join(unknown)}; there are {', '.join(RUNS)}", file=sys.stderr)
        return 2
    is_good = True
    for name in names or runnable():
        started = time.monotonic()
        try:
            verdict = run(name)
        except SuiteError as error:
            is_good = False
            print(f"{name}: {error}", flush=True)
            continue
        is_good = is_good and verdict.is_good
        first, *others = verdict.lines()
        print(f"{first}  {time.monotonic() - started:5.0f} s", *others, sep="\n", flush=True)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
