"""``make bench-peers``: the same work for fakekafka, other fakes of Kafka, and Kafka itself.

python -m benchmarks.peers [NAME ...] [--rounds N]

Each cluster has three brokers and processes of its own; the client is librdkafka in all cases. A
round starts, measures and stops every cluster, and each round begins with a different one. A
cluster that is not available here, or fails, is reported in one line with the reason.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from fakekafka import builds
from fakekafka.tests.fidelity.protocol.client import Client, Closed
from fakekafka.tests.fidelity.sides import releases
from fakekafka.tests.fidelity.sides.kafka import BrokerFailed, KafkaSide
from fakekafka.tests.fidelity.sides.side import CONFIG, ClusterShape
from fakekafka.tests.fidelity.sides.socket_line import SocketLine
from fakekafka.tests.suites.machine import SuiteError, cache_folder, prepare, require_tools

from benchmarks.client import LoadClient
from benchmarks.figures import (
    IS_SMALL,
    MeasurementFailed,
    announced_cluster,
    line,
    mock_command,
    sized,
    spread,
)

PARTITIONS = 3
LOADS = sized(((100, 300_000), (1000, 100_000)), ((100, 300), (1000, 300)))
"""Pairs of bytes per record and number of records."""
TIMED = sized(2000, 50)
ROUNDS = sized(5, 1)
_CONFIG = {"num.partitions": str(PARTITIONS), "default.replication.factor": "3"}
"""Settings with which topics are created on first use, as the mock cluster has no other way."""
_KAFKA_VERSION = "3.9"
_KAFKA_HEAP = ("-Xmx1g", "-XX:+UseG1GC")
"""Heap and garbage collector of a broker, as in Kafka's own start script."""

Cluster = tuple[str, list[int]]
"""Bootstrap servers, and the ids of the processes whose memory is measured."""


class ClusterUnavailable(Exception):
    """A cluster is not available here; the text names what is missing."""


@contextlib.contextmanager
def _fakekafka() -> Iterator[Cluster]:
    settings = [f"--config={name}={value}" for name, value in _CONFIG.items()]
    command = [sys.executable, "-m", "fakekafka", "serve", "--log", "off", *settings]
    with announced_cluster(command) as (servers, process):
        yield servers, [process]


@contextlib.contextmanager
def _mock() -> Iterator[Cluster]:
    with announced_cluster(mock_command()) as (servers, process):
        yield servers, [process]


def _kfake_program() -> Path:
    """Return the program that serves kfake, compiling it if necessary."""
    try:
        require_tools(["go"])
        source = Path(__file__).parent / "kfake_server"
        program = cache_folder("kfake") / "kfake_server"
        prepare(["go", "build", "-o", program, "."], source)
    except SuiteError as error:
        raise ClusterUnavailable(" ".join(str(error).split())) from None
    return program


@contextlib.contextmanager
def _kfake() -> Iterator[Cluster]:
    with announced_cluster([str(_kfake_program())]) as (servers, process):
        yield servers, [process]


def _download_kafka() -> None:
    try:
        releases.require("java", "Java 17, to run Kafka's brokers")
        releases.jars(_KAFKA_VERSION)
    except releases.CannotJudge as error:
        raise ClusterUnavailable(" ".join(str(error).split())) from None


@contextlib.contextmanager
def _kafka() -> Iterator[Cluster]:
    defaults: dict[str, str | None] = dict.fromkeys(CONFIG)
    shape = ClusterShape(config=tuple({**defaults, **_CONFIG}.items()))
    try:
        side = KafkaSide(_KAFKA_VERSION, shape, java_options=_KAFKA_HEAP)
    except (BrokerFailed, releases.CannotJudge) as error:
        raise MeasurementFailed("Kafka does not start", str(error)) from None
    with contextlib.closing(side):
        servers = ",".join(f"{host}:{port}" for host, port in side.addresses.values())
        yield servers, side.all_process_ids


OURS = "fakekafka"
PEERS: dict[str, tuple[Callable[[], contextlib.AbstractContextManager[Cluster]], str]] = {
    OURS: (_fakekafka, f"fakekafka ({builds.running})"),
    "mock": (_mock, "librdkafka's mock cluster"),
    "kfake": (_kfake, "kfake of franz-go"),
    "kafka": (_kafka, f"Apache Kafka {releases.release(_KAFKA_VERSION).version}"),
}
"""Function that runs a cluster, and the cluster's title, by name."""
PREPARATIONS: dict[str, Callable[[], object]] = {"kfake": _kfake_program, "kafka": _download_kafka}
"""Functions that download and compile what is needed before the first round; they raise
``ClusterUnavailable``."""

START = "start to the first Metadata answered, ms"
MEMORY = "resident memory after the start, MB"
FULL_MEMORY = "  with all records, MB"
SINGLE_RECORD = "one record at a time, acks=all: median, us"
KEPT_RECORDS = "records kept and read back, %"
RATE = "{what} {size} B, k/s"
FIGURES = (
    START,
    SINGLE_RECORD,
    *(RATE.format(what=what, size=size) for size, _ in LOADS for what in ("produce", "consume")),
    KEPT_RECORDS,
    MEMORY,
    FULL_MEMORY,
)
"""Figures in the order of printing; ``consume`` is missing if the first fetch had all records."""


