"""Leaders die every 200 ms: no record is lost, duplicated or out of order, and readers see no gap.

With librdkafka exactly once holds within each producer epoch, here as with Kafka. When a leader
moves, librdkafka may send later records before earlier ones that the old leader refused; the new
one then answers OUT_OF_ORDER_SEQUENCE_NUMBER, upon which the client renumbers under a higher epoch.
Only then it may write a record twice, if that was appended and not acknowledged (see
docs/guides/idempotent-producers.md, which shows the same with Kafka 2.8.2). Sending one record at a
time it never does, and neither does aiokafka: these tests allow no exception for them.

``FAKEKAFKA_KILL_SECONDS`` sets how long (6 s, in CI 10 s), ``FAKEKAFKA_KILL_REPEATS`` how often.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID
from fakekafka import Cluster
from fakekafka.testing.checks import fully_replicated, replicas_identical
from fakekafka.testing.views import PartitionView
from fakekafka.tests.support import client_writers as writers
from fakekafka.tests.support.batches import parse_batches
from fakekafka.tests.support.paths import SUPPORT
from fakekafka.zkfake.messages import ZooKeeperError

TOPIC: str = writers.TOPIC
PARTITIONS: int = writers.PARTITIONS
PATIENCE_S: float = writers.PATIENCE_S

BROKERS = 9
ASSIGNMENT = {number: [3 * number + n for n in (1, 2, 3)] for number in range(PARTITIONS)}
"""Separate brokers for each partition, as leaders of other partitions may be down meanwhile."""
PAUSE_S = 0.2
DOWN_S = 0.3
SECONDS = float(os.environ.get("FAKEKAFKA_KILL_SECONDS", "10" if os.environ.get("CI") else "6"))
REPEATS = int(os.environ.get("FAKEKAFKA_KILL_REPEATS", "1"))
STANDSTILL_S = 5
STARTS_MAX = 4
_READER = SUPPORT / "reader_process.py"

CONFIG = {
    # Short enough for a partition to get a new leader while the old one is down.
    "zookeeper.session.timeout.ms": "100",
    "replica.fetch.backoff.ms": "10",
    "zookeeper.connection.timeout.ms": "5000",
}


class Reader(threading.Thread):
    """Reads all partitions from the start, and stops at the first error.

    The client runs in a separate process, since librdkafka 2.16 may deadlock when leaders change
    this often: its main thread, answering a failed OffsetForLeaderEpoch, and the thread of a broker
    that has left the metadata wait for each other's locks. Another client then reads on, which it
    could not if the cluster were to blame.
    """

    def __init__(self, servers: str, isolation: str, writer: Any) -> None:
        super().__init__(name=f"reader-{isolation}")
        self.positions = [(0, 0)] * PARTITIONS
        """Next offset and next value of each partition."""
        self.failures: list[str] = []
        self._writer = writer
        self._command = [sys.executable, str(_READER), servers, TOPIC, isolation]

    def run(self) -> None:
        while not self._is_done():
            self._read_on()

    def _read_on(self) -> None:
        """Let one process read until it has read everything, finds an error, or hangs."""
        command = [*self._command, json.dumps(self.positions)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                lines: queue.SimpleQueue[str] = queue.SimpleQueue()
                stdout = process.stdout
                listener = threading.Thread(target=lambda: deque(map(lines.put, stdout), 0))
                listener.start()
                changed_s = time.monotonic()
                while not self._is_done() and time.monotonic() < changed_s + STANDSTILL_S:
                    before = self.positions
                    with contextlib.suppress(queue.Empty):
                        self._take(lines.get(timeout=0.5))
                    if self.positions != before:
                        changed_s = time.monotonic()
            finally:
                process.kill()
                listener.join()

    def _take(self, line: str) -> None:
        report = json.loads(line)
        if isinstance(report, str):
            self.failures.append(report)
        else:
            self.positions = report

    def _is_done(self) -> bool:
        """Return whether everything was read, an error was found, or the last record is overdue."""
        if self.failures:
            return True
        sent, ended_s = self._writer.sent, self._writer.ended_s
        if ended_s is None:
            return False
        has_all = all(next_value >= sent for _, next_value in self.positions)
        if not has_all and time.monotonic() > ended_s + PATIENCE_S:
            self.failures.append(f"read to {self.positions} of {sent}")
        return has_all or bool(self.failures)


def is_spare(cluster: Cluster, victim: int) -> bool:
    """Return whether every partition keeps two replicas in sync without this broker."""
    for number in range(PARTITIONS):
        view = cluster.partition(TOPIC, number)
        in_step = [
            broker
            for broker in view.isr
            if cluster.broker(broker).state == "running"
            # A restarted broker that does not know its role yet does not count.
            and view.replica(broker).leader_epoch == view.leader_epoch
        ]
        if victim in view.replicas and len(set(in_step) - {victim}) < 2:
            return False
    return True


@dataclass(frozen=True)
class Death:
    """The time of a broker's death, and the partition that it led."""

    at_s: float
    led: PartitionView

    def is_over(self, cluster: Cluster) -> bool:
        """Return whether it lasted long enough and the partition has a leader of a later epoch.

        A partition may have no other leader: if other replicas had lost their sessions at the time
        of the death, the ISR is the dead broker alone, and only that broker may lead again.
        """
        if time.monotonic() < self.at_s + DOWN_S:
            return False
        view = cluster.partition(TOPIC, self.led.partition)
        if view.leader is None and not any(cluster.broker(broker).is_alive for broker in view.isr):
            return True
        return view.leader is not None and view.leader_epoch > self.led.leader_epoch


