"""The states of a consumer group and the ways between them
(docs/kafka/groups-and-transactions.md#groups)."""

from __future__ import annotations

from enum import Enum


class GroupState(Enum):
    """State of a group; the values are Kafka's names."""

    EMPTY = "Empty"
    """No members; perhaps offsets, which keep the group."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Members join; each waits until all have."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """All have joined; the leader's assignment is awaited."""
    STABLE = "Stable"
    """Every member has its assignment, or may ask for it."""
    DEAD = "Dead"
    """Removed, or coordinated elsewhere; nothing leads out."""


PREVIOUS_STATES: dict[GroupState, tuple[GroupState, ...]] = {
    GroupState.EMPTY: (GroupState.PREPARING_REBALANCE,),
    GroupState.PREPARING_REBALANCE: (
        GroupState.STABLE,
        GroupState.COMPLETING_REBALANCE,
        GroupState.EMPTY,
    ),
    GroupState.COMPLETING_REBALANCE: (GroupState.PREPARING_REBALANCE,),
    GroupState.STABLE: (GroupState.COMPLETING_REBALANCE,),
    GroupState.DEAD: tuple(GroupState),
}
"""State -> the states it may be entered from (Kafka: ``GroupState.validPreviousStates``)."""
