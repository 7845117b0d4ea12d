"""Proposed in-sync replica sets (docs/kafka/isr.md).

Theory of operation. A partition is in one of three states::

    committed(I) --expand n--> pending expand(I, I+n) --accepted--> committed(I+n)
    committed(I) --shrink o--> pending shrink(I, I-o) --accepted--> committed(I-o)

While a change is pending, the *committed* set decides on admission (min.insync.replicas before an
append, gauges), and the *maximal* set (committed plus the joining replica) on safety (high
watermark, acks). At most one change is pending. A LeaderAndIsr discards a pending change, so an
answer counts only if its proposal is still pending. ``Partition`` owns the state; the updaters send
proposals to the controller (KIP-497) or write them to ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ...protocol.errors import ErrorCode
from ...protocol.values import LeaderAndIsr, TopicPartition

IsrCallback = Callable[[ErrorCode, LeaderAndIsr | None], object]
"""Called with the outcome of a proposal: NONE and the stored state, or an error and None."""


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
    """Submits ISR changes to the controller or to ZooKeeper."""

    def submit(
        self,
        topic_partition: TopicPartition,
        leader_and_isr: LeaderAndIsr,
        controller_epoch: int,
        callback: IsrCallback,
    ) -> bool:
        """Propose a state; return False, without a callback, if a proposal for the partition is
        pending."""
        ...

    def clear_pending(self, topic_partition: TopicPartition) -> None:
        """Drop the proposal of a partition that received a LeaderAndIsr."""
        ...
