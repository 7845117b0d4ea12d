"""Runs of the twelve kinds of programs in this process, each reported as a line of JSON."""

from __future__ import annotations

import argparse
import importlib
import json
import logging
from collections.abc import Iterable, Iterator
from typing import Any

from fakekafka import Simulation
from fakekafka.testing.programs.again import allocate_padding
from fakekafka.testing.recording.hash_seed import pin_hash_seed

KINDS = {
    "administration": True,
    "chance_and_executors": False,
    "consumer_group": True,
    "faststream_service": True,
    "http_services": False,
    "idempotent_producer": True,
    "killed_and_restarted": True,
    "kstreams_service": True,
    "sasl": True,
    "streams": False,
    "tasks_and_timeouts": False,
    "transactions": True,
}
"""True for a kind that needs a pinned hash seed, as its library iterates over sets of strings."""


def run(kind: str, seed: int) -> dict[str, Any]:
    """Run one kind under one seed, and return what must be equal in every process."""
    module = importlib.import_module(f"{__package__}.{kind}")
    failure = None
    with Simulation(**{"seed": seed, **module.OPTIONS}) as simulation:
        try:
            module.run(simulation)
        except Exception as error:  # an outcome, too
            failure = f"{type(error).__name__}: {error}"
        notes = len(simulation.notes())
    return {
        "kind": kind,
        "seed": seed,
        "fingerprint": simulation.fingerprint,
        "events": len(simulation.events),
        "notes": notes,
        "failure": failure,
    }


def runs(kinds: Iterable[str], seeds: int) -> Iterator[dict[str, Any]]:
    """Run each kind under the seeds from 1 to a number, and yield the outcomes."""
    for kind in kinds:
        for seed in range(1, seeds + 1):
            yield run(kind, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, required=True)
    parser.add_argument("--ballast", type=int, default=0)
    parser.add_argument("--pinned", action="store_true")
    parser.add_argument("kinds", nargs="+")
    options = parser.parse_args()
    if options.pinned:
        pin_hash_seed(0)
    logging.disable()
    held = allocate_padding(options.ballast)
    for outcome in runs(options.kinds, options.seeds):
        print(json.dumps(outcome), flush=True)
    del held


if __name__ == "__main__":
    main()
