"""``fakekafka demo``: a real client, a killed leader, nothing lost; then a hundred simulations.

If no Kafka client is installed, modelled clients do the same in virtual time.
"""

from __future__ import annotations

import threading
import time
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self

import typer
from rich.console import Console
from rich.markup import escape

from .exits import ended_by_sigterm

if TYPE_CHECKING:
    from ..testing.checks import Verdict
    from ..testing.cluster import Cluster

app: typer.Typer = typer.Typer(add_completion=False)
console: Console = Console()

TOPIC = "orders"
RECORDS = 20_000
MODELLED_RECORDS = 2_000
SIMULATIONS = 100
_LOOK_S = 0.1
"""Interval in seconds at which waits check whether the tour has been ended."""


class _Producing:
    """A confluent-kafka producer in a thread of its own, with acks=all."""

    def __init__(self, bootstrap_servers: str, records: int) -> None:
        from confluent_kafka import Producer

        self.acknowledged: list[bytes] = []
        self.failed = 0
        self.sent = 0
        self._records = records
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": 60000,
                "log_level": 0,  # a killed broker is part of the tour
            }
        )
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-producer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Give up the unacknowledged records, which no cluster will acknowledge any more."""
        self._ended.set()
        self._thread.join()

    def join(self) -> None:
        """Wait until every record is acknowledged or has failed."""
        while self._thread.is_alive():
            self._thread.join(_LOOK_S)

    def _run(self) -> None:
        for number in range(self._records):
            value = b"order-%06d" % number
            self._producer.produce(TOPIC, value, partition=number % 3, on_delivery=self._delivered)
            self.sent += 1
            self._producer.poll(0)
            # Spread the records over about two seconds, so that the kill falls in between.
            if number % 100 == 99 and self._ended.wait(0.01):
                break
        while self._producer.flush(_LOOK_S) and not self._ended.is_set():
            pass
        self._producer.purge()

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self.acknowledged.append(message.value())
        else:
            self.failed += 1


def _read_back(bootstrap_servers: str) -> list[bytes | None]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "demo",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(3)])
    read: list[bytes | None] = []
    ended: set[int] = set()
    deadline = time.monotonic() + 30
    while len(ended) < 3 and time.monotonic() < deadline:
        for message in consumer.consume(5000, timeout=0.5):
            error = message.error()
            if error is None:
                read.append(message.value())
            elif error.name() == "_PARTITION_EOF":
                ended.add(message.partition() or 0)
    consumer.close()
    return read


def _real_clients() -> bool:
    from ..testing.cluster import Cluster

    with TemporaryDirectory() as folder:
        trace = Path(folder) / "demo.fktrace"
        return _failover(Cluster(brokers=3, trace=trace), trace)


def _failover(cluster: Cluster, trace: Path) -> bool:
    from ..testing.checks import acknowledged_exactly_once, fully_replicated, replicas_identical

    with cluster:
        console.print(f"three brokers at {cluster.bootstrap_servers}")
        cluster.create_topic(
            TOPIC, partitions=3, replication_factor=3, config={"min.insync.replicas": "2"}
        )
        with _Producing(cluster.bootstrap_servers, RECORDS) as producing:
            cluster.wait_until(lambda: len(producing.acknowledged) > RECORDS // 10, 30)
            victim = cluster.partition(TOPIC, 0).leader
            assert victim is not None
            console.print(
                f"{len(producing.acknowledged)} records acknowledged; "
                f"killing broker {victim}, the leader of {TOPIC}-0"
            )
            cluster.broker(victim).kill()
            cluster.wait_until(lambda: cluster.partition(TOPIC, 0).leader not in (None, victim), 30)
            producing.join()
        cluster.broker(victim).start()
        cluster.wait_until(lambda: fully_replicated(cluster, [TOPIC]), 30)
        read = _read_back(cluster.bootstrap_servers)
        once = acknowledged_exactly_once(producing.acknowledged, read)
        same = replicas_identical(cluster, [TOPIC])
        failures = list(cluster.failures)
    _tell(trace)
    for name, error in failures:
        console.print(f"[red]{name} failed: {error!r}[/red]")
    _judge(len(producing.acknowledged), producing.sent, len(read), once, same)
    return bool(once) and bool(same) and not failures and producing.failed == 0


def _modelled_clients() -> bool:
    from ..protocol.values import TopicPartition
    from ..testing.checks import acknowledged_exactly_once, fully_replicated, replicas_identical
    from ..testing.simulation import Simulation

    console.print(
        "no client of Kafka is installed, so modelled clients run in virtual time "
        "(pip install confluent-kafka has the tour with a real one)",
        markup=False,
        soft_wrap=True,
    )
    shape = {"partitions": 3, "replication_factor": 3, "config": {"min.insync.replicas": 2}}
    acknowledged: list[bytes] = []
    with Simulation(brokers=3, seed=1, topics={TOPIC: shape}) as simulation:
        producer = simulation.producer(acks="all")

        def produce(number: int) -> None:
            value = b"order-%06d" % number

            def delivered(error: object, _offset: int) -> None:
                if not error:
                    acknowledged.append(value)

            producer.produce(TopicPartition(TOPIC, number % 3), value, callback=delivered)

        for number in range(MODELLED_RECORDS):
            produce(number)
            if number % 10 == 9:
                simulation.run_for(10)
            if number == MODELLED_RECORDS // 10:
                victim = simulation.wait_for_leader(TOPIC)
                console.print(
                    f"{len(acknowledged)} records acknowledged; "
                    f"killing broker {victim}, the leader of {TOPIC}-0"
                )
                simulation.broker(victim).kill()
        simulation.run_until(lambda: len(acknowledged) == MODELLED_RECORDS, every_ms=10)
        simulation.broker(victim).start()
        simulation.run_until(lambda: fully_replicated(simulation, [TOPIC]), every_ms=10)
        read = [record.value for record in simulation.wait_for_records(TOPIC, 0)]
        once = acknowledged_exactly_once(acknowledged, read)
        same = replicas_identical(simulation, [TOPIC])
        with TemporaryDirectory() as folder:
            trace = Path(folder) / "demo.fktrace"
            simulation.save(trace)
            _tell(trace)
    _judge(len(acknowledged), MODELLED_RECORDS, len(read), once, same)
    return bool(once) and bool(same)


def _judge(acknowledged: int, sent: int, read: int, once: Verdict, same: Verdict) -> None:
    console.print(
        f"acknowledged {acknowledged} of {sent} sent, "
        f"read back {read}: " + ("each exactly once" if once else "; ".join(once.problems))
    )
    console.print(
        f"{same.checked} replicas compared byte by byte: "
        + ("identical" if same else "; ".join(same.problems))
    )


def _tell(path: Path) -> None:
    """Print the story of a trace from the first crash on."""
    from ..tracing.story.timeline import read_story
    from ..tracing.trace_file import TraceReader

    with TraceReader(path) as trace:
        story = read_story(trace.events())
    since_ms = story.crashes[0].begun_us / 1000
    console.print("\n[bold]What happened[/bold] (from the recorded trace)")
    for time_ms, text in story.lines:
        if time_ms >= since_ms:
            console.print(f"  {time_ms:9.1f} ms  {text}", highlight=False, soft_wrap=True)
    console.print()


def _simulated_failovers(runs: int) -> bool:
    from ..spark_bench.batch import run_suite
    from ..spark_bench.engines.engine import choose_engine
    from .percentile_table import print_percentiles

    engine, reason = choose_engine()
    where = escape(f"on {engine} ({reason})")
    console.print(f"\n[bold]{runs} simulated failovers[/bold] {where}")
    result = run_suite("failover", runs=runs, engine=engine, matrix={})
    print_percentiles(console, result, result.configurations[0])
    console.print(f"{result.ok} of {result.runs} runs kept every promise")
    return bool(result.ok == result.runs)


@app.command()
def command(
    runs: int = typer.Option(SIMULATIONS, min=0, help="simulated failovers after the real one"),
) -> None:
    """A one-minute tour: a real client, a killed leader, nothing lost, a batch of simulations."""
    with ended_by_sigterm():
        kept = _real_clients() if find_spec("confluent_kafka") else _modelled_clients()
        kept = _simulated_failovers(runs) and kept if runs else kept
    raise typer.Exit(0 if kept else 1)
