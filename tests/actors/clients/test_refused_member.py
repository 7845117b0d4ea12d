"""A member that its group refuses."""

from __future__ import annotations

from fakekafka import Simulation
from fakekafka.protocol.errors import ErrorCode


def test_a_member_that_is_refused_says_why_and_raises_nothing() -> None:
    """A refused member keeps the error as its failure; the compiled build once saw None there."""
    with Simulation(1, seed=1, topics={"orders": 1}) as simulation:
        member = simulation.group_consumer("billing", ["orders"], session_timeout_ms=1)
        simulation.run_for(5000)
    assert member.membership.failure is ErrorCode.INVALID_SESSION_TIMEOUT
