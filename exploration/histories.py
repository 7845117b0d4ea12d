"""Random histories from the command line.

``python -m fakekafka.exploration.histories --version 3.9 --runs 2000 --seed 1 --jobs 2`` runs the
seeds 1 to 2000. A history with problems is told with the command that repeats it; ``--shrink``
leaves out of it what it can do without, ``--tell`` says what happens in it.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from .history import TARGETS, History, Outcome, read_history, run
from .shrinking import shrunk
from .step import parse_step


def tell(outcome: Outcome, at_length: bool) -> None:
    history = outcome.history
    if at_length:
        print("\n".join(outcome.told))
    if outcome.violations:
        print(f"seed {history.seed} ({history.target.name}, {history.kafka_version}): not whole")
        for violation in outcome.violations:
            print(f"  {str(violation)[:1000]}")
        print(f"  {history.command}", flush=True)


def _histories(chosen: argparse.Namespace) -> list[History]:
    if chosen.file is not None:
        return [read_history(chosen.file)[1]]
    target, version = TARGETS[chosen.target], chosen.version
    if chosen.steps is not None:
        steps = tuple(parse_step(line) for line in chosen.steps.split(";") if line.strip())
        return [History(target, version, chosen.seed, steps)]
    seeds = range(chosen.seed, chosen.seed + chosen.runs)
    return [History(target, version, seed) for seed in seeds]


def _judge(outcomes: Iterator[Outcome], chosen: argparse.Namespace) -> int:
    failed, figures = 0, Counter[str]()
    began = time.monotonic()
    for number, outcome in enumerate(outcomes, 1):
        figures.update(dict(outcome.figures))
        failed += bool(outcome.unexplained)
        if outcome.violations:
            if chosen.shrink:
                outcome = shrunk(outcome, outcome.violations[0].signature).outcome
            if chosen.keep is not None:
                chosen.keep.mkdir(parents=True, exist_ok=True)
                file = chosen.keep / f"{outcome.history.target.name}_{outcome.history.seed}.txt"
                about = f"{str(outcome.violations[0])[:90]}."
                file.write_text(outcome.resolved.written(about), encoding="utf-8")
        tell(outcome, chosen.tell or (chosen.shrink and bool(outcome.violations)))
        if number % 100 == 0 and number < chosen.runs:
            print(f"{number} of {chosen.runs} so far, {failed} not whole", flush=True)
    told = ", ".join(f"{count} {name}" for name, count in figures.items())
    took_s = time.monotonic() - began
    print(f"{failed} of {chosen.runs} histories did not end whole; {told}; {took_s:.0f} s")
    return 1 if failed else 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Random histories that have to end whole.")
    parser.add_argument("--target", default="cluster", choices=TARGETS)
    parser.add_argument("--version", default="3.9")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--steps", help="these instead of those the seed draws; ; between them")
    parser.add_argument("--file", type=Path, help="a history that was kept")
    parser.add_argument("--tell", action="store_true", help="say what happens")
    parser.add_argument("--shrink", action="store_true", help="leave out what is not needed")
    parser.add_argument("--keep", type=Path, help="write what does not end whole to this folder")
    parser.add_argument("--trace", help="record the (one) run to this file")
    chosen = parser.parse_args(arguments)
    logging.getLogger("fakekafka").addHandler(logging.NullHandler())
    histories = _histories(chosen)
    if chosen.jobs > 1:
        with multiprocessing.get_context("spawn").Pool(chosen.jobs) as pool:
            return _judge(pool.imap(run, histories, chunksize=4), chosen)
    return _judge((run(history, chosen.trace) for history in histories), chosen)


if __name__ == "__main__":
    sys.exit(main())
