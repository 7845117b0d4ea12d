"""Proposed in-sync replica sets (docs/kafka/isr.md).

Theory of operation. A partition is in one of three states::

    committed(I) --expand n--> pending expand(I, I+n) --accepted--> committed(I+n)
    committed(I) --shrink o--> pending shrink(I, I-o) --accepted--> committed(I-o)

While a change is pending the *committed* set answers admission (min.insync.replicas before an
append, gauges) and the *maximal* set (committed plus whoever joins) answers safety (high watermark,
acks). At most one change is pending. A LeaderAndIsr discards whatever is pending, so an answer
counts only if the very proposal it belongs to is still the pending one. ``Partition`` owns the
state; the updaters carry proposals to the controller (KIP-497) or into ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ...protocol.errors import ErrorCode
from ...protocol.values import LeaderAndIsr, TopicPartition

IsrCallback = Callable[[ErrorCode, LeaderAndIsr | None], object]
"""Told the outcome of a proposal: NONE with the stored state, or an error with None."""


class PendingIsr:
    """A proposed ISR that is not decided yet; compared by identity."""

    __slots__ = ("is_expansion", "proposal")

    def __init__(self, proposal: LeaderAndIsr, is_expansion: bool) -> None:
        self.proposal: LeaderAndIsr = proposal
        self.is_expansion: bool = is_expansion

    def __repr__(self) -> str:
        kind = "PendingExpandIsr" if self.is_expansion else "PendingShrinkIsr"
        return f"{kind}({self.proposal.isr})"


class IsrUpdater(Protocol):
    """Has an ISR change accepted by whoever decides on it."""

    def submit(
        self,
        topic_partition: TopicPartition,
        leader_and_isr: LeaderAndIsr,
        controller_epoch: int,
        callback: IsrCallback,
    ) -> bool:
        """Propose a state; False (and no callback) if one of this partition is under way."""
        ...

    def clear_pending(self, topic_partition: TopicPartition) -> None:
        """Forget the proposal of a partition that got a LeaderAndIsr."""
        ...
