"""A remote replica as its partition's leader sees it (docs/kafka/isr.md#caught-up).

The local replica has no object of its own: its offsets are read straight from the log. A remote
replica is known through its fetch requests only, so everything here is what the last successful
fetch said. An unsuccessful fetch changes nothing, which is how a failing follower ages out.
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
        """The offset the follower asked for last; -1 until it fetched in this leadership. May go
        down: the leader believes the follower."""
        self.log_start_offset: int = NO_OFFSET
        self.last_fetch_leader_log_end_offset: int = 0
        """The leader's end offset at the previous fetch of this follower."""
        self.last_fetch_time_ms: int = 0
        self.last_caught_up_time_ms: int = last_caught_up_time_ms
        """Never moves backwards through fetches; 0 means never caught up, which is why host
        clocks must start far from 0."""
        self.broker_epoch: int = -1

    def update_fetch_state(
        self,
        fetch_offset: int,
        log_start_offset: int,
        fetch_time_ms: int,
        leader_end_offset: int,
        by_previous_fetch: bool,
    ) -> None:
        """Account a successful fetch (docs/kafka/isr.md#caught-up).

        ``leader_end_offset`` was taken before the leader read its log. ``by_previous_fetch`` adds
        the rule of 0.10.2: having reached the end of one fetch ago counts as caught up then.
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
        """Start a leadership: members of the ISR count as caught up now, others as never."""
        self.last_fetch_leader_log_end_offset = leader_end_offset
        self.last_fetch_time_ms = now_ms
        self.last_caught_up_time_ms = last_caught_up_time_ms

    def forget_offsets(self) -> None:
        """A new leader knows no offset of its followers until they fetch
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
