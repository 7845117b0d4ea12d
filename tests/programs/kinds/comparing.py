"""Comparison of runs of every kind under many seeds in several processes.

The processes have different hash seeds in their environment, and different addresses.
"""

from __future__ import annotations

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from fakekafka.tests.support.paths import ROOT

from .runs import KINDS

_HASH_SEEDS = ("0", "1", "random", "4294967295", "77")


class Outcomes(NamedTuple):
    """The outcomes of the processes of one Python."""

    runs: int
    differing: list[str]
    failures: list[str]


def compare(python: str, seeds: int, processes: int, at_once: int = 2) -> Outcomes:
    """Run all kinds in several processes of a Python, and compare their outcomes."""
    hash_seeds = [_HASH_SEEDS[number % len(_HASH_SEEDS)] for number in range(processes)]
    with ThreadPoolExecutor(at_once) as executor:
        given = executor.map(lambda one: _run(python, seeds, *one), enumerate(hash_seeds))
    outcomes: dict[tuple[str, int], dict[str, list[str]]] = {}
    count = 0
    for hash_seed, lines in zip(hash_seeds, given, strict=True):
        for line in lines:
            count += 1
            found = json.loads(line)
            outcome = outcomes.setdefault((found["kind"], found["seed"]), {})
            outcome.setdefault(line, []).append(hash_seed)
    assert len(outcomes) == len(KINDS) * seeds, "a process ended early"
    differing = [
        f"{kind}, seed {seed}: {len(each)} outcomes, under the hash seeds {list(each.values())}"
        for (kind, seed), each in sorted(outcomes.items())
        if len(each) > 1
    ]
    failures = [line for each in outcomes.values() for line in each if json.loads(line)["failure"]]
    return Outcomes(count, differing, failures)


def _run(python: str, seeds: int, number: int, hash_seed: str) -> list[str]:
    """Run all kinds in one process, but those that need a pinned hash seed in another."""
    lines: list[str] = []
    for is_pinned in (False, True):
        kinds = [kind for kind, needs_pin in KINDS.items() if needs_pin is is_pinned]
        flags = ["--pinned"] if is_pinned else []
        environment = {
            **os.environ,
            "PYTHONHASHSEED": hash_seed,
            "PYTHONPATH": os.pathsep.join([_above(), os.environ.get("PYTHONPATH", "")]),
        }
        environment.pop("FAKEKAFKA_PINNED", None)
        flags += [f"--seeds={seeds}", f"--ballast={number}"]
        done = subprocess.run(
            [python, "-m", f"{__package__}.runs", *flags, *kinds],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{python} has failed:\n{done.stderr[-3000:]}")
        lines += done.stdout.splitlines()
    return lines


def _above() -> str:
    """Return the folder above the package if it is named ``fakekafka``, else an empty string."""
    return str(ROOT.parent) if ROOT.name == "fakekafka" else ""
