"""Errors that say why a leader election did not take place."""

from __future__ import annotations

from ..protocol.errors import FakeKafkaError


class StateChangeFailed(FakeKafkaError):
    """A partition or replica could not change its state (Kafka: ``StateChangeFailedException``)."""


class NoReplicaOnline(FakeKafkaError):
    """No replica is eligible to lead (0.10: ``NoReplicaOnlineException``)."""


class LeaderElectionNotNeeded(FakeKafkaError):
    """The preferred replica leads already (0.10: ``LeaderElectionNotNeededException``)."""
