"""Random histories of groups end whole: one owner per generation, no committed offset lost."""

from __future__ import annotations

import pytest
from fakekafka.tests.support.group_histories import run


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
def test_a_history_of_a_group_ends_whole(seed: int) -> None:
    """DP-135: members join, leave and die, brokers die, often in the middle of a rebalance."""
    assert run(seed) == [], f"python -m fakekafka.tests.support.group_histories --seed {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
def test_a_history_of_a_group_of_the_consumer_protocol_ends_whole(seed: int) -> None:
    """KIP-848: no partition is read by two members at any moment, whichever broker dies."""
    found = run(seed, protocol="consumer")
    assert found == [], (
        f"python -m fakekafka.tests.support.group_histories --protocol consumer --seed {seed}"
    )
