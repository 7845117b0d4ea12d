"""``make oracle``: runs scenarios on brokers of Kafka and records the results."""

from __future__ import annotations

import argparse
import datetime
import signal
import sys
import time
import traceback

from fakekafka.tests.fidelity import catalogue, comparison, recording, running
from fakekafka.tests.fidelity.sides.embedded import EmbeddedSide
from fakekafka.tests.fidelity.sides.kafka import KafkaSide
from fakekafka.tests.fidelity.sides.real_time import RealTimeSide
from fakekafka.tests.fidelity.sides.releases import CannotJudge, jars, release
from fakekafka.tests.fidelity.stage.declaring import Scenario
from fakekafka.tests.fidelity.wire import playing


class _Recorder:
    """Runs scenarios one by one; those of the same shape share brokers."""

    def __init__(self, kafka_version: str, *, again: bool) -> None:
        self._kafka_version = kafka_version
        self._again = again
        self._side: KafkaSide | None = None

    def record(self, scenario: Scenario) -> bool:
        """Run a scenario and save the recording; return False if the run cannot be used."""
        started = time.monotonic()
        try:
            stage = running.play(scenario, self._brokers(scenario))
        except CannotJudge:
            raise
        except Exception:
            print(f"{scenario.name}: failed", flush=True)
            traceback.print_exc()
            self.close()
            return False
        took_s = time.monotonic() - started
        if stage.notes:
            print(
                f"{scenario.name}: {took_s:.0f} s, not kept: {'; '.join(stage.notes)}", flush=True
            )
            self.close()
            return False
        print(
            f"{scenario.name}: {took_s:.0f} s, {self._keep(scenario.name, stage.steps)}", flush=True
        )
        return True

    def _brokers(self, scenario: Scenario) -> KafkaSide:
        if self._side is None or self._side.shape != scenario.shape:
            self.close()
            self._side = KafkaSide(self._kafka_version, scenario.shape)
        return self._side

    def _keep(self, name: str, steps: recording.Steps) -> str:
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        known = recording.load(self._kafka_version, name)
        exact = release(self._kafka_version).version
        if known is None or self._again:
            kept, outcome = recording.Recording(exact), "recorded"
        else:
            changed = comparison.differences(known, steps)
            kept, outcome = known, f"{len(changed)} new outcomes" if changed else "as before"
        try:
            kept.add(steps, today)
        except recording.OtherSteps:
            return "other steps than before: record it anew with --again"
        recording.save(self._kafka_version, name, kept)
        return outcome

    def close(self) -> None:
        if self._side is not None:
            self._side.close()
            self._side = None


def record(kafka_version: str, names: tuple[str, ...], *, again: bool, missing: bool) -> int:
    """Record scenarios, and repeat a run that cannot be used once."""
    chosen = catalogue.chosen(kafka_version, names)
    if missing:
        chosen = [s for s in chosen if recording.load(kafka_version, s.name) is None]
    chosen.sort(key=lambda s: (s.shape.brokers, s.shape.config, s.shape.racks))
    recorder = _Recorder(kafka_version, again=again)
    failed = []
    try:
        for scenario in chosen:
            if not recorder.record(scenario) and not recorder.record(scenario):
                failed.append(scenario.name)
    except CannotJudge as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        recorder.close()
    if failed:
        print(f"not recorded: {', '.join(failed)}")
    return 1 if failed else 0


def compare(kafka_version: str, names: tuple[str, ...], *, over_tcp: bool) -> int:
    """Run scenarios on this project and print the differences from the recordings."""
    unequal = 0
    for scenario in catalogue.chosen(kafka_version, names):
        known = recording.load(kafka_version, scenario.name)
        if known is None:
            print(f"{scenario.name}: not recorded")
            continue
        if over_tcp:
            side: RealTimeSide = EmbeddedSide(kafka_version, scenario.shape)
            try:
                stage = running.play(scenario, side)
            finally:
                side.close()
        else:
            stage = running.simulate(scenario, kafka_version)
        found = comparison.differences(known, stage.steps)
        unequal += bool(found)
        print(f"{scenario.name}: {len(found)} differences {stage.notes or ''}", flush=True)
        for difference in found:
            print(difference)
    return 1 if unequal else 0


def load_jars(kafka_version: str) -> int:
    """Download the jars of a release to the folder where tests look for them."""
    try:
        print(jars(kafka_version))
    except CannotJudge as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fakekafka.tests.fidelity")
    parser.add_argument("verb", choices=["record", "compare", "record-wire", "load-jars"])
    parser.add_argument("--version", required=True)
    parser.add_argument("--again", action="store_true", help="forget earlier recordings")
    parser.add_argument("--missing", action="store_true", help="only what was never recorded")
    parser.add_argument("--tcp", action="store_true", help="compare a Cluster, not a Simulation")
    parser.add_argument("names", nargs="*", help="words that names contain")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # brokers end with it
    given = parser.parse_intermixed_args()
    names = tuple(given.names)
    if given.verb == "load-jars":
        return load_jars(given.version)
    if given.verb == "record-wire":
        try:
            count = playing.record(given.version, again=given.again)
            print(f"{count} answers of Kafka {given.version}")
        except CannotJudge as error:
            print(error, file=sys.stderr)
            return 2
        return 0
    if given.verb == "record":
        return record(given.version, names, again=given.again, missing=given.missing)
    return compare(given.version, names, over_tcp=given.tcp)


if __name__ == "__main__":
    sys.exit(main())
