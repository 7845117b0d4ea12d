"""Random histories: a cluster under load, faults, healing; then everything has to be whole.

``python -m fakekafka.tests.support.random_histories --version 3.9 --runs 2000 --seed 1 --jobs 2``
runs the
seeds 1 to 2000. A history that does not end whole is told with the command that repeats it;
``--shrink`` leaves out of it what it can do without, ``--tell`` says what happens in it.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fakekafka.tests.support.history_end import heal, verdict
from fakekafka.tests.support.history_steps import Step, draw_steps, parse_step, take
from fakekafka.tests.support.history_world import World, build, draw_options


@dataclass(frozen=True)
class History:
    """A cluster and what happens to it; the seed decides all but the steps given."""

    version: str
    seed: int
    steps: tuple[Step, ...]

    @property
    def command(self) -> str:
        shown = f"--version {self.version} --seed {self.seed}"
        if self.steps != draw_steps(self.seed):
            shown += " --steps " + ",".join(map(str, self.steps))
        return f"python -m fakekafka.tests.support.random_histories {shown} --tell"


@dataclass(frozen=True)
class Outcome:
    """How a history ended; whole when there are no problems."""

    history: History
    problems: tuple[str, ...]
    told: tuple[str, ...]
    virtual_ms: float
    acknowledged: int

    @property
    def kind(self) -> str:
        """The beginning of the first problem: another kind of failure begins differently."""
        return self.problems[0][:24] if self.problems else ""


def draw_history(version: str, seed: int) -> History:
    return History(version, seed, draw_steps(seed))


def run(history: History, trace: str | None = None) -> Outcome:
    """Run it; every problem becomes words, exceptions of the emulation too."""
    told: list[str] = []
    problems: list[str] = []
    world: World | None = None
    try:
        world = build(history.seed, history.version, trace is not None)
        problems = play(world, history.steps, told)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        notes = "; ".join(getattr(error, "__notes__", ()))
        problems.append(f"{type(error).__name__}: {error} ({where}) {notes}")
    virtual_ms, acknowledged = 0.0, 0
    if world is not None:
        virtual_ms, acknowledged = world.simulation.now_ms, len(world.acknowledged)
        if trace is not None:
            world.simulation.save(trace)
        world.simulation.stop()
    return Outcome(history, tuple(problems), tuple(told), virtual_ms, acknowledged)


def play(world: World, steps: tuple[Step, ...], told: list[str]) -> list[str]:
    """Let it happen and heal; answers what is not whole, and adds what happened to ``told``."""
    with world.note_cuts(), world.note_drops():
        for step in steps:
            at_ms = world.simulation.now_ms
            said = take(world, step)
            if said is not None:
                told.append(f"{at_ms:10.2f} ms  {said}")
        told.append(f"{world.simulation.now_ms:10.2f} ms  heal")
        heal(world)
        told.append(f"{world.simulation.now_ms:10.2f} ms  whole")
    return verdict(world)


def shrink(outcome: Outcome) -> Outcome:
    """Leave out steps as long as the same kind of problem remains."""
    steps = outcome.history.steps
    size = max(1, len(steps) // 2)
    while True:
        index = 0
        while index < len(steps):
            fewer = steps[:index] + steps[index + size :]
            shorter = run(History(outcome.history.version, outcome.history.seed, fewer))
            if shorter.kind == outcome.kind:
                outcome, steps = shorter, fewer
            else:
                index += size
        if size == 1:
            return outcome
        size //= 2


def tell(outcome: Outcome, at_length: bool) -> None:
    if at_length:
        print(draw_options(outcome.history.seed))
        print("\n".join(outcome.told))
    if outcome.problems:
        print(f"seed {outcome.history.seed} ({outcome.history.version}): not whole")
        for problem in outcome.problems:
            print(f"  {problem[:1000]}")
        print(f"  {outcome.history.command}", flush=True)


def _run_seed(task: tuple[str, int]) -> Outcome:
    return run(draw_history(*task))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Random histories that have to end whole.")
    parser.add_argument("--version", default="3.9")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--steps", help="these instead of those the seed gives")
    parser.add_argument("--tell", action="store_true", help="say what happens")
    parser.add_argument("--shrink", action="store_true", help="leave out what is not needed")
    parser.add_argument("--trace", help="record the (one) run to this file")
    chosen = parser.parse_args(arguments)
    logging.getLogger("fakekafka").addHandler(logging.NullHandler())
    began = time.monotonic()
    if chosen.steps is not None or chosen.trace is not None:
        steps = draw_steps(chosen.seed)
        if chosen.steps is not None:
            steps = tuple(map(parse_step, filter(None, chosen.steps.split(","))))
        outcomes = [run(History(chosen.version, chosen.seed, steps), chosen.trace)]
        failed = _judge(iter(outcomes), chosen)
    else:
        tasks = [(chosen.version, seed) for seed in range(chosen.seed, chosen.seed + chosen.runs)]
        if chosen.jobs > 1:
            with multiprocessing.get_context("spawn").Pool(chosen.jobs) as pool:
                failed = _judge(pool.imap(_run_seed, tasks, chunksize=4), chosen)
        else:
            failed = _judge(map(_run_seed, tasks), chosen)
    print(
        f"{failed} of {chosen.runs} histories did not end whole; {time.monotonic() - began:.0f} s"
    )
    return 1 if failed else 0


def _judge(outcomes: Iterator[Outcome], chosen: argparse.Namespace) -> int:
    failed = 0
    for number, outcome in enumerate(outcomes, 1):
        if outcome.problems:
            failed += 1
            if chosen.shrink:
                outcome = shrink(outcome)
        tell(outcome, chosen.tell or (chosen.shrink and bool(outcome.problems)))
        if number % 100 == 0 and number < chosen.runs:
            print(f"{number} of {chosen.runs} so far, {failed} not whole", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
