"""``make mutants``: wrong versions made by hand, and whether each is caught.

python -m fakekafka.tests.mutants [NAME ...] [--jobs N]

A name is that of a mutant or of an area. What is to catch them is tried on the source as it is
first: a test that fails there catches nothing. The status is 1 if a mutant survives.
"""

from __future__ import annotations

import argparse
import functools
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fakekafka.cli.exits import INTERRUPTED
from fakekafka.tests.support.paths import ROOT

from .carrying_out import Copies, Outcome, Stopped
from .mutant import Exploration, Mutant, MutantError, chosen


def untouched(copies: Copies, mutants: Sequence[Mutant]) -> dict[str, Callable[[], Outcome]]:
    """What has to pass on the source as it is: the tests, and the longest exploration of each
    release and target."""
    tests = list(dict.fromkeys(m.catcher for m in mutants if isinstance(m.catcher, str)))
    longest: dict[tuple[str, str], Exploration] = {}
    for mutant in mutants:
        if isinstance(mutant.catcher, Exploration):
            key = mutant.catcher.version, mutant.catcher.target
            longest[key] = max(longest.get(key, mutant.catcher), mutant.catcher)
    found: dict[str, Callable[[], Outcome]] = {}
    if tests:
        found["the source as it is, tests"] = functools.partial(copies.test_untouched, tests)
    for key, one in longest.items():
        named = f"the source as it is, {' '.join(filter(None, key))}"
        found[named] = functools.partial(copies.explore_untouched, one)
    return found


def _timed(work: Callable[[], Outcome]) -> tuple[Outcome, float]:
    began = time.monotonic()
    try:
        outcome = work()
    except MutantError as error:
        outcome = Outcome(False, str(error))
    return outcome, time.monotonic() - began


def run(mutants: Sequence[Mutant], jobs: int, root: Path = ROOT) -> int:
    """Carry mutants out and print a line for each; returns the status."""
    width = max(30, *(len(mutant.name) for mutant in mutants))
    began = time.monotonic()
    survivors = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies = Copies(root, Path(folder))
        work = untouched(copies, mutants)
        as_is = len(work)
        work.update((m.name, functools.partial(copies.carry_out, m)) for m in mutants)
        with ThreadPoolExecutor(jobs) as pool:
            futures = [pool.submit(_timed, one) for one in work.values()]
            try:
                for number, (name, future) in enumerate(zip(work, futures, strict=True)):
                    outcome, seconds = future.result()
                    print(f"{name:{width}}  {seconds:6.1f} s  {outcome.told}", flush=True)
                    if number < as_is and outcome.is_caught:
                        print("what fails without a mutant catches none", file=sys.stderr)
                        return 2
                    if number >= as_is and not outcome.is_caught:
                        survivors.append(name)
            finally:
                copies.stop()
                pool.shutdown(cancel_futures=True)
    took_s = time.monotonic() - began
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} mutants caught in {took_s:.0f} s")
    if survivors:
        print(f"survived: {', '.join(survivors)}")
    return 1 if survivors else 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="mutants or areas; all where none is named")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time")
    options = parser.parse_args(arguments)
    try:
        mutants = chosen(options.names)
    except MutantError as error:
        print(error, file=sys.stderr)
        return 2
    try:
        return run(mutants, options.jobs)
    except (KeyboardInterrupt, Stopped):
        print("ended early", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
