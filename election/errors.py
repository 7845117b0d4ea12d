"""Why a leader election did not happen."""

from __future__ import annotations

from ..protocol.errors import FakeKafkaError


class StateChangeFailed(FakeKafkaError):
    """A partition or replica could not be moved (Kafka: ``StateChangeFailedException``)."""


class NoReplicaOnline(FakeKafkaError):
    """No replica may lead (0.10: ``NoReplicaOnlineException``)."""


class LeaderElectionNotNeeded(FakeKafkaError):
    """The wanted leader leads already (0.10: ``LeaderElectionNotNeededException``)."""
