"""The cluster of a seed, and its producers and consumer, which record the answers they get."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...protocol.errors import ErrorCode
from ...protocol.values import TopicPartition
from ...testing.simulation import Simulation
from ..watch import RecordedWatch, Watch, batch_at
from ..world import World


@dataclass(frozen=True)
class Options:
    """The properties of a history's cluster and load, drawn from its seed."""

    brokers: tuple[int, ...]
    zookeepers: int
    log_dirs: int
    latency_ms: float
    jitter: bool
    topics: tuple[tuple[int, int, int], ...]
    """(partitions, replication factor, min.insync.replicas) of each permanent topic."""
    producers: int
    idempotent: bool
    interval_ms: float
    """Mean time in milliseconds between two records of a producer."""
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


def build(options: Options, seed: int, kafka_version: str, watch: Watch, trace: bool) -> World:
    """Start the cluster and create its permanent topics."""
    config = dict(options.config)
    config["delete.topic.enable"] = True  # otherwise, 0.10 leaves requests pending (KAFKA-3175)
    config["unclean.leader.election.enable"] = False  # loses records, but is 0.10's default
    if options.log_dirs > 1:
        config["log.dirs"] = ",".join(f"dir-{n + 1}" for n in range(options.log_dirs))
    simulation = Simulation(
        options.brokers,
        seed=seed,
        kafka_version=kafka_version,
        zookeepers=options.zookeepers,
        latency_ms=options.latency_ms,
        config=config,
        recorder=RecordedWatch(watch) if trace else watch,
    )
    if options.jitter:
        simulation.network.latency(uniform_ms=(options.latency_ms / 5, options.latency_ms * 4))
    world = World(simulation)
    for index, (partitions, factor, least) in enumerate(options.topics):
        name = f"main-{index + 1}"
        simulation.create_topic(name, partitions, factor, {"min.insync.replicas": str(least)})
        world.main += [TopicPartition(name, number) for number in range(partitions)]
    return world


class Acknowledged(NamedTuple):
    """A record that was acknowledged to its producer."""

    offset: int
    """Offset; -1 if the broker answered that the record was stored before, at an unknown offset."""
    value: bytes
    broker: int
    """Leader at the time of the acknowledgement."""
    epoch: int
    batch: Any
    """The leader's batch with the record; None if it had none."""

    def __str__(self) -> str:
        return f"acknowledged at offset {self.offset} by broker {self.broker} in epoch {self.epoch}"


class Load:
    """The producers and the consumer of the permanent topics."""

    def __init__(self, world: World, watch: Watch, options: Options) -> None:
        self._world = world
        self._watch = watch
        self._interval_ms = options.interval_ms
        self.is_idempotent: bool = options.idempotent
        self.sends = True
        self.sent: int = 0
        self.acknowledged: dict[TopicPartition, list[Acknowledged]] = {}
        self._newest: dict[TopicPartition, dict[int, Acknowledged]] = {}
        self.renumbered: dict[TopicPartition, set[bytes | None]] = {}
        """Values that a producer renumbered under a new epoch after it had sent them."""
        self.on_read: list[Callable[[TopicPartition, Any, int], object]] = []
        """Called with (partition, batch, position) for each batch that the consumer reads."""
        self.producers: list[Any] = []
        for number in range(options.producers):
            producer = world.simulation.producer(
                acks="all",
                enable_idempotence=options.idempotent,
                request_timeout_ms=10_000,
                linger_ms=0 if number % 2 == 0 else 20,
            )
            producer.on_renumbered = self._renumbered
            self.producers.append(producer)
            self._send_later(producer)
        world.simulation.consumer(world.main).on_batch = self._consumed

    def newest_acknowledged(self, where: TopicPartition) -> Iterable[Acknowledged]:
        """Return the acknowledged record with the highest offset for each leader epoch."""
        return self._newest.get(where, {}).values()

    def _send_later(self, producer: Any) -> None:
        runtime = self._world.simulation.runtime
        interval_us = int(runtime.rng.expovariate(1 / self._interval_ms) * 1e3)
        runtime.call_later(producer, interval_us, lambda: self._send(producer))

    def _send(self, producer: Any) -> None:
        if not self.sends:
            return
        where = self._world.main[self.sent % len(self._world.main)]
        value = b"%s:%07d" % (producer.name.encode(), self.sent)
        self.sent += 1

        def answered(error: ErrorCode, offset: int) -> None:
            if error == ErrorCode.NONE:
                self._note(where, offset, value)

        producer.produce(where, value, callback=answered)
        self._send_later(producer)

    def _note(self, where: TopicPartition, offset: int, value: bytes) -> None:
        leader = self._watch.leader_of(where)
        batch = None
        if leader is not None and leader.log is not None:
            batch = batch_at(leader.log, offset)
        broker, epoch = (-1, -1) if leader is None else (leader.broker, leader.leader_epoch)
        told = Acknowledged(offset, value, broker, epoch, batch)
        self.acknowledged.setdefault(where, []).append(told)
        newest = self._newest.setdefault(where, {})
        if batch is not None and (epoch not in newest or newest[epoch].offset < offset):
            newest[epoch] = told

    def _renumbered(self, where: TopicPartition, values: list[bytes | None]) -> None:
        self.renumbered.setdefault(where, set()).update(values)

    def _consumed(self, where: TopicPartition, batch: Any, position: int) -> None:
        for callback in self.on_read:
            callback(where, batch, position)
