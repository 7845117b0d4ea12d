"""What a modelled consumer is told of its assignment."""

from __future__ import annotations

from ...protocol.declaring.deprecation import deprecated
from ...protocol.values import frozen
from .assignors import Partitions


@frozen
class AssignmentChange:
    """Change of a member's assignment, and when it came."""

    time_ms: int
    """Virtual milliseconds since the run began."""
    kind: str
    """``assigned``, ``revoked`` or ``lost``."""
    generation: int
    """The group's generation."""
    partitions: Partitions
    """What came or went."""

    @property
    @deprecated("at_ms is called time_ms now; the old name goes in fakekafka 0.4")
    def at_ms(self) -> int:
        """The old name of ``time_ms``, which goes in 0.4."""
        return self.time_ms
