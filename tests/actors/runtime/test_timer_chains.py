"""What the firings of timers follow from."""

from __future__ import annotations

from fakekafka.actors.runtime.timer_chains import TimerChains


def _fire(chains: TimerChains, actor: str, name: str, event: int, cause: int | None) -> int | None:
    """Fire a timer that was armed at event ``cause``; return what began its chain."""
    begun_by = chains.begun_by(actor, name, cause)
    chains.fired(actor, name, event, begun_by)
    return begun_by


def test_a_timer_armed_by_its_own_firing_follows_from_what_began_the_chain() -> None:
    """A thousand rounds are no thousand hops."""
    chains = TimerChains()
    cause: int | None = 5
    for event in range(10, 1000, 10):
        assert _fire(chains, "broker-1", "tick", event, cause) == 5
        cause = event
    assert chains.begun_by("broker-1", "tick", cause) == 5


def test_a_timer_armed_by_anything_else_begins_a_new_chain() -> None:
    """Another cause, another actor, another timer: each counts for itself."""
    chains = TimerChains()
    assert _fire(chains, "broker-1", "tick", 10, 5) == 5
    assert _fire(chains, "broker-1", "tick", 20, 12) == 12
    assert _fire(chains, "broker-2", "tick", 30, 20) == 20
    assert _fire(chains, "broker-1", "tock", 40, 20) == 20
    assert _fire(chains, "broker-1", "tick", 50, 20) == 12


def test_a_chain_without_a_known_beginning_goes_on_hop_by_hop() -> None:
    """A firing that follows from nothing is followed by the next one."""
    chains = TimerChains()
    assert _fire(chains, "broker-1", "tick", 10, None) is None
    assert _fire(chains, "broker-1", "tick", 20, 10) == 10
