"""``simulate``: run one program beside a cluster in virtual time, from a script."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ...protocol.errors import UsageError
from .. import arguments
from ..simulation import Simulation

if TYPE_CHECKING:
    from ...programs.program import Main

Fault = Callable[[Simulation], object]


def simulate(
    main: Main,
    *args: Any,
    seed: int = 1,
    brokers: int = 3,
    topics: Mapping[str, Any] | None = None,
    faults: Mapping[float, Fault] | None = None,
    timeout_s: float = 3600,
    **options: Any,
) -> Any:
    """Run ``main``, an ``async def`` function, in virtual time; return what it returns.

    In it the cluster answers at ``kafka:9092``. ``faults`` maps virtual seconds after its start to
    functions of the simulation, such as ``lambda s: s.broker("leader:orders-0").kill()``. Other
    options are those of ``Simulation``. Raises what ``main`` raises, and ``WaitTimeout`` after
    ``timeout_s`` virtual seconds.
    """
    timed = _checked(faults)
    with Simulation(brokers, seed=seed, topics=topics, **options) as simulation:
        program = simulation.program(main, *args, name="main")
        begun_us = simulation.runtime.now_us()
        for after_s, fault in timed.items():
            at_us = begun_us + round(after_s * 1e6)
            simulation.running.interrupt(at_us, partial(fault, simulation))
        return program.result(timeout_s)


def _checked(faults: Mapping[float, Fault] | None) -> dict[float, Fault]:
    if faults is None:
        return {}
    example = 'lambda simulation: simulation.broker("leader:orders-0").kill()'
    if not isinstance(faults, Mapping):
        raise UsageError(
            f"faults must map seconds to functions, such as {{10: {example}}}, not {faults!r}"
        )
    return {
        arguments.number("a time of faults", after_s, "seconds"): arguments.function(
            "a fault", fault, example
        )
        for after_s, fault in faults.items()
    }
