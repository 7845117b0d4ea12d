"""Causes of timers that rearm themselves."""

from __future__ import annotations

from fakekafka.actors.runtime.timer_chains import TimerChains


def _fire(chains: TimerChains, actor: str, name: str, event: int, cause: int | None) -> int | None:
    """Fire a timer that was armed at event ``cause``; return the cause of its chain."""
    chain_start = chains.chain_start(actor, name, cause)
    chains.record_firing(actor, name, event, chain_start)
    return chain_start


def test_a_timer_armed_by_its_own_firing_has_the_cause_of_the_first_one() -> None:
    """A timer armed by its own firing has the cause of the first one, however many rounds later."""
    chains = TimerChains()
    cause: int | None = 5
    for event in range(10, 1000, 10):
        assert _fire(chains, "broker-1", "tick", event, cause) == 5
        cause = event
    assert chains.chain_start("broker-1", "tick", cause) == 5


def test_a_timer_armed_by_anything_else_begins_a_new_chain() -> None:
    """A timer armed by another cause, actor or timer begins a new chain."""
    chains = TimerChains()
    assert _fire(chains, "broker-1", "tick", 10, 5) == 5
    assert _fire(chains, "broker-1", "tick", 20, 12) == 12
    assert _fire(chains, "broker-2", "tick", 30, 20) == 20
    assert _fire(chains, "broker-1", "tock", 40, 20) == 20
    assert _fire(chains, "broker-1", "tick", 50, 20) == 12


def test_without_a_known_first_cause_each_firing_is_caused_by_the_one_before() -> None:
    """Without a known first cause, each firing is caused by the one before."""
    chains = TimerChains()
    assert _fire(chains, "broker-1", "tick", 10, None) is None
    assert _fire(chains, "broker-1", "tick", 20, 10) == 10
