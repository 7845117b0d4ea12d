"""An exploration that ends with the first promise that breaks and that nothing known explains.

python -m fakekafka.tests.mutants.exploring VERSION RUNS [TARGET]

Its runs are those of ``fakekafka explore`` with these options, one after the other. It prints the
promise and the number of runs, and ends with 1 if one broke.
"""

from __future__ import annotations

import logging
import sys

from fakekafka.exploration.explorer import ClusterExploration
from fakekafka.exploration.settings import Settings

FIRST_SEED = 1
"""That of ``fakekafka explore`` where none is given."""


def first_broken(version: str, runs: int, target: str | None) -> tuple[str, int]:
    """The first promise that broke, empty if none did, and the number of runs up to there."""
    exploration = ClusterExploration(Settings(version, FIRST_SEED, runs, None, target))
    for trials in exploration.rounds():
        work = exploration.work(trials)
        results = []
        for trial in trials:
            result = work.carry_out(trial, "").row["result"]
            results.append(result)
            for violation in result.violations:
                if not violation.known:
                    return violation.promise, len(exploration.done) + len(results)
        reached = frozenset(exploration.reached)
        exploration.add_results(results, [result.reached - reached for result in results])
    return "", len(exploration.done)


def main(version: str, runs: str, target: str = "") -> int:
    logging.getLogger("fakekafka").addHandler(logging.NullHandler())
    promise, done = first_broken(version, int(runs), target or None)
    print(promise or "none", done)
    return 1 if promise else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
