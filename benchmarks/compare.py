"""``make bench COMPARE=<ref>``: compares a commit with this checkout, in turns on one machine.

python -m benchmarks.compare REF [NAME ...] [--rounds N]

Both sides use this checkout's measurements; only ``fakekafka`` itself differs. Each round runs
each measurement once per side, in the reverse order of the previous round.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from pathlib import Path

from fakekafka import builds
from fakekafka.building.archives import unpack

from benchmarks.figures import FIGURES_VARIABLE, MeasurementFailed, require_success
from benchmarks.run import MEASUREMENTS

ROOT = Path(__file__).parents[1]
USUAL = ("virtual", "throughput", "latency", "start")
"""Measurements that run if no name is given; all measurements take a quarter of an hour a run."""
THERE, HERE = "there", "here"

Values = dict[str, dict[str, dict[int, float]]]
"""First number of a figure, by figure, side and round."""


def check_out(ref: str, into: Path) -> str:
    """Unpack the package as of a commit into a folder; return the commit's short name.

    Raises ``SystemExit`` if there is no such commit.
    """
    lookup = _git("rev-parse", "--verify", "--quiet", "--short", f"{ref}^{{commit}}")
    if lookup.returncode:
        raise SystemExit(f"COMPARE={ref}: there is no such commit in {ROOT}")
    commit = lookup.stdout.decode().strip()
    archive = _git("archive", "--format=tar", commit)
    archive.check_returncode()
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        unpack(tar, into / "fakekafka")
    return commit


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(("git", *arguments), cwd=ROOT, capture_output=True, check=False)


def first_number(figure: str) -> float | None:
    """Return the first number in a figure: 66496 in ``66,496 msg/s``; None if it has none."""
    match = re.search(r"-?\d[\d,]*(?:\.\d+)?", figure)
    return float(match[0].replace(",", "")) if match else None


def figure_names(titles: list[str]) -> list[str]:
    """Return names for a run's figures that are the same in all runs.

    Numbers become ``N``, as they may differ between runs; equal names are numbered.
    """
    counts: defaultdict[str, int] = defaultdict(int)
    names = []
    for title in titles:
        name = re.sub(r"\d[\d,.]*", "N", title.strip())
        counts[name] += 1
        names.append(f"{name} ({counts[name]})" if counts[name] > 1 else name)
    return names


def run_once(name: str, package: Path | None) -> dict[str, tuple[str, float | None]]:
    """Run a measurement once; return its figures by name: the printed title and first number.

    ``package`` is a folder with another ``fakekafka`` than this checkout's. Raises
    ``MeasurementFailed``.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figures"
        environment = {**os.environ, FIGURES_VARIABLE: str(path)}
        if package is not None:
            environment["PYTHONPATH"] = str(package)
        command = [sys.executable, "-m", "benchmarks.run", name]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        require_success(done, done.stderr)
        rows = [json.loads(row) for row in path.read_text(encoding="utf-8").splitlines()]
    names = figure_names([title for title, _ in rows])
    return {
        name: (title.strip(), first_number(figure))
        for name, (title, figure) in zip(names, rows, strict=True)
    }


def report(name: str, titles: dict[str, str], values: Values, rounds: int) -> None:
    """Print each figure's medians, and the ratios of rounds in which both sides have the figure."""
    print(f"\n== {name}\n  {'':58} {'there':>12} {'here':>12}  here / there", flush=True)
    for figure, title in titles.items():
        there, here = values[figure][THERE], values[figure][HERE]
        ratios = [here[r] / there[r] for r in sorted(there.keys() & here.keys()) if there[r]]
        medians = [f"{statistics.median(v.values()):,.6g}" if v else "-" for v in (there, here)]
        if there and here:
            ratio_text = "no ratio"
        else:
            ratio_text = "only on one side" if there or here else "no number"
        if ratios:
            ratio_text = f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
        if len(ratios) < rounds:
            ratio_text += f", {len(ratios)} of {rounds} rounds"
        print(f"  {title:58} {medians[0]:>12} {medians[1]:>12}  {ratio_text}", flush=True)


def compare(ref: str, names: list[str], rounds: int) -> int:
    """Run the measurements and report; return the number of runs that failed."""
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder)
        commit = check_out(ref, package)
        print(f"there: {commit}; here: this checkout; {rounds} rounds in turns, pure Python")
        for name in names:
            titles: dict[str, str] = {}
            values: Values = defaultdict(lambda: {THERE: {}, HERE: {}})
            for number in range(rounds):
                sides = (THERE, HERE) if number % 2 == 0 else (HERE, THERE)
                for side in sides:
                    try:
                        figures = run_once(name, package if side == THERE else None)
                    except MeasurementFailed as failure:
                        print(f"{name}, round {number + 1}, {side}: {failure}", file=sys.stderr)
                        failed += 1
                        continue
                    for figure, (title, value) in figures.items():
                        titles.setdefault(figure, title)
                        if value is not None:
                            values[figure][side][number] = value
            report(name, titles, values, rounds)
    return failed


def main(arguments: list[str]) -> int:
    """Compare; return status 1 if a run failed, 2 for invalid arguments."""
    parser = argparse.ArgumentParser(prog="make bench COMPARE=", description=__doc__)
    parser.add_argument("ref", help="a commit, branch or tag")
    parser.add_argument("names", nargs="*", metavar="NAME", help="measurements to run")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in MEASUREMENTS]
    if unknown or options.rounds < 1:
        problem = f"unknown: {', '.join(unknown)}; there are {', '.join(MEASUREMENTS)}"
        print(
            problem if unknown else f"--rounds {options.rounds}: give at least 1", file=sys.stderr
        )
        return 2
    # Use the source on both sides, as only this checkout may have compiled modules.
    os.environ[builds.VARIABLE] = "pure"
    return int(compare(options.ref, options.names or list(USUAL), options.rounds) > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
