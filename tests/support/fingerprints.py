"""Fingerprints of runs, to compare one build of the package with another.

``python -m fakekafka.tests.support.fingerprints --seeds 20`` prints a line for each history.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from fakekafka import builds
from fakekafka.exploration.history import Play, drawn_steps
from fakekafka.exploration.targets.cluster import LoadedCluster
from fakekafka.tracing.recording.recorder import Recorder

VERSIONS = ("1.1", "2.4", "2.8", "3.9")


def fingerprints(seeds: int) -> Iterator[str]:
    """Yield per history: version, seed, fingerprint, end in virtual ms, and problems."""
    for seed in range(1, seeds + 1):
        version = VERSIONS[seed % len(VERSIONS)]
        target = LoadedCluster(version, seed, True)
        problems = Play(target).run(drawn_steps(target, seed))
        simulation = target.world.simulation
        recorder = simulation.recorder
        assert isinstance(recorder, Recorder)
        yield f"{version} {seed} {recorder.fingerprint()} {simulation.now_ms} {problems}"
        simulation.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Fingerprints of random histories.")
    parser.add_argument("--seeds", type=int, default=20)
    print(f"({builds.running})")
    for line in fingerprints(parser.parse_args().seeds):
        print(line, flush=True)
