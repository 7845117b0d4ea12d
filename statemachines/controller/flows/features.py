"""Finalised features of the cluster in ``/feature`` (KIP-584,
docs/kafka/controller-failover.md#failover)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ....protocol.awaiting import Cancelled
from ....protocol.errors import ErrorCode
from ....protocol.values import BrokerInfo
from ....protocol.znode_payloads import FeatureZnode
from ..events import UpdateFeatures
from ..parts import ControllerParts

if TYPE_CHECKING:
    from ....protocol.admin import FeatureUpdate

_FAILED = "Unable to update finalized features due to an unexpected server error."
_NOT_APPLIED = "Could not apply finalized feature update because"


class _Wording(NamedTuple):
    """Wording of a release's messages for a refused update."""

    level: str
    no_deletion: str
    same: str
    no_downgrade: str
    no_upgrade: str


_BY_FLAG = _Wording(
    "maxVersionLevel",
    "Can not provide maxVersionLevel: {level} less than 1 without setting the allowDowngrade flag "
    "to true in the request.",
    "Can not {way} a finalized feature from existing maxVersionLevel:{high} to the same value.",
    "Can not downgrade finalized feature from existing maxVersionLevel:{high} to provided "
    "maxVersionLevel:{level} without setting the allowDowngrade flag in the request.",
    "When the allowDowngrade flag set in the request, the provided maxVersionLevel:{level} can not "
    "be greater than existing maxVersionLevel:{high}.",
)
_BY_TYPE = _Wording(
    "versionLevel",
    "Can not provide versionLevel: {level} less than 1 without setting the SAFE downgradeType in "
    "the request.",
    "Can not {way} a finalized feature from existing versionLevel:{high} to the same value.",
    "Can not downgrade finalized feature from existing versionLevel:{high} to provided "
    "versionLevel:{level} without setting the downgradeType to SAFE in the request.",
    "When the downgradeType is set to SAFE in the request, the provided versionLevel:{level} can "
    "not be greater than existing versionLevel:{high}.",
)

_Levels = dict[str, tuple[int, int]]
"""(minimum, maximum) version level by feature."""


class Features:
    """Manages ``/feature``, and ignores brokers that do not support the finalised features."""

    def __init__(self, parts: ControllerParts) -> None:
        self._parts = parts
        self.finalized: _Levels = {}
        """Finalised features, as last read or written by this controller."""

    async def setup(self) -> None:
        """Enable feature versioning at failover, keeping features that are finalised already."""
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
        """Return the brokers that support every finalised feature; the others are ignored."""
        accepted = []
        for broker, epoch in brokers:
            if _supports(broker, self.finalized):
                accepted.append((broker, epoch))
            else:
                self._parts.log("warn", f"ignoring broker {broker.id}: it lacks finalised features")
        return accepted

    async def process_update_features(self, event: UpdateFeatures) -> None:
        """Update features and answer per feature; valid updates are written together."""
        parts = self._parts
        if not parts.is_active:
            event.callback(ErrorCode.NOT_CONTROLLER)
            return
        target = dict(self.finalized)
        results: dict[str, tuple[ErrorCode, str | None]] = {}
        for update in event.updates:
            name, level = update.name, update.level
            problem = self._update_error(update)
            if problem is not None:
                results[name] = (ErrorCode.INVALID_REQUEST, problem)
                continue
            results[name] = (ErrorCode.NONE, None)
            if level < 1:
                target.pop(name)
            else:
                target[name] = (self._supported_levels()[name][0], level)
        if target != self.finalized and not await self._write(target):
            failed = (ErrorCode.FEATURE_UPDATE_FAILED, _FAILED)
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

    def _supported_levels(self) -> _Levels:
        return {name: (low, high) for name, low, high in self._parts.broker_info().features}

    def _update_error(self, update: FeatureUpdate) -> str | None:
        """Return why an update is refused, or None (``KafkaController.validateFeatureUpdate``)."""
        from ....protocol.admin import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE

        has_types = self._parts.behaviour.feature_update_types
        level, upgrade_type = update.level, update.upgrade_type
        if not update.name:
            return "Feature name can not be empty."
        if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
            return "Received unknown upgrade type."
        current = self.finalized.get(update.name)
        wording = _BY_TYPE if has_types else _BY_FLAG
        if level < 1:
            if upgrade_type == UPGRADE:
                return wording.no_deletion.format(level=level)
            return None if current else "Can not delete non-existing finalized feature."
        if current is not None:
            low, high = current
            if level == high:
                way = "downgrade" if upgrade_type == SAFE_DOWNGRADE else "upgrade"
                return wording.same.format(way=way, high=high)
            if level < high and upgrade_type != SAFE_DOWNGRADE:
                return wording.no_downgrade.format(high=high, level=level)
            if level > high and upgrade_type != UPGRADE:
                return wording.no_upgrade.format(high=high, level=level)
            if level < low and not has_types:
                return (
                    f"Can not downgrade finalized feature to maxVersionLevel:{level} because it's "
                    f"lower than the existing minVersionLevel:{low}."
                )
        return self._incompatibility(update.name, level, wording.level)

    def _incompatibility(self, name: str, level: int, level_name: str) -> str | None:
        own = self._supported_levels().get(name)
        if own is None:
            return f"{_NOT_APPLIED} the provided feature is not supported."
        if level < own[0]:
            return (
                f"{_NOT_APPLIED} the provided {level_name}:{level} is lower than the supported "
                f"minVersion:{own[0]}."
            )
        brokers = self._parts.context.brokers.live_or_shutting_down_brokers()
        if not all(_supports(broker, {name: (own[0], level)}) for broker in brokers):
            return (
                f"{_NOT_APPLIED} brokers were found to have incompatible versions for the feature."
            )
        return None


def _supports(broker: BrokerInfo, finalized: _Levels) -> bool:
    supported = {name: (low, high) for name, low, high in broker.features}
    for name, (low, high) in finalized.items():
        levels = supported.get(name)
        if levels is None or low < levels[0] or high > levels[1]:
            return False
    return True
