"""Carries the log directory of a broker, and the state in ZooKeeper, to another cluster."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from fakekafka.testing.cluster import Cluster
from fakekafka.testing.defaults import kafka_defaults
from fakekafka.tests.fidelity.files.story import Story, observe
from fakekafka.tests.fidelity.sides.embedded import EmbeddedSide
from fakekafka.tests.fidelity.sides.kafka import KafkaSide
from fakekafka.tests.fidelity.sides.real_time import RealTimeSide
from fakekafka.tests.fidelity.sides.side import ClusterShape
from fakekafka.tests.fidelity.stage import groups
from fakekafka.tests.fidelity.stage.stage import Stage

SHAPE = ClusterShape(
    brokers=1,
    racks=(),
    config=(
        ("auto.create.topics.enable", "false"),
        ("log.cleaner.backoff.ms", "200"),
        ("log.retention.check.interval.ms", "3600000"),
    ),
)
_EPHEMERAL = ("/controller", "/brokers/ids/", "/zookeeper")
_BROKER = 1

Znodes = Sequence[tuple[str, bytes]]


class Carried(NamedTuple):
    """The content before and after, and the other cluster's answers to further requests."""

    before: dict[str, Any]
    after: dict[str, Any]
    next: dict[str, Any]
    notes: list[str]


class OurSide(EmbeddedSide):
    """A ``Cluster`` with a data directory."""

    def __init__(self, kafka_version: str, data_dir: Path) -> None:
        RealTimeSide.__init__(self, kafka_version, SHAPE)
        self.cluster = Cluster(
            SHAPE.brokers,
            kafka_version=kafka_version,
            config={**kafka_defaults(kafka_version), **SHAPE.configuration()},
            data_dir=data_dir,
        )
        self.cluster.start()
        self.up = set(self.broker_ids)
        self.zookeeper_connect = self.cluster.zookeeper_connect
        self.addresses[_BROKER] = ("127.0.0.1", self.cluster.broker(_BROKER).port)


class TheirSide(KafkaSide):
    """A broker of Kafka that starts on a given log directory and given znodes."""

    def __init__(self, kafka_version: str, logs: Path | None = None, znodes: Znodes = ()) -> None:
        self._logs: Path | None = logs
        self._carried = znodes
        memory = ("log.cleaner.dedupe.buffer.size", "4194304")  # the heap is small
        super().__init__(kafka_version, replace(SHAPE, config=(*SHAPE.config, memory)))

    def begin_start(self, broker: int, option: str | None = None) -> None:
        if self._logs is not None:
            shutil.copytree(self._logs, self.log_folder(broker, "logs"))
            write_znodes(self, self._carried)
            self._logs = None
        super().begin_start(broker, option)


def znodes(side: RealTimeSide, path: str = "/") -> Iterator[tuple[str, bytes]]:
    """Yield all persistent znodes, parents first."""
    for name in side.children(path) or ():
        child = f"{path.rstrip('/')}/{name}"
        found = side.znode(child)
        if found is None or child in _EPHEMERAL or child.startswith("/brokers/ids/"):
            continue
        yield child, found.data
        yield from znodes(side, child)


def write_znodes(side: RealTimeSide, wanted: Znodes) -> None:
    for path, data in wanted:
        if not side.create_znode(path, data):
            side.set_znode(path, data)


def carry(kafka_version: str, *, to_kafka: bool, way: str) -> Carried:
    """Write on one cluster, end it as ``way`` says, and read on the other."""
    with tempfile.TemporaryDirectory(prefix="fakekafka-carried-") as folder:
        ours = Path(folder) / "ours"
        first: RealTimeSide = OurSide(kafka_version, ours) if to_kafka else TheirSide(kafka_version)
        try:
            stage = Stage(first)
            story = Story(stage)
            before = observe(stage)
            notes = stage.notes
            (first.kill if way == "kill" else first.stop)(_BROKER)
            stage.wait_gone(_BROKER)
            kept = list(znodes(first))
            logs = Path(folder) / "logs"
            origin = ours / f"broker-{_BROKER}"
            if not to_kafka:
                origin = first.log_folder(_BROKER, "logs")  # type: ignore[attr-defined]
            shutil.copytree(origin, logs)
        finally:
            first.close()
        second: RealTimeSide = (
            TheirSide(kafka_version, logs, kept)
            if to_kafka
            else _ours_on(kafka_version, Path(folder) / "second", logs, kept)
        )
        try:
            stage = Stage(second)
            groups.wait_coordinator(stage, _BROKER)
            after = observe(stage)
            return Carried(before, after, story.go_on(stage), notes + stage.notes)
        finally:
            second.close()


def _ours_on(kafka_version: str, data_dir: Path, logs: Path, kept: Znodes) -> OurSide:
    """Start our cluster on Kafka's znodes and log directory."""
    side = OurSide(kafka_version, data_dir)
    try:
        side.stop(_BROKER)
        side.wait(lambda: not side.children("/brokers/ids"), 30)
        write_znodes(side, kept)
    finally:
        side.close()
    own = data_dir / f"broker-{_BROKER}"
    shutil.rmtree(own)
    shutil.copytree(logs, own, ignore=shutil.ignore_patterns(".lock"))
    return OurSide(kafka_version, data_dir)
