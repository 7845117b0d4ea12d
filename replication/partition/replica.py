"""A remote replica, as seen by the leader of its partition (docs/kafka/isr.md#caught-up).

The local replica has no object of its own: its offsets are read from the log. A remote replica is
known only through its fetch requests, so its state is that of the last successful fetch. An
unsuccessful fetch changes nothing, so a failing follower eventually counts as lagging.
"""

from __future__ import annotations

from ...protocol.values import NO_OFFSET


class Replica:
    """State of one follower, kept by the leader."""

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "last_caught_up_time_ms",
        "last_fetch_leader_log_end_offset",
        "last_fetch_time_ms",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: int, last_caught_up_time_ms: int = 0) -> None:
        self.broker_id: int = broker_id
        self.log_end_offset: int = NO_OFFSET
        """Offset of the follower's last fetch; -1 until it has fetched in this leadership. It may
        go down, as the leader trusts the follower."""
        self.log_start_offset: int = NO_OFFSET
        self.last_fetch_leader_log_end_offset: int = 0
        """Log end offset of the leader at the follower's last fetch."""
        self.last_fetch_time_ms: int = 0
        self.last_caught_up_time_ms: int = last_caught_up_time_ms
        """Time at which the follower was last caught up; fetches never move it back. 0 means
        never, which is why host clocks must start far from 0."""
        self.broker_epoch: int = -1

    def update_fetch_state(
        self,
        fetch_offset: int,
        log_start_offset: int,
        fetch_time_ms: int,
        leader_end_offset: int,
        by_previous_fetch: bool,
    ) -> None:
        """Update the replica for a successful fetch (docs/kafka/isr.md#caught-up).

        ``leader_end_offset`` was taken before the leader read its log. ``by_previous_fetch`` adds
        the rule of 0.10.2: a follower that reaches the log end of its previous fetch was caught up
        at the time of that fetch.
        """
        if fetch_offset >= leader_end_offset:
            if fetch_time_ms > self.last_caught_up_time_ms:
                self.last_caught_up_time_ms = fetch_time_ms
        elif (
            by_previous_fetch
            and fetch_offset >= self.last_fetch_leader_log_end_offset
            and self.last_fetch_time_ms > self.last_caught_up_time_ms
        ):
            self.last_caught_up_time_ms = self.last_fetch_time_ms
        self.log_start_offset = log_start_offset
        self.log_end_offset = fetch_offset
        self.last_fetch_leader_log_end_offset = leader_end_offset
        self.last_fetch_time_ms = fetch_time_ms

    def reset_caught_up_time(
        self, leader_end_offset: int, now_ms: int, last_caught_up_time_ms: int
    ) -> None:
        """Set the times for a new leadership; the caller passes now for a member of the ISR, and 0
        for other replicas, which count as never caught up."""
        self.last_fetch_leader_log_end_offset = leader_end_offset
        self.last_fetch_time_ms = now_ms
        self.last_caught_up_time_ms = last_caught_up_time_ms

    def forget_offsets(self) -> None:
        """Reset the offsets, which a new leader does not know until the follower fetches
        (docs/kafka/partitions.md#becoming-leader)."""
        self.log_end_offset = NO_OFFSET
        self.log_start_offset = NO_OFFSET
        self.last_fetch_leader_log_end_offset = NO_OFFSET
        self.last_fetch_time_ms = 0

    def __repr__(self) -> str:
        return (
            f"Replica(broker_id={self.broker_id}, log_end_offset={self.log_end_offset}, "
            f"log_start_offset={self.log_start_offset}, "
            f"last_caught_up_time_ms={self.last_caught_up_time_ms})"
        )
