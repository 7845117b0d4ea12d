"""A change of a modelled consumer's assignment."""

from __future__ import annotations

from ...protocol.declaring.deprecation import deprecated
from ...protocol.values import frozen
from .assignors import Partitions


@frozen
class AssignmentChange:
    """A change of a member's assignment, with its time."""

    time_ms: int
    """Virtual time in milliseconds since the Unix epoch, by the clock of the consumer's machine."""
    kind: str
    """``assigned``, ``revoked`` or ``lost``."""
    generation: int
    """The group's generation."""
    partitions: Partitions
    """Partitions that were assigned, revoked or lost."""

    @property
    @deprecated("at_ms is called time_ms now; the old name goes in fakekafka 0.4")
    def at_ms(self) -> int:
        """The old name of ``time_ms``, to be removed in 0.4."""
        return self.time_ms
