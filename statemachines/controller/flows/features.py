"""Finalised features of the cluster in ``/feature`` (KIP-584,
docs/kafka/controller-failover.md#failover)."""

from __future__ import annotations

from collections.abc import Iterable

from ....protocol.awaiting import Cancelled
from ....protocol.errors import ErrorCode
from ....protocol.values import BrokerInfo
from ....protocol.znode_payloads import FeatureZnode
from ..events import UpdateFeatures
from ..parts import ControllerParts

_Levels = dict[str, tuple[int, int]]
"""(minimum, maximum) version level by feature."""


class Features:
    """Keeps ``/feature``; keeps brokers out that do not support what is finalised."""

    def __init__(self, parts: ControllerParts) -> None:
        self._parts = parts
        self.finalized: _Levels = {}
        """As last read or written by this controller."""

    async def setup(self) -> None:
        """At failover: enable feature versioning, keeping what is enabled already."""
        parts = self._parts
        if not parts.behaviour.feature_versioning:
            return
        stored, _version = await parts.zk.brokers.get_feature_znode()
        if stored is None:
            await parts.zk.brokers.create_feature_znode(FeatureZnode(True))
        elif not stored.enabled:
            await parts.zk.brokers.update_feature_znode(FeatureZnode(True))
        self.finalized = {}
        if stored is not None and stored.enabled:
            self.finalized = {name: (low, high) for name, low, high in stored.features}

    def compatible(self, brokers: Iterable[tuple[BrokerInfo, int]]) -> list[tuple[BrokerInfo, int]]:
        """Those of the brokers that support every finalised feature; the others are ignored."""
        accepted = []
        for broker, epoch in brokers:
            if _supports(broker, self.finalized):
                accepted.append((broker, epoch))
            else:
                self._parts.log("warn", f"ignoring broker {broker.id}: it lacks finalised features")
        return accepted

    async def process_update_features(self, event: UpdateFeatures) -> None:
        """Answer per feature; valid updates are written together."""
        parts = self._parts
        if not parts.tenure.is_active:
            event.callback(ErrorCode.NOT_CONTROLLER)
            return
        target = dict(self.finalized)
        results: dict[str, tuple[ErrorCode, str | None]] = {}
        for name, (level, allow_downgrade) in event.updates:
            problem = self._problem(name, level, allow_downgrade)
            if problem is not None:
                results[name] = (ErrorCode.INVALID_REQUEST, problem)
                continue
            results[name] = (ErrorCode.NONE, None)
            if level < 1:
                target.pop(name)
            else:
                target[name] = (self._own_levels()[name][0], level)
        if target != self.finalized and not await self._write(target):
            failed = (ErrorCode.FEATURE_UPDATE_FAILED, "Unable to update the finalized features.")
            results = {n: failed if r[0] == ErrorCode.NONE else r for n, r in results.items()}
        event.callback(results)

    async def _write(self, target: _Levels) -> bool:
        node = FeatureZnode(True, tuple((name, *levels) for name, levels in target.items()))
        try:
            await self._parts.zk.brokers.update_feature_znode(node)
        except Cancelled:
            raise
        except Exception as error:
            self._parts.log("error", f"writing the features failed: {error!r}")
            return False
        self.finalized = target
        return True

    def _own_levels(self) -> _Levels:
        return {name: (low, high) for name, low, high in self._parts.broker_info().features}

    def _problem(self, name: str, level: int, allow_downgrade: bool) -> str | None:
        """Why an update is refused."""
        if not name:
            return "Feature name can not be empty."
        current = self.finalized.get(name)
        if level < 1:
            if not allow_downgrade:
                return "Can not provide maxVersionLevel less than 1 without allowDowngrade."
            return None if current else "Can not delete non-existing finalized feature."
        if current is not None:
            low, high = current
            if level == high:
                return f"The maxVersionLevel is {high} already."
            if level < high and not allow_downgrade:
                return f"Can not downgrade from {high} without allowDowngrade."
            if level > high and allow_downgrade:
                return f"allowDowngrade given, but {level} is an upgrade from {high}."
            if level < low:
                return f"Can not downgrade below the minimum level {low}."
        own = self._own_levels().get(name)
        if own is None:
            return "The provided feature is not supported."
        brokers = self._parts.context.brokers.live_or_shutting_down_brokers()
        if not all(_supports(broker, {name: (own[0], level)}) for broker in brokers):
            return "Brokers were found to have incompatible versions for the feature."
        return None


def _supports(broker: BrokerInfo, finalized: _Levels) -> bool:
    supported = {name: (low, high) for name, low, high in broker.features}
    for name, (low, high) in finalized.items():
        levels = supported.get(name)
        if levels is None or low < levels[0] or high > levels[1]:
            return False
    return True
