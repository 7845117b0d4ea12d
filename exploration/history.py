"""A history: a judge, a seed and what happens; run, told and made short."""

from __future__ import annotations

import random
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..protocol.errors import UsageError
from .generator import draw, shrink
from .judges.exactly_once import ExactlyOnce
from .judges.groups import ClassicGroups, ConsumerGroups
from .judges.judge import Judge
from .judges.whole import Whole
from .step import Step, read, written

JUDGES: dict[str, type[Judge]] = {
    judge.name: judge for judge in (Whole, ClassicGroups, ConsumerGroups, ExactlyOnce)
}


@dataclass(frozen=True)
class History:
    """What happens to the cluster that a judge builds from a seed."""

    judge: type[Judge]
    kafka_version: str
    seed: int
    steps: tuple[Step[Any], ...] | None = None
    """None: those that the seed draws."""

    @property
    def command(self) -> str:
        shown = f"--judge {self.judge.name} --version {self.kafka_version} --seed {self.seed}"
        if self.steps is not None:
            shown += f" --steps '{'; '.join(map(str, self.steps))}'"
        return f"python -m fakekafka.exploration.histories {shown} --tell"

    def written(self, about: str) -> str:
        """A file that ``read_history`` reads."""
        return written(f"{about}\n# {self._head}", self.steps or ())

    @property
    def _head(self) -> str:
        return f"{self.judge.name} {self.kafka_version} {self.seed}"


def read_history(path: Path) -> tuple[str, History]:
    """What a file says it is about, and its history; ``UsageError`` if it is none."""
    about, _, rest = path.read_text(encoding="utf-8").partition("\n")
    head, steps = read(rest)
    name, version, seed = head.split()
    if name not in JUDGES:
        raise UsageError(f"{path}: no judge is called {name!r}; there are {', '.join(JUDGES)}")
    return about.removeprefix("# "), History(JUDGES[name], version, int(seed), tuple(steps))


@dataclass(frozen=True)
class Outcome:
    """How a history ended; whole when there are no problems."""

    history: History
    taken: tuple[Step[Any], ...]
    """What was done, also if the seed drew it; what did not apply is left out."""
    problems: tuple[str, ...]
    told: tuple[str, ...]
    virtual_ms: float
    figures: tuple[tuple[str, int], ...]

    @property
    def resolved(self) -> History:
        """The history with the steps that were done."""
        return replace(self.history, steps=self.taken)

    @property
    def kind(self) -> str:
        """The beginning of the first problem: another kind of failure begins differently."""
        return self.problems[0][:24] if self.problems else ""


class Play:
    """A judge's world while a history happens to it."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.taken: list[Step[Any]] = []
        self.told: list[str] = []

    def run(self, steps: Iterable[Step[Any]]) -> list[str]:
        """Let it happen and heal; answers what is wrong then. Each step is done before the next is
        asked for, and one that does not apply is passed over."""
        with self.judge.watching():
            for step in steps:
                at_ms = self.judge.world.simulation.now_ms
                self.taken.append(step)
                self.told.append(f"{at_ms:10.2f} ms  {step}")
                if not step.do(self.judge.world):
                    self.taken.pop()
                    self.told[-1] += " (not possible)"
            self._tell("heal")
            problems = self.judge.end()
            self._tell("judged")
        return problems

    def _tell(self, text: str) -> None:
        self.told.append(f"{self.judge.world.simulation.now_ms:10.2f} ms  {text}")


def drawn_steps(judge: Judge, seed: int) -> Iterator[Step[Any]]:
    return draw(judge.draws, judge.world, random.Random(f"steps-{seed}"))


def run(history: History, trace: str | None = None) -> Outcome:
    """Run it; every problem becomes words, exceptions of the emulation too."""
    problems: list[str] = []
    play: Play | None = None
    try:
        judge = history.judge(history.kafka_version, history.seed, trace is not None)
        play = Play(judge)
        steps = history.steps
        problems = play.run(drawn_steps(judge, history.seed) if steps is None else steps)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        notes = "; ".join(getattr(error, "__notes__", ()))
        problems.append(f"{type(error).__name__}: {error} ({where}) {notes}")
    if play is None:
        return Outcome(history, (), tuple(problems), (), 0.0, ())
    simulation = play.judge.world.simulation
    figures = tuple(play.judge.figures().items())
    if trace is not None:
        simulation.save(trace)
    simulation.stop()
    return Outcome(
        history, tuple(play.taken), tuple(problems), tuple(play.told), simulation.now_ms, figures
    )


def shrunk(outcome: Outcome) -> Outcome:
    """Leave out steps as long as the same kind of problem remains."""
    found = outcome

    def still_shows(steps: Sequence[Step[Any]]) -> bool:
        nonlocal found
        shorter = run(replace(outcome.history, steps=tuple(steps)))
        if shorter.kind == outcome.kind:
            found = shorter
        return shorter.kind == outcome.kind

    shrink(outcome.taken, still_shows)
    return found
