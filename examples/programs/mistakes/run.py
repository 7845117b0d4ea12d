"""Run the mistakes under many seeds: each wrong version until its test fails, right ones always.

``python examples/programs/mistakes/run.py --seeds 2000 --jobs 2 zombie`` runs one of them, and
``--seed 13`` prints what the test reports about the wrong version under one seed. The status is 1
if the test of a wrong version passes under all seeds, or that of a right version fails.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable
from functools import partial

from fakekafka import Simulation

MISTAKES = (
    "commit_before_processing",
    "automatic_commit",
    "retry_without_idempotence",
    "ignored_failure",
    "no_flush_on_revocation",
    "zombie",
    "several_in_flight",
    "uncommitted_read",
)
WRONG_SEEDS = 500
"""Number of seeds within which the test of a wrong version must fail."""

Outcome = tuple[int, str, float]
"""The seed, the failure of the test or an empty text, and seconds of CPU time."""


def problems(mistake: str, version: str, seed: int) -> str:
    """Run the test of a mistake with its service ``wrong`` or ``right``; return its failure.

    The first run is not recorded, which is faster; a failing one is repeated with a recording.
    """
    told = _run(mistake, version, seed, trace=False)
    return _run(mistake, version, seed, trace=True) if told else ""


def _run(mistake: str, version: str, seed: int, *, trace: bool) -> str:
    module = importlib.import_module(f"test_{mistake}")
    (test,) = (value for name, value in vars(module).items() if name.startswith("test_"))
    (mark,) = (mark for mark in test.pytestmark if mark.name == "kafka")
    shape = {name: value for name, value in mark.kwargs.items() if name != "seeds"}
    with Simulation(seed=seed, trace=trace, **shape) as simulation:
        try:
            test(simulation, getattr(module, version))
        except AssertionError as error:
            return str(error)
    return ""


def _outcome(mistake: str, version: str, seed: int) -> Outcome:
    begun = time.process_time()
    try:
        told = problems(mistake, version, seed)
    except Exception as error:
        told = " ".join([repr(error), *getattr(error, "__notes__", ())])
    return seed, told, time.process_time() - begun


def judge(mistake: str, version: str, outcomes: Iterable[Outcome]) -> bool:
    """Print the outcomes of one version, and return whether they are as expected.

    The wrong version is run until its test fails.
    """
    is_wrong = version == "wrong"
    seeds, spent_s, found = 0, 0.0, []
    for seed, told, seconds in outcomes:
        seeds += 1
        spent_s += seconds
        if told:
            found.append(f"seed {seed}: {told}")
            if is_wrong:
                break
    passed = f"{seeds - len(found)} seeds pass, {spent_s / max(seeds, 1) * 1000:.0f} ms each"
    print("\n".join([f"{mistake}, {version}: {passed}", *found]), flush=True)
    return bool(found) == is_wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mistakes", nargs="*", metavar="mistake", help=", ".join(MISTAKES))
    parser.add_argument("--seeds", type=int, default=2000, help="how many the right version gets")
    parser.add_argument("--seed", type=int, help="tell of the wrong version under this one")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    chosen = options.mistakes or MISTAKES
    if options.seed is not None:
        told = [problems(mistake, "wrong", options.seed) for mistake in chosen]
        print("\n".join(told))
        return 0 if all(told) else 1
    results = []
    for mistake in chosen:
        for version in ("wrong", "right"):
            count = WRONG_SEEDS if version == "wrong" else options.seeds
            with multiprocessing.Pool(options.jobs) as pool:  # cancels runs no longer needed
                run = partial(_outcome, mistake, version)
                outcomes = pool.imap(run, range(1, count + 1))
                results.append(judge(mistake, version, outcomes))
    return 0 if all(results) else 1


if __name__ == "__main__":
    if "PYTHONHASHSEED" not in os.environ:  # it decides the order of aiokafka's sets of topics
        os.execve(
            sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"}
        )
    sys.exit(main())