def kill_leaders(cluster: Cluster, kills: int) -> list[int]:
    """Kill the leader of one partition after the other, at most one every ``PAUSE_S``.

    Return the partition of each kill. On a busy machine the followers of one partition may return
    late; leaders of other partitions are killed meanwhile.

    A dead broker stays down for ``DOWN_S``, so that the client has found the next leader, and until
    there is one: a new controller that finds the old leader running lets it lead. A broker that
    ``min.insync.replicas`` requires is not killed.
    """
    killed: list[int] = []
    deaths: dict[int, Death] = {}
    pause = threading.Event()
    next_s = time.monotonic()

    def start_due_brokers() -> bool:
        """Start brokers that were down long enough, also after a failed start; return whether all
        serve.
        """
        for broker in cluster.broker_ids:
            if cluster.broker(broker).is_alive:
                continue
            if broker not in deaths or deaths[broker].is_over(cluster):
                cluster.broker(broker).start(wait=False)
        return all(cluster.broker(broker).state == "running" for broker in cluster.broker_ids)

    def victim() -> PartitionView | None:
        """Return a partition whose leader may die."""
        start_due_brokers()
        for distance in range(PARTITIONS):
            number = (len(killed) + distance) % PARTITIONS
            view = cluster.partition(TOPIC, number)
            if view.leader is None or cluster.broker(view.leader).state != "running":
                continue  # its leader is dead, and no other was elected yet
            if is_spare(cluster, view.leader):
                return view
        return None

    while len(killed) < kills:
        while (left_s := next_s - time.monotonic()) > 0:
            start_due_brokers()
            pause.wait(min(left_s, PAUSE_S / 10))
        next_s = max(next_s, time.monotonic()) + PAUSE_S
        chosen = None
        while chosen is None:
            cluster.wait_until(victim, PATIENCE_S)
            chosen = victim()
        assert chosen.leader is not None
        cluster.broker(chosen.leader).kill()
        killed.append(chosen.partition)
        deaths[chosen.leader] = Death(time.monotonic(), chosen)
    cluster.wait_until(start_due_brokers, PATIENCE_S)
    return killed


@dataclass
class Written:
    """The content of a partition."""

    offsets: list[list[int]]
    """Offsets of each value: more than one if the client wrote it again under a higher epoch."""
    producer_epochs: list[int]
    leader_epoch: int
    """Leader epoch of the last batch."""


