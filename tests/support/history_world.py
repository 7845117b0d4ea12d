"""The cluster of a random history, and its load."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from sys import maxsize
from typing import Any
from unittest import mock

from fakekafka import FakeKafkaError, Simulation
from fakekafka.protocol.awaiting import Task
from fakekafka.protocol.control import LeaderAndIsrPartitionState
from fakekafka.protocol.data import EpochEndOffset
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.records.batch import RecordBatch
from fakekafka.protocol.values import ReplicaAssignment, TopicPartition
from fakekafka.replication.log.log import Log
from fakekafka.replication.partition.partition import Partition
from fakekafka.statemachines.machines.known_topics import KnownTopics
from fakekafka.testing.handles.admin import AdminClient


@dataclass(frozen=True)
class Options:
    """What the cluster of a history is like; drawn from its seed."""

    brokers: tuple[int, ...]
    zookeepers: int
    log_dirs: int
    latency_ms: float
    jitter: bool
    topics: tuple[tuple[int, int, int], ...]
    """(partitions, replication factor, min.insync.replicas) of each topic that is never deleted."""
    producers: int
    idempotent: bool
    interval_ms: float
    """Mean time between two records of a producer."""
    config: tuple[tuple[str, Any], ...]


def draw_options(seed: int) -> Options:
    rng = random.Random(f"options-{seed}")
    brokers = tuple(range(1, rng.choice((3, 3, 4, 5)) + 1))
    if rng.random() < 0.3:
        brokers = (0, 10, 2, 7, 4)[: len(brokers)]
    topics = []
    for _ in range(rng.choice((1, 1, 2))):
        factor = rng.choice((2, 3, 3))
        topics.append((rng.randint(1, 3), factor, rng.randint(1, min(2, factor - 1))))
    config = {
        "zookeeper.session.timeout.ms": rng.choice((6000, 6000, 18000)),
        "replica.lag.time.max.ms": rng.choice((2000, 10000, 30000)),
        "leader.imbalance.check.interval.seconds": rng.choice((5, 30, 300)),
        "num.replica.fetchers": rng.choice((1, 1, 2)),
        "log.segment.bytes": rng.choice((1500, 1 << 20)),
        "controlled.shutdown.retry.backoff.ms": rng.choice((500, 5000)),
    }
    return Options(
        brokers=brokers,
        zookeepers=rng.choice((1, 3, 3)),
        log_dirs=rng.choice((1, 1, 2)),
        latency_ms=rng.choice((0.25, 1.0, 5.0)),
        jitter=rng.random() < 0.5,
        topics=tuple(topics),
        producers=rng.choice((1, 2)),
        idempotent=rng.random() < 0.7,
        interval_ms=rng.choice((20.0, 100.0, 400.0)),
        config=tuple(config.items()),
    )


@dataclass
class World:
    """A running cluster with its load."""

    simulation: Simulation
    options: Options
    main: list[TopicPartition] = field(default_factory=list)
    """Partitions of the topics that are never deleted; these carry the load."""
    acknowledged: list[tuple[TopicPartition, int, bytes]] = field(default_factory=list)
    sent: int = 0
    producers: list[Any] = field(default_factory=list)
    loads: bool = True
    seen: dict[tuple[TopicPartition, int], bytes | None] = field(default_factory=dict)
    """What a consumer read, by partition and offset."""
    read_anew: list[tuple[TopicPartition, int, bytes | None, bytes | None]] = field(
        default_factory=list
    )
    """Offsets that a consumer read twice, with what it read; a cut that excuses it may come later:
    the new leader's log is read before the old one cuts its own."""
    renumbered: set[tuple[TopicPartition, bytes | None]] = field(default_factory=set)
    """What a producer sent under one number and then gave one of a new epoch."""
    cut_from: dict[TopicPartition, int] = field(default_factory=dict)
    """The lowest offset that a follower cut because it was above its high watermark, or where a
    follower differs from its leader because it was not told to cut."""
    dropped: dict[TopicPartition, set[int]] = field(default_factory=dict)
    """Replicas that were being added and that a later request dropped, in sync or not."""
    lost_from: dict[TopicPartition, int] = field(default_factory=dict)
    """Where the log of a leader ended that was elected from outside the ISR for their sake."""
    relieved: set[TopicPartition] = field(default_factory=set)
    """Partitions for whose sake the controller was moved at the end."""
    controller_moves: int = 0
    """How often it was moved at the end for the sake of brokers that it had missed."""
    mended: set[int] = field(default_factory=set)
    """Brokers that were started at the end."""
    problems: list[str] = field(default_factory=list)
    side_topics: int = 0
    """How many topics were created on the way."""
    deleted: set[str] = field(default_factory=set)
    requests: list[tuple[str, Task[Any]]] = field(default_factory=list)
    paused: set[int] = field(default_factory=set)
    troubled_network: bool = False

    # -- looking -------------------------------------------------------------------------------

    def alive(self) -> list[int]:
        simulation = self.simulation
        return [b for b in simulation.broker_ids if simulation.broker(b).is_alive]

    def down(self) -> list[int]:
        alive = self.alive()
        return [b for b in self.simulation.broker_ids if b not in alive]

    def partitions(self) -> Iterator[Any]:
        """A view of every partition the brokers know."""
        simulation = self.simulation
        for topic in simulation.topics():
            for number in range(self.count(topic)):
                try:
                    yield simulation.partition(topic, number)
                except FakeKafkaError:
                    continue

    def count(self, topic: str) -> int:
        brokers = [p.broker for p in self.simulation.processes.values() if p.broker is not None]
        return max((b.metadata_cache.partition_count(topic) for b in brokers), default=0)

    def is_calm(self) -> bool:
        """Nothing is broken at this moment."""
        simulation = self.simulation
        return (
            not self.paused
            and not self.troubled_network
            and simulation.controller.id is not None
            and all(p.is_alive and p.server.is_serving for p in simulation.zookeepers.values())
            and all(simulation.broker(b).state == "running" for b in simulation.broker_ids)
            and len(simulation.zookeeper.children("/brokers/ids")) == len(simulation.broker_ids)
            and not any(p.spec.disk.offline_dirs for p in simulation.processes.values())
        )

    # -- asking without waiting ----------------------------------------------------------------

    def request(self, text: str, message: Any) -> None:
        """Send an admin request to the controller; nobody waits for the outcome."""
        admin = AdminClient(self.simulation.running)
        self.requests.append((text, Task(admin.ask_controller(message))))

    # -- load ----------------------------------------------------------------------------------

    def start_load(self) -> None:
        options = self.options
        for number in range(options.producers):
            producer = self.simulation.producer(
                acks="all",
                enable_idempotence=options.idempotent,
                request_timeout_ms=10_000,
                linger_ms=0 if number % 2 == 0 else 20,
            )
            producer.on_renumbered = self._renumbered
            self.producers.append(producer)
            self._send_later(producer)
        consumer = self.simulation.consumer(self.main)
        consumer.on_batch = self._consumed

    def _send_later(self, producer: Any) -> None:
        interval_us = int(
            self.simulation.runtime.rng.expovariate(1 / self.options.interval_ms) * 1e3
        )
        self.simulation.runtime.call_later(producer, interval_us, lambda: self._send(producer))

    def _send(self, producer: Any) -> None:
        if not self.loads:
            return
        where = self.main[self.sent % len(self.main)]
        value = b"%s:%07d" % (producer.name.encode(), self.sent)
        self.sent += 1

        def answered(error: ErrorCode, offset: int) -> None:
            if error == ErrorCode.NONE:
                self.acknowledged.append((where, offset, value))

        producer.produce(where, value, callback=answered)
        self._send_later(producer)

    def _renumbered(self, where: TopicPartition, values: list[bytes | None]) -> None:
        self.renumbered.update((where, value) for value in values)

    def is_excused(self, where: TopicPartition, offset: int) -> bool:
        """Whether Kafka itself may lose or change what is at an offset.

        In 0.10 a follower that has it, but not yet the high watermark that covers it, cuts it, and
        may lead next (KIP-101). In 1.1 a follower does not cut what it has of an epoch that its
        leader never heard of (KIP-279). And where the whole ISR was dropped by a reassignment,
        only a leader from outside helps.
        """
        return offset >= min(self.cut_from.get(where, maxsize), self.lost_from.get(where, maxsize))

    @contextlib.contextmanager
    def note_cuts(self) -> Iterator[None]:
        """Note where releases before the KIPs cut wrongly, as long as this is entered."""
        flags = self.simulation.behaviour
        with contextlib.ExitStack() as noting:
            if flags.truncation == "high_watermark":
                noting.enter_context(self._note_cuts_at_high_watermark())
            elif not flags.epoch_truncation_rounds:
                noting.enter_context(self._note_epochs_unheard_of())
            if flags.epoch_cache and not flags.fetch_epoch_fencing:
                noting.enter_context(self._note_fetches_of_another_epoch())
            yield

    def _note_cuts_at_high_watermark(self) -> contextlib.AbstractContextManager[Any]:
        truncate_to = Log.truncate_to

        def noting(log: Log, offset: int) -> bool:
            if offset == log.high_watermark and offset < log.log_end_offset:
                self._differs_from(log.topic_partition, offset)
            return truncate_to(log, offset)

        return mock.patch.object(Log, "truncate_to", noting)

    def _note_epochs_unheard_of(self) -> contextlib.AbstractContextManager[Any]:
        """``LeaderEpochFileCache.endOffsetFor`` up to 1.1 tells where the next epoch begins that
        the leader knows, though the follower has the one it asks for from an earlier offset on."""
        end_offset_for_epoch = Log.end_offset_for_epoch

        def noting(log: Log, epoch: int) -> EpochEndOffset:
            end = end_offset_for_epoch(log, epoch)
            if all(known != epoch for known, _ in log.epochs):
                for start in self._starts(log.topic_partition, epoch):
                    if start < end.end_offset:
                        self._differs_from(log.topic_partition, start)
            return end

        return mock.patch.object(Log, "end_offset_for_epoch", noting)

    @contextlib.contextmanager
    def _note_fetches_of_another_epoch(self) -> Iterator[None]:
        """Until 2.1 a follower that missed that its leader led no more goes on behind what that
        leader has cut meanwhile: it heard of no epoch since, or only of the one in which its
        leader leads again (KIP-320, ``Partition.makeFollower``)."""
        make_follower = Partition.make_follower
        append_as_follower = Partition.append_as_follower
        going_on: set[Partition] = set()

        def noting_role(partition: Partition, state: LeaderAndIsrPartitionState) -> bool:
            missed = state.leader_epoch > partition.leader_epoch + 1
            starts_anew = make_follower(partition, state)
            if starts_anew:
                going_on.discard(partition)
            elif missed:
                going_on.add(partition)
            return starts_anew

        def noting(partition: Partition, batches: Sequence[RecordBatch], *marks: Any) -> bool:
            log = partition.log
            if log is not None and batches:
                first = batches[0]
                if first.partition_leader_epoch > partition.leader_epoch or partition in going_on:
                    self._note_what_stays(log, first)
            return append_as_follower(partition, batches, *marks)

        with (
            mock.patch.object(Partition, "make_follower", noting_role),
            mock.patch.object(Partition, "append_as_follower", noting),
        ):
            yield

    def _note_what_stays(self, log: Log, first: RecordBatch) -> None:
        """A log is about to grow by what another one has behind the begin of a later epoch."""
        for other in self._logs(log.topic_partition):
            begun = [start for epoch, start in other.epochs if epoch > log.latest_epoch]
            if begun and begun[0] < log.log_end_offset == first.base_offset:
                self._differs_from(log.topic_partition, begun[0])

    def _starts(self, where: TopicPartition, epoch: int) -> Iterator[int]:
        """Where an epoch begins in each log that has it."""
        for log in self._logs(where):
            yield from (start for known, start in log.epochs if known == epoch)

    def _logs(self, where: TopicPartition) -> Iterator[Log]:
        for process in self.simulation.processes.values():
            broker = process.broker
            partition = None if broker is None else broker.replica_manager.partition(where)
            if partition is not None and partition.log is not None:
                yield partition.log

    def _differs_from(self, where: TopicPartition, offset: int) -> None:
        self.cut_from[where] = min(offset, self.cut_from.get(where, offset))

    def note_drops(self) -> contextlib.AbstractContextManager[Any]:
        """Note which replicas ``KafkaController.updateCurrentReassignment`` drops again."""
        update = KnownTopics.update_partition_full_replica_assignment

        def noting(
            topics: KnownTopics, where: TopicPartition, assignment: ReplicaAssignment
        ) -> None:
            if topics.has_assignment(where):
                adding = topics.partition_full_replica_assignment(where).adding
                dropped = self.dropped.setdefault(where, set())
                dropped.update(adding)
                dropped.difference_update(assignment.replicas)
            update(topics, where, assignment)

        return mock.patch.object(KnownTopics, "update_partition_full_replica_assignment", noting)

    def _consumed(self, where: TopicPartition, batch: Any, position: int) -> None:
        for record in batch.records():
            if record.offset >= position:
                before = self.seen.setdefault((where, record.offset), record.value)
                if before != record.value:
                    self.read_anew.append((where, record.offset, before, record.value))


def build(seed: int, version: str, trace: bool = False) -> World:
    options = draw_options(seed)
    config = dict(options.config)
    config["delete.topic.enable"] = True  # else 0.10 leaves the requests (KAFKA-3175)
    config["unclean.leader.election.enable"] = False  # loses records; the default until 0.10
    if options.log_dirs > 1:
        config["log.dirs"] = ",".join(f"dir-{n + 1}" for n in range(options.log_dirs))
    simulation = Simulation(
        options.brokers,
        seed=seed,
        kafka_version=version,
        zookeepers=options.zookeepers,
        latency_ms=options.latency_ms,
        config=config,
        trace=trace,
    )
    if options.jitter:
        simulation.network.latency(uniform_ms=(options.latency_ms / 5, options.latency_ms * 4))
    world = World(simulation, options)
    for index, (partitions, factor, least) in enumerate(options.topics):
        name = f"main-{index + 1}"
        simulation.create_topic(name, partitions, factor, {"min.insync.replicas": str(least)})
        world.main += [TopicPartition(name, number) for number in range(partitions)]
    world.start_load()
    return world
