"""Reads kept histories, which are files of steps, as scenarios."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fakekafka.exploration.step import read
from fakekafka.tests.fidelity.histories import playing
from fakekafka.tests.fidelity.histories.generator import is_offered
from fakekafka.tests.fidelity.histories.judging import SHAPE
from fakekafka.tests.fidelity.histories.verbs import History
from fakekafka.tests.fidelity.stage.declaring import SINCE_2_8, Scenario
from fakekafka.tests.fidelity.stage.stage import Stage

FOLDER = Path(__file__).with_name("kept")


def scenarios() -> Iterator[Scenario]:
    for path in sorted(FOLDER.glob("*.txt")):
        about, steps = read(path.read_text(encoding="utf-8"))
        yield _scenario(path.stem, about, steps)


def _scenario(name: str, about: str, steps: History) -> Scenario:
    def run(stage: Stage) -> None:
        playing.prepare(stage)
        playing.play(stage, steps)

    run.__doc__ = about
    versions = [
        version for version in SINCE_2_8 if all(is_offered(version, step.verb) for step in steps)
    ]
    return Scenario(name, run, versions, SHAPE, controller=None)
