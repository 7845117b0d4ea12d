"""Promises about the control plane, and the state machines of groups and transactions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...coordinators.groups.group import PREVIOUS_STATES
from ...coordinators.transactions.states import VALID_PREVIOUS_STATES
from ...protocol.values import TopicPartition
from ...statemachines.machines.transitions import PARTITION_PREDECESSORS, replica_predecessors
from ..watch import StoredLeadership
from .invariant import Invariant, Scene

_ELECTION_EVENTS = frozenset(
    {"Startup", "ControllerChange", "Reelect", "RegisterBrokerAndReelect", None}
)
"""Events in which a broker may become the controller and initializes the states it finds."""


def _transition_names(table: Mapping[Any, Any], name: str) -> frozenset[tuple[str, str]]:
    """Return the legal transitions of a table as (from, to) pairs of names."""
    return frozenset(
        (getattr(before, name), getattr(after, name))
        for after, predecessors in table.items()
        for before in predecessors
    )


class LegalTransitions(Invariant):
    """Partitions and replicas at the controller, and groups and transactions at their coordinators,
    make only the state transitions that Kafka allows."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._partitions = _transition_names(PARTITION_PREDECESSORS, "kafka_name")
        predecessors = replica_predecessors(scene.world.simulation.behaviour)
        self._replicas = _transition_names(predecessors, "kafka_name")
        self._groups = _transition_names(PREVIOUS_STATES, "value")
        self._transactions = _transition_names(VALID_PREVIOUS_STATES, "title")

    def on_controller_state(
        self, subject: str, old: str | None, new: str | None, event: str | None
    ) -> None:
        is_replica = "/" in subject
        legal = self._replicas if is_replica else self._partitions
        if (old, new) in legal or old is None or new is None:
            return
        if not is_replica and old == "NonExistentPartition" and event in _ELECTION_EVENTS:
            return
        self.report(f"{subject} went from {old} to {new} while the controller handled {event}")

    def on_group_state(self, group: str, old: str | None, new: str | None) -> None:
        if old is None or new is None or old == new or (old, new) in self._groups:
            return
        if not self.scene.world.has_consumer_protocol:
            self.report(f"group {group} went from {old} to {new}")

    def on_transaction_state(self, name: str, old: str | None, new: str | None) -> None:
        if old is not None and new is not None and (old, new) not in self._transactions:
            self.report(f"transaction {name} went from {old} to {new}")


class ControllerKnowsZookeeper(Invariant):
    """An idle controller knows the leader and the leader epoch that ZooKeeper stores for each
    partition."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._changed: dict[TopicPartition, None] = {}

    def on_stored(
        self, where: TopicPartition, stored: StoredLeadership, before: StoredLeadership | None
    ) -> None:
        self._changed[where] = None

    def on_controller_idle(self, broker: int) -> None:
        if not self._changed:
            return
        found = self.scene.world.controller_of(broker)
        if found is None or not found.is_active or found.epoch != self.watch.controller_epoch:
            return
        changed, self._changed = self._changed, {}
        for where in changed:
            leadership = found.context.topics.partition_leadership_info(where)
            if leadership is None or where.topic in self.watch.deleted:
                continue
            known, stored = leadership.leader_and_isr, self.watch.stored[where]
            if (known.leader, known.leader_epoch) != (stored.leader, stored.leader_epoch):
                self.report(
                    f"{where}: ZooKeeper has leader {stored.leader} in epoch {stored.leader_epoch},"
                    f" but the controller on broker {broker} has leader {known.leader} in epoch "
                    f"{known.leader_epoch}",
                    known=self._deposed_controller_defect(stored),
                )

    def _deposed_controller_defect(self, stored: StoredLeadership) -> str:
        """Return the name of Kafka's defect if a former controller stored the leadership."""
        is_guarded = self.scene.world.simulation.behaviour.guard_controller_writes
        is_of_former = stored.controller_epoch < self.watch.controller_epoch
        return "KAFKA-6082" if is_of_former and not is_guarded else ""
