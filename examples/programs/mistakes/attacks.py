"""Faults at times that the seed determines; the services know nothing of them.

Each fault is a function that breaks something, lets time pass, and repairs it. Its arguments are
the simulation and a random generator.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from fakekafka import Simulation

Fault = Callable[[Simulation, Random], None]
_BEGUN_MS = 60
_EXPLORED_S = 45


def attack(simulation: Simulation, *faults: Fault, within_s: float = 1, calm_s: float = 20) -> None:
    """Inject one or two faults, and then let time pass in which the services can recover.

    No fault comes before the services have connected, as a service that cannot start should exit.
    Under ``fakekafka explore`` only time passes, and the explorer injects the faults.
    """
    if simulation.is_explored:
        simulation.run_for(_EXPLORED_S * 1000)
        return
    chance = Random(f"attack {simulation.seed}")
    for _ in range(chance.randint(1, 2)):
        simulation.run_for(max(chance.uniform(0, within_s * 1000), _BEGUN_MS))
        chance.choice(faults)(simulation, chance)
    simulation.run_for(calm_s * 1000)


def killed(program: Any) -> Fault:
    """Return a fault that kills a program and restarts it soon, or after the group has noticed."""

    def fault(simulation: Simulation, chance: Random) -> None:
        if not program.is_running:
            return
        program.kill()
        simulation.run_for(chance.choice([500, 12_000]))
        program.restart()

    return fault


def paused(program: Any) -> Fault:
    """Return a fault that pauses a program, for less or more than its session timeout."""

    def fault(simulation: Simulation, chance: Random) -> None:
        program.pause()
        simulation.run_for(chance.uniform(2000, 15_000))
        program.resume()

    return fault


def cut_off(program: Any) -> Fault:
    """Return a fault that cuts a program off from all brokers for some seconds."""

    def fault(simulation: Simulation, chance: Random) -> None:
        program.isolate()
        simulation.run_for(chance.uniform(1000, 12_000))
        simulation.network.heal()

    return fault


def leader_killed(partition: str) -> Fault:
    """Return a fault that kills a leader; ZooKeeper notices after a while, or at once."""

    def fault(simulation: Simulation, chance: Random) -> None:
        broker = simulation.broker(f"leader:{partition}")
        broker.kill(expire_session=chance.random() < 0.5)
        simulation.run_for(chance.uniform(1000, 10_000))
        broker.start()

    return fault


def answers_lost(program: Any, partition: str) -> Fault:
    """Return a fault that loses a leader's answers to a program for some seconds."""

    def fault(simulation: Simulation, chance: Random) -> None:
        broker = simulation.broker(f"leader:{partition}").name
        simulation.network.partition([broker], [program.name], both_ways=False)
        simulation.run_for(chance.uniform(1000, 8000))
        simulation.network.heal()

    return fault


def joined(service: Any, outside: Any) -> Fault:
    """Return a fault that starts one more worker."""

    def fault(simulation: Simulation, chance: Random) -> None:
        simulation.program(service, outside)

    return fault
