"""``make oracle-random``: random histories on a simulation and on Kafka, until they differ."""

from __future__ import annotations

import argparse
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from fakekafka.exploration.generator import shrink
from fakekafka.exploration.step import written
from fakekafka.tests.fidelity.histories import generator, judging, keeping
from fakekafka.tests.fidelity.histories.verbs import History
from fakekafka.tests.fidelity.histories.world import possible
from fakekafka.tests.fidelity.sides.kafka import KafkaSide
from fakekafka.tests.fidelity.sides.releases import CannotJudge


class _Judge:
    """Brokers of Kafka on which histories run one after the other."""

    def __init__(self, kafka_version: str) -> None:
        self._kafka_version = kafka_version
        self._side: KafkaSide | None = None
        self.runs = 0

    def judge(self, history: History) -> judging.Verdict:
        self.runs += 1
        if self._side is None:
            self._side = KafkaSide(
                self._kafka_version, judging.SHAPE, judging.of_kafka(self._kafka_version)
            )
        try:
            verdict = judging.judge(self._side, history)
        except CannotJudge:
            raise
        except Exception:
            self.close()
            return judging.Verdict(-1, [], [traceback.format_exc(limit=-4)])
        if verdict.differences or verdict.notes:
            self.close()  # the difference may stem from state that the run left behind
        return verdict

    def differs(self, history: History) -> bool:
        return self.judge(history).differs

    def close(self) -> None:
        if self._side is not None:
            self._side.close()
            if self._side.is_kept:
                print(f"brokers were in {self._side.folder}", flush=True)
            self._side = None


def run(kafka_version: str, seeds: Sequence[int], folder: Path, *, shrinks: bool) -> int:
    """Judge the history of each seed; shrink and save one that differs twice."""
    judge = _Judge(kafka_version)
    equal, by_chance, unjudged, differing = 0, [], [], []
    started = time.monotonic()
    try:
        for seed in seeds:
            history = generator.history(seed, kafka_version)
            begun = time.monotonic()
            verdict = judge.judge(history)
            if verdict.notes:
                verdict = judge.judge(history)
            took = f"{time.monotonic() - begun:.0f} s"
            if verdict.notes:
                unjudged.append(seed)
                print(f"{seed}: {took}, cannot be judged: {'; '.join(verdict.notes)}", flush=True)
            elif not verdict.differences:
                equal += 1
                print(f"{seed}: {took}, equal", flush=True)
            elif not judge.differs(history):
                by_chance.append(seed)
                print(f"{seed}: {took}, differs, but not again", *verdict.differences, sep="\n")
            else:
                differing.append(seed)
                print(f"{seed}: {took}, differs", *verdict.differences, sep="\n", flush=True)
                short: History = history[: verdict.number + 1]
                if shrinks and judge.differs(short):
                    short = shrink(short, judge.differs, possible)
                _keep(folder / f"seed_{seed}.txt", seed, short)
    except CannotJudge as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        judge.close()
        took_s = time.monotonic() - started
        done = equal + len(by_chance) + len(unjudged) + len(differing)
        print(f"{done} histories in {took_s:.0f} s, {took_s / max(done, 1):.1f} s each: "
              f"{equal} equal, differing {differing}, only once {by_chance}, "
              f"not judged {unjudged}", flush=True)  # fmt: skip
    return 1 if differing else 0


def _keep(path: Path, seed: int, history: History) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(written(f"What the history of seed {seed} showed.", history), encoding="utf-8")
    print(f"{path}, to be given a name and moved to {keeping.FOLDER}:")
    print(path.read_text(encoding="utf-8"), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fakekafka.tests.fidelity.histories")
    parser.add_argument("--version", default="3.9")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the first history")
    parser.add_argument("--folder", type=Path, default=Path("out/histories"))
    parser.add_argument("--only-find", action="store_true", help="do not shrink what differs")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # brokers end with it
    seeds = range(given.seed, given.seed + given.count)
    return run(given.version, seeds, given.folder, shrinks=not given.only_find)


if __name__ == "__main__":
    sys.exit(main())
