"""The targets of consumer groups whose members join, leave and die, as brokers do."""

from __future__ import annotations

import random
from collections.abc import Collection
from typing import Any, ClassVar

from ...testing.running import WaitTimeout
from ...testing.simulation import Simulation
from ..generator import Draws
from ..invariants.clients import CommitsStay, OneOwner
from ..invariants.invariant import Invariant
from ..invariants.validations import GroupsStable, HandlersSucceed
from ..watch import RecordedWatch, Watch
from ..worlds.group_world import CHOICES, PARTITIONS, TOPIC, GroupWorld
from .cluster import REPLICATION
from .target import Target

ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
SERVER_ASSIGNORS = ("uniform", "range")
KEEPING_VERSIONS = ("2.8", "3.9")
"""Releases whose brokers may be killed without the loss of replicated records, which older ones may
lose (KIP-101, KIP-279)."""
_HEALED_MS = 300_000


class ClassicGroups(Target):
    """A group that uses the classic protocol."""

    name = "groups"
    draws: Draws = Draws(
        CHOICES, (14, 14), (1, 10, 500, 4000, 15_000), frozenset({"start", "join", "produce"})
    )
    promises: ClassVar[tuple[type[Invariant], ...]] = (
        *REPLICATION,
        OneOwner,
        CommitsStay,
        GroupsStable,
        HandlersSucceed,
    )
    world: GroupWorld
    has_consumer_protocol: ClassVar[bool] = False

    def __init__(
        self,
        kafka_version: str,
        seed: int,
        trace: bool = False,
        only: Collection[str] | None = None,
    ) -> None:
        rng = random.Random(f"group history {seed}")
        config: dict[str, Any] = {
            "offsets.topic.num.partitions": 1,
            "min.insync.replicas": rng.choice((1, 2)),
            "group.initial.rebalance.delay.ms": rng.choice((0, 3000)),
        }
        settings: dict[str, Any] = {"assignor": rng.choice(ASSIGNORS)}
        if self.has_consumer_protocol:
            settings = {
                "group_protocol": "consumer",
                "group_remote_assignor": rng.choice(SERVER_ASSIGNORS),
            }
            config["group.coordinator.rebalance.protocols"] = "classic,consumer"
            config["group.consumer.min.session.timeout.ms"] = 10_000
            config["group.consumer.min.heartbeat.interval.ms"] = 500
            config["group.consumer.session.timeout.ms"] = 10_000
            config["group.consumer.heartbeat.interval.ms"] = rng.choice((500, 3000))
        watch = Watch()
        simulation = Simulation(
            3,
            seed=seed,
            kafka_version=kafka_version,
            topics={TOPIC: {"partitions": PARTITIONS, "replication_factor": 3}},
            config=config,
            recorder=RecordedWatch(watch) if trace else watch,
        )
        keeps_brokers = rng.random() < 0.25 or kafka_version not in KEEPING_VERSIONS
        self._judge(GroupWorld(simulation, settings, keeps_brokers), watch, None, only)
        self.world.produce(tuple(range(PARTITIONS)))
        self.world.join("member-1", rng.choice((500, 5000)), None)

    def figures(self) -> dict[str, int]:
        return {"committed": sum(self.world.acknowledged.values()), "joined": self.world.joined}

    def heal(self) -> bool:
        world, simulation = self.world, self.world.simulation
        for broker_id in world.down():
            simulation.broker(broker_id).start()
        simulation.run_for(30_000)
        # A static member fails if its place was not released yet when it joined.
        world.members = [m for m in world.members if m.membership.failure is None]
        if not world.members:
            world.join(world.free_name(), 500, None)
        world.produce(tuple(range(PARTITIONS)) * 2)
        try:
            simulation.run_until(lambda: self.first_unmet() is None, 2 * _HEALED_MS, every_ms=100)
        except WaitTimeout:
            self.report_unmet(*(self.first_unmet() or ("", "")))
            return False
        simulation.run_for(10_000)
        return True


class ConsumerGroups(ClassicGroups):
    """A group that uses the consumer protocol (KIP-848)."""

    name = "consumer-groups"
    has_consumer_protocol = True
