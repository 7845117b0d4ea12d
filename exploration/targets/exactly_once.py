"""The target of an application that copies records in transactions, each exactly once."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from typing import ClassVar

from ...actors.clients.transformer import SimulatedTransformer
from ...protocol.data import READ_COMMITTED
from ...protocol.records.batch import RecordBatch
from ...protocol.values import TopicPartition
from ...testing.simulation import Simulation
from .. import cluster_steps as steps
from ..generator import Draws
from ..invariants.clients import TransactionsAreAtomic
from ..invariants.invariant import Invariant
from ..invariants.validations import HandlersSucceed
from ..watch import RecordedWatch, Watch
from ..worlds.copying import BROKERS, CHOICES, PARTITIONS, CopyWorld, application
from .cluster import REPLICATION
from .target import Target

HEALED_MS = 240_000
"""Virtual time in milliseconds for the application to finish on the healed cluster."""


class ExactlyOnce(Target):
    """An application whose output must contain each input record exactly once and in order."""

    name = "exactly-once"
    draws: Draws = Draws(CHOICES, (6, 14), always=frozenset({"start"}))
    promises: ClassVar[tuple[type[Invariant], ...]] = (
        *REPLICATION,
        TransactionsAreAtomic,
        HandlersSucceed,
    )
    world: CopyWorld

    def __init__(
        self,
        kafka_version: str,
        seed: int,
        trace: bool = False,
        only: Collection[str] | None = None,
    ) -> None:
        config = {
            "offsets.topic.num.partitions": 2,
            "transaction.state.log.num.partitions": 2,
            "default.replication.factor": 3,
            "min.insync.replicas": 2,
            "zookeeper.session.timeout.ms": 6000,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 2000,
        }
        watch = Watch()
        simulation = Simulation(
            BROKERS,
            kafka_version=kafka_version,
            seed=seed,
            recorder=RecordedWatch(watch) if trace else watch,
            config=config,
            topics={"in": PARTITIONS, "out": PARTITIONS},
        )
        self._judge(CopyWorld(simulation), watch, None, only)
        application(random.Random(f"application {seed}")).do(self.world)

    def figures(self) -> dict[str, int]:
        world = self.world

        def total(count: Callable[[SimulatedTransformer], int]) -> int:
            return sum(map(count, world.transformers))

        return {
            "records": sum(len(world.committed_records.get(where, ())) for where in world.outputs),
            "committed": total(lambda transformer: transformer.committed),
            "aborted": total(lambda transformer: transformer.aborted),
            "fenced": total(lambda transformer: transformer.fenced),
            "answers of former coordinators": world.former_coordinator_answers,
        }

    def heal(self, patience_ms: int = HEALED_MS) -> bool:
        world, simulation = self.world, self.world.simulation
        reader = simulation.consumer(world.inputs + world.outputs, isolation_level=READ_COMMITTED)

        def read(where: TopicPartition, batch: RecordBatch, _position: int) -> None:
            world.committed_records.setdefault(where, []).extend(batch.records())

        reader.on_batch = read
        for broker in sorted(world.paused):
            steps.Thaw(broker).do(world)
        end_ms = simulation.now_ms + patience_ms
        while simulation.now_ms < end_ms and world.differences():
            world.recover_brokers()  # again, as a broker may still have been shutting down
            simulation.run_for(2000)
        if not world.differences():  # give duplicates time to appear
            simulation.run_for(20_000)
        return True