def measure_once(name: str) -> dict[str, float]:
    """Start a cluster, load it and stop it; return its figures. Raises ``MeasurementFailed``."""
    figures: dict[str, float] = {}
    started = time.perf_counter()
    with PEERS[name][0]() as (servers, processes):
        _wait_metadata(servers)
        figures[START] = (time.perf_counter() - started) * 1000
        figures[MEMORY] = resident_mb(processes)
        with LoadClient(servers) as client:
            figures[SINGLE_RECORD] = client.time_records("one", TIMED)["median_us"]
            written, read = TIMED, client.fetch("one", PARTITIONS)["records"]
            for size, count in LOADS:
                topic = f"of-{size}-bytes"
                produced = client.produce(topic, PARTITIONS, size, count)
                fetched = client.fetch(topic, PARTITIONS)
                rate = produced["records"] / produced["seconds"]
                figures[RATE.format(what="produce", size=size)] = rate / 1e3
                if fetched["timed_records"]:
                    rate = fetched["timed_records"] / fetched["seconds"]
                    figures[RATE.format(what="consume", size=size)] = rate / 1e3
                written += produced["records"] + PARTITIONS  # one untimed record each
                read += fetched["records"]
        figures[KEPT_RECORDS] = 100 * read / written
        figures[FULL_MEMORY] = resident_mb(processes)
    return figures


def _wait_metadata(servers: str) -> None:
    host, _, port = servers.partition(",")[0].partition(":")
    client = Client(SocketLine(host, int(port)))
    try:
        client.ask("Metadata", 1, {"topics": []})
    except Closed as closed:
        raise MeasurementFailed("no Metadata", str(closed)) from None
    finally:
        client.close()


def resident_mb(processes: list[int]) -> float:
    """Return the resident memory of processes in MB; shared pages count for each of them."""
    pages = [int(Path(f"/proc/{process}/statm").read_text().split()[1]) for process in processes]
    return sum(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


def report(figures_by_peer: dict[str, dict[int, dict[str, float]]]) -> None:
    """Print medians with minimum and maximum, and the ratios of our figures to theirs per round.

    ``figures_by_peer`` has the figures of each peer's rounds.
    """
    for title in FIGURES:
        print(f"  {title}")
        ours = {
            number: figures[title]
            for number, figures in figures_by_peer[OURS].items()
            if title in figures
        }
        for peer, rounds in figures_by_peer.items():
            values = {
                number: figures[title] for number, figures in rounds.items() if title in figures
            }
            common_rounds = [n for n in values if n in ours and values[n] and peer != OURS]
            ratios = [ours[number] / values[number] for number in common_rounds]
            ratio_text = f"ours / theirs {spread(ratios, 2)}" if ratios else ""
            value_text = spread(list(values.values()), 1) if values else "no figure"
            line(f"  {PEERS[peer][1]}", value_text, ratio_text)


def prepare_peers(names: list[str]) -> list[str]:
    """Prepare what peers need; return the available ones, and print why others are not."""
    available = []
    for name in names:
        try:
            if name in PREPARATIONS:
                PREPARATIONS[name]()
        except ClusterUnavailable as error:
            print(f"{PEERS[name][1]}: not available here: {error}", flush=True)
        else:
            available.append(name)
    return available


def compare(names: list[str], rounds: int) -> int:
    """Measure peers beside fakekafka and report; return the number of failures."""
    available = prepare_peers(names)
    failed = len(names) - len(available)
    peers = [OURS, *(name for name in available if name != OURS)]
    figures_by_peer: dict[str, dict[int, dict[str, float]]] = {peer: {} for peer in peers}
    for number in range(rounds):
        first = number % len(peers)
        for peer in (*peers[first:], *peers[:first]):
            try:
                figures_by_peer[peer][number] = measure_once(peer)
            except MeasurementFailed as failure:
                print(f"{PEERS[peer][1]}, round {number + 1}: {failure}", flush=True)
                failed += 1
    report(figures_by_peer)
    return failed


def main(arguments: list[str]) -> int:
    """Compare; return status 1 if a peer is missing or a run failed, 2 for invalid arguments."""
    parser = argparse.ArgumentParser(prog="make bench-peers", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"peers: {', '.join(PEERS)}")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--get", action="store_true", help="get what they need, measure nothing")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in PEERS]
    if unknown or options.rounds < 1:
        problem = f"unknown: {', '.join(unknown)}; there are {', '.join(PEERS)}"
        print(
            problem if unknown else f"--rounds {options.rounds}: give at least 1", file=sys.stderr
        )
        return 2
    names = options.names or list(PEERS)
    if options.get:
        return int(len(prepare_peers(names)) < len(names))
    size = ", at a small size: the figures say nothing" if IS_SMALL else ""
    print(f"\n== peers, {options.rounds} rounds in turns{size}", flush=True)
    return int(compare(names, options.rounds) > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
