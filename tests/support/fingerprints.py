"""Fingerprints of runs, to compare one build of the package with another.

``python -m fakekafka.tests.support.fingerprints --seeds 20`` prints a line for each history.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from fakekafka import builds
from fakekafka.tests.support.history_world import build
from fakekafka.tests.support.random_histories import draw_history, play
from fakekafka.tracing.recording.recorder import Recorder

VERSIONS = ("1.1", "2.4", "2.8", "3.9")


def fingerprints(seeds: int) -> Iterator[str]:
    """A line for each history: version, seed, fingerprint, the end in virtual ms, problems."""
    for seed in range(1, seeds + 1):
        version = VERSIONS[seed % len(VERSIONS)]
        history = draw_history(version, seed)
        world = build(seed, version, True)
        problems = play(world, history.steps, [])
        recorder = world.simulation.recorder
        assert isinstance(recorder, Recorder)
        yield f"{version} {seed} {recorder.fingerprint()} {world.simulation.now_ms} {problems}"
        world.simulation.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Fingerprints of random histories.")
    parser.add_argument("--seeds", type=int, default=20)
    print(f"({builds.running})")
    for line in fingerprints(parser.parse_args().seeds):
        print(line, flush=True)