def written(cluster: Cluster, number: int) -> Written:
    """Return the content of a partition; fail if a sequence or value is missing, or duplicated in
    one epoch.
    """
    epochs, sequence, next_value, leader_epoch = [0], 0, 0, 0
    offsets: list[list[int]] = []
    replica = cluster.partition(TOPIC, number).replicas[0]
    for batch in parse_batches(cluster.log_bytes(TOPIC, number, replica)):
        values = [int(record.value or b"") for record in batch.records()]
        if batch.producer_epoch != epochs[-1]:
            assert batch.producer_epoch > epochs[-1]
            assert values[0] <= next_value
            epochs.append(batch.producer_epoch)
            sequence, next_value = 0, values[0]
        assert batch.base_sequence == sequence
        assert values == list(range(next_value, next_value + len(values)))
        sequence, next_value = sequence + len(values), next_value + len(values)
        assert batch.partition_leader_epoch >= leader_epoch
        leader_epoch = batch.partition_leader_epoch
        offsets.extend([] for _ in range(next_value - len(offsets)))
        for value in values:
            offsets[value].append(batch.base_offset + value - values[0])
    return Written(offsets, epochs, leader_epoch)


@contextlib.contextmanager
def started_cluster(runtime_name: str) -> Iterator[Cluster]:
    """Start a cluster, again if its short sessions expire while a busy machine starts
    nine brokers.
    """
    cluster = Cluster(BROKERS, runtime=runtime_name, config=CONFIG)
    for _ in range(STARTS_MAX - 1):
        try:
            cluster.start()
        except ZooKeeperError:
            cluster = Cluster(BROKERS, runtime=runtime_name, config=CONFIG)
        else:
            break
    else:
        cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.mark.slow
@pytest.mark.serial  # sessions of 100 ms: on a busy machine all brokers lose theirs at once
@pytest.mark.clients
@pytest.mark.timeout(240)
@pytest.mark.parametrize("repeat", range(REPEATS))
@pytest.mark.parametrize("client", list(writers.WRITERS))
def test_leader_kills_lose_double_and_reorder_nothing(
    runtime_name: str, client: str, repeat: int
) -> None:
    """An idempotent producer and readers of both isolation levels run while leaders are killed."""
    kills = round(SECONDS / PAUSE_S)
    with started_cluster(runtime_name) as cluster:
        cluster.create_topic(TOPIC, config={"min.insync.replicas": "2"}, assignment=ASSIGNMENT)
        writer = writers.WRITERS[client](cluster.bootstrap_servers)
        readers = [
            Reader(cluster.bootstrap_servers, isolation, writer)
            for isolation in ("read_uncommitted", "read_committed")
        ]
        threads: list[threading.Thread] = [writer, *readers]
        for thread in threads:
            thread.start()
        try:
            # A leader that knows nothing of a producer takes whatever sequence comes first, as
            # Kafka's does: what librdkafka sends too early would come before the rest.
            cluster.wait_until(lambda: all(writer.acknowledged), PATIENCE_S)
            killed = kill_leaders(cluster, kills)
            # The last leader to die may have been the one that answered last: its partition shows
            # the election that followed only by what was sent after it.
            sent = writer.sent
            cluster.wait_until(lambda: writer.has_reached(sent + 1), PATIENCE_S)
        finally:
            writer.stop_asked.set()
            for thread in threads:
                thread.join(2 * PATIENCE_S)
        assert len(killed) == kills
        assert writer.failures == []
        assert [reader.failures for reader in readers] == [[], []]
        cluster.wait_until(lambda: fully_replicated(cluster, [TOPIC]), PATIENCE_S)
        verdict = replicas_identical(cluster, [TOPIC])
        assert verdict, verdict.problems
        for number, acknowledged in enumerate(writer.acknowledged):
            there = written(cluster, number)
            assert len(there.offsets) == writer.sent
            assert [value for _, value in acknowledged] == list(range(writer.sent))
            # librdkafka knows no offset for what a later acknowledgement has covered.
            known = [pair for pair in acknowledged if pair[0] not in (None, OFFSET_INVALID)]
            # Nothing was written again that had been acknowledged: it would be known by then.
            assert [pair for pair in known if pair[0] != there.offsets[pair[1]][-1]] == []
            if len(there.producer_epochs) == 1:
                assert [value for value, at in enumerate(there.offsets) if at != [value]] == []
            else:
                assert client == "confluent-kafka"
            # Every kill of a leader cost its partition an election; the writer went on meanwhile.
            assert there.leader_epoch >= killed.count(number)
        assert min(killed.count(number) for number in range(PARTITIONS)) >= kills // 30
        assert writer.sent > kills
        assert cluster.failures == []
