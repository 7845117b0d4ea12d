"""Settings of a modelled member of a group, for either group protocol."""

from __future__ import annotations

from ...protocol.groups import CLASSIC_PROTOCOL, CONSUMER_PROTOCOL
from ...protocol.values import frozen
from .assignors import ASSIGNORS
from .client import refuse_setting
from .consumer import ConsumerSettings

_MINIMUMS = {
    "session_timeout_ms": 1,
    "heartbeat_interval_ms": 1,
    "rebalance_timeout_ms": 1,
    "auto_commit_interval_ms": 1,
}


@frozen
class GroupConsumerSettings(ConsumerSettings):
    """Kafka's settings of a consumer in a group, with the defaults of the 3.x clients."""

    group_id: str = ""
    """Id of the group."""
    topics: tuple[str, ...] = ()
    """Topics of the subscription."""
    assignor: str = "range"
    """``range``, ``roundrobin``, ``sticky`` or ``cooperative-sticky``."""
    group_protocol: str = "classic"
    """``classic``, or ``consumer`` (KIP-848), in which the coordinator assigns the partitions and
    sets the heartbeat interval."""
    group_remote_assignor: str | None = None
    """``uniform`` or ``range``, for the consumer protocol."""
    session_timeout_ms: int = 45000
    """Time in milliseconds without a heartbeat after which the coordinator removes the member."""
    heartbeat_interval_ms: int = 3000
    """Interval of heartbeats in milliseconds, for the classic protocol."""
    rebalance_timeout_ms: int = 300000
    """Kafka's ``max.poll.interval.ms``."""
    group_instance_id: str | None = None
    """Instance id of a static member (KIP-345)."""
    enable_auto_commit: bool = True
    """True to commit positions regularly."""
    auto_commit_interval_ms: int = 5000
    """Interval of automatic commits in milliseconds."""

    def __post_init__(self) -> None:
        """Raise ``UsageError`` for values that no member can work with."""
        ConsumerSettings.__post_init__(self)
        if not self.group_id:
            refuse_setting(self, "group_id", "the name of a group")
        if not self.topics:
            refuse_setting(self, "topics", "at least one topic")
        if self.assignor not in ASSIGNORS:
            refuse_setting(self, "assignor", f"one of {', '.join(ASSIGNORS)}")
        if self.group_protocol not in (CLASSIC_PROTOCOL, CONSUMER_PROTOCOL):
            refuse_setting(self, "group_protocol", f"{CLASSIC_PROTOCOL} or {CONSUMER_PROTOCOL}")
        for name, low in _MINIMUMS.items():
            if not getattr(self, name) >= low:
                refuse_setting(self, name, f"a number >= {low}")
