"""Leaders return to their preferred replicas by themselves (docs/kafka/election.md#rebalancing)."""

from __future__ import annotations

from ....election.imbalance import leader_imbalances
from ....protocol.admin import PREFERRED
from ....protocol.host import Timer
from ..events import AutoPreferredReplicaLeaderElection, ElectionTrigger
from ..parts import ControllerParts
from .elections import Elections

FIRST_DELAY_MS = 5_000


class Rebalance:
    """The timer of the active controller and what it triggers."""

    def __init__(self, parts: ControllerParts, elections: Elections) -> None:
        self._parts = parts
        self._elections = elections
        self._timer: Timer | None = None
        self._is_started = False

    def start(self) -> None:
        """Start the controller's scheduler; the first check comes after 5 s."""
        self._is_started = True
        if self._parts.config["auto.leader.rebalance.enable"]:
            self._schedule(FIRST_DELAY_MS)

    def stop(self) -> None:
        """Stop the scheduler (at resignation)."""
        self._is_started = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def _interval_ms(self) -> int:
        return int(self._parts.config["leader.imbalance.check.interval.seconds"]) * 1000

    def _schedule(self, delay_ms: int) -> None:
        if self._is_started:
            self._timer = self._parts.host.call_later_ms(delay_ms, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if not self._is_started:
            return
        self._parts.event_manager.put(AutoPreferredReplicaLeaderElection())
        if self._parts.behaviour.rebalance_fixed_rate:
            self._schedule(self._interval_ms)

    async def process_rebalance(self, _event: AutoPreferredReplicaLeaderElection) -> None:
        """Check, elect, and come back later; an inactive controller does not come back."""
        parts = self._parts
        if not parts.tenure.is_active:
            return
        try:
            await self._check_and_trigger()
        finally:
            if not parts.behaviour.rebalance_fixed_rate:
                self._schedule(self._interval_ms)

    async def _check_and_trigger(self) -> None:
        parts = self._parts
        limit = parts.config["leader.imbalance.per.broker.percentage"]
        for imbalance in leader_imbalances(parts.context, limit, parts.behaviour):
            if not imbalance.candidates:
                continue
            parts.log(
                "info",
                f"broker {imbalance.broker_id} leads too little: "
                f"{len(imbalance.imbalanced)} of {imbalance.preferred_count} are elsewhere",
            )
            groups = [imbalance.candidates]
            if parts.behaviour.rebalance_one_by_one:
                groups = [(topic_partition,) for topic_partition in imbalance.candidates]
            for group in groups:
                await self._elections.on_replica_election(
                    group, PREFERRED, ElectionTrigger.AUTO_TRIGGERED
                )
