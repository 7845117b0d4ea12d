"""Thirty failovers in virtual time: the spread of the outage, and the trace of the worst one."""

from __future__ import annotations

from fakekafka import Simulation

SEEDS = range(30)
CONFIG = {"zookeeper.session.timeout.ms": 6000}


def outage_ms(seed: int, trace: str | None = None) -> float:
    """Return how long partition 0 has no leader after a kill at a time that depends on the seed."""
    with Simulation(seed=seed, topics={"orders": 1}, config=CONFIG) as simulation:
        simulation.run_for(seed * 137)
        victim = simulation.partition("orders", 0).leader
        assert victim is not None
        killed_ms = simulation.now_ms
        simulation.broker(victim).kill()
        simulation.run_until(lambda: simulation.partition("orders", 0).leader not in (None, victim))
        if trace is not None:
            simulation.save(trace)
        return simulation.now_ms - killed_ms


if __name__ == "__main__":
    outages_ms = {seed: outage_ms(seed) for seed in SEEDS}
    worst = max(outages_ms, key=lambda seed: outages_ms[seed])
    ordered = sorted(outages_ms.values())
    print(f"least {ordered[0]:.0f} ms, half below {ordered[len(ordered) // 2]:.0f} ms")
    print(f"worst {ordered[-1]:.0f} ms, seed {worst}")
    assert outage_ms(worst, trace="worst.fktrace") == outages_ms[worst], (
        "the same seed, the same run"
    )
    print("look into it: fakekafka trace story worst.fktrace")
