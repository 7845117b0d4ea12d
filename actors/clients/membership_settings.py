"""Settings of a modelled member of a group, whichever protocol it speaks."""

from __future__ import annotations

from ...protocol.values import frozen


@frozen
class MembershipSettings:
    """Kafka's settings of a member, with the defaults of the 3.x clients."""

    group_id: str
    topics: tuple[str, ...]
    assignor: str = "range"
    session_timeout_ms: int = 45000
    heartbeat_interval_ms: int = 3000
    rebalance_timeout_ms: int = 300000
    """Kafka's ``max.poll.interval.ms``."""
    group_instance_id: str | None = None
    request_timeout_ms: int = 30000
    remote_assignor: str | None = None
    """Kafka's ``group.remote.assignor``, for members of the consumer protocol."""
