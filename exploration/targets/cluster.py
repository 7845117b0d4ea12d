"""The target of a cluster under load, which must recover from all faults and keep its promises."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import ClassVar

from ..faults import FAULTS, RECOVERIES
from ..generator import Draws
from ..invariants.clients import NoDuplicates, ReadsArePrefixes
from ..invariants.control import ControllerKnowsZookeeper, LegalTransitions
from ..invariants.invariant import Invariant
from ..invariants.replication import (
    AcknowledgedSurvive,
    EpochsRise,
    HighWatermarkRises,
    LeaderInIsr,
    LogMatching,
    OneLeaderAnEpoch,
    StrongIsr,
    TypeOk,
    WeakIsr,
)
from ..invariants.validations import (
    BrokersRun,
    HandlersSucceed,
    IsrWhole,
    MetadataAgrees,
    PartitionsOnline,
    RecordsAreAnswered,
    ReplicasIdentical,
    RequestsEnd,
)
from ..watch import Watch
from ..worlds.load import Load, build, draw_options
from .healing import Healing
from .target import Target

REPLICATION: tuple[type[Invariant], ...] = (
    TypeOk,
    LeaderInIsr,
    WeakIsr,
    StrongIsr,
    LogMatching,
    OneLeaderAnEpoch,
    EpochsRise,
    HighWatermarkRises,
    LegalTransitions,
    ControllerKnowsZookeeper,
)
"""Promises that are checked in every target while it runs."""


class LoadedCluster(Target):
    """A cluster with producers that use ``acks=all`` and a consumer, subject to every fault."""

    name = "cluster"
    draws: Draws = Draws(FAULTS, (3, 18), (0, 1, 10, 200, 1000, 1000, 4000, 8000), RECOVERIES)
    promises: ClassVar[tuple[type[Invariant], ...]] = (
        *REPLICATION,
        AcknowledgedSurvive,
        ReadsArePrefixes,
        NoDuplicates,
        BrokersRun,
        PartitionsOnline,
        RequestsEnd,
        RecordsAreAnswered,
        MetadataAgrees,
        IsrWhole,
        ReplicasIdentical,
        HandlersSucceed,
    )

    def __init__(
        self,
        kafka_version: str,
        seed: int,
        trace: bool = False,
        only: Collection[str] | None = None,
    ) -> None:
        options = draw_options(seed)
        watch = Watch()
        world = build(options, seed, kafka_version, watch, trace)
        self.load: Load = Load(world, watch, options)
        self._judge(world, watch, self.load, only)
        self.healing: Healing = Healing(self, self.load)

    @classmethod
    def shape_of(cls, seed: int) -> Hashable:
        options = draw_options(seed)
        return options.brokers, options.zookeepers, options.log_dirs

    def figures(self) -> dict[str, int]:
        return {"acknowledged": sum(map(len, self.load.acknowledged.values()))}

    def heal(self) -> bool:
        return self.healing.run()
