"""``simulate``: run one program beside a cluster in virtual time, from a script."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ...programs.acts import Acts
from ...protocol.errors import UsageError
from .. import arguments
from . import again, sameness
from .program_run import Fault, ProgramRun

if TYPE_CHECKING:
    from ...programs.program import Main


def simulate(
    main: Main,
    *args: Any,
    seed: int = 1,
    brokers: int = 3,
    topics: Mapping[str, Any] | None = None,
    faults: Mapping[float, Fault] | None = None,
    timeout_s: float = 3600,
    verify: bool = False,
    **options: Any,
) -> Any:
    """Run ``main``, an ``async def`` function, in virtual time; return its result.

    In ``main`` the cluster answers at ``kafka:9092``. ``faults`` maps virtual seconds after its
    start to functions of the simulation, such as
    ``lambda s: s.broker("leader:orders-0").kill()``. Other options are those of ``Simulation``.
    Raises what ``main`` raises, and ``WaitTimeout`` after ``timeout_s`` virtual seconds.

    ``verify`` repeats the run in another process with another hash seed, and raises ``RunsDiffer``
    if the runs differ. The error names the first event that differs and the code that caused it.
    The other process must be able to import ``main`` and the faults by name.
    """
    run = ProgramRun(main, args, seed, brokers, topics, _checked(faults), timeout_s, options)
    packed = _packed(run) if verify else None
    with run.simulation() as simulation:
        if packed is not None:
            simulation.running.acts = Acts()
        result = run.carry_out(simulation)
        if packed is not None:
            first = sameness.Recorded.of(simulation)
            sameness.require_same(first, partial(again.run_again, packed), seed)
    return result


def _packed(run: ProgramRun) -> bytes:
    for name in ("recorder", "trace"):
        if name in run.options:
            raise UsageError(f"verify=True compares two recordings of its own; leave out {name}")
    return again.pack(run)


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
