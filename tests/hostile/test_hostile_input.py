"""A short run of ``hostile.py``."""

from __future__ import annotations

import pytest
from fakekafka.tests.support.hostile_input import run

SEED = 1


@pytest.mark.slow
def test_a_good_client_is_served_while_others_send_nonsense() -> None:
    """The client never waits long, memory does not grow, and the emulation raises no error."""
    outcome = run(600, SEED, 50)
    assert outcome.complaints == (), str(outcome)
    assert outcome.requests > 0
    assert sum(outcome.kinds.values()) == outcome.inputs == 600
    assert all(stall.processor_s <= stall.wall_s + 0.1 for stall in outcome.stalls)
    assert outcome.longest_wait_s < 5, str(outcome)
    assert outcome.memory_most - outcome.memory_before < 200_000_000, str(outcome)
