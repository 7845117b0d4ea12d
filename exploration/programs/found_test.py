"""A find as a test: the user's own test, under one seed and with the faults that make it fail."""

from __future__ import annotations

import json
import textwrap
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from ...protocol.errors import UsageError
from ...testing import arguments
from ...testing.programs import async_tests, explored
from ...testing.simulation import Simulation
from ..cluster_steps import Wait
from ..step import Step, parse_step
from .conductor import Conductor
from .program_steps import EndFaults

Timed = tuple[int, str]
"""(milliseconds after the first program was started, line of a step)."""


def under_faults(
    test: Callable[..., Any], *, seed: int, faults: Sequence[Timed], case: str | None = None
) -> Callable[..., Any]:
    """Return a copy of a test with ``kafka_simulation`` that runs under a seed and with faults.

    ``faults`` are steps with their times, such as ``(643, "kill_program worker-1")``. ``case`` is
    the id of the only case of a parametrized test to run. Raises ``UsageError`` for an invalid
    step, or for times that go back.
    """
    original = getattr(test, async_tests.ORIGINAL, test)
    if not isinstance(original, types.FunctionType):
        arguments.refuse("test", test, "a function, as pytest takes it for a test")
    arguments.integer("seed", seed)
    again = types.FunctionType(
        original.__code__,
        original.__globals__,
        original.__name__,
        original.__defaults__,
        original.__closure__,
    )
    again.__kwdefaults__ = original.__kwdefaults__
    again.__doc__ = original.__doc__
    again.__annotations__ = dict(original.__annotations__)
    again.__dict__.update(original.__dict__)
    again.__dict__["pytestmark"] = list(getattr(original, "pytestmark", ()))
    is_program = any(mark.name == async_tests.MARK for mark in again.__dict__["pytestmark"])
    spared = frozenset({async_tests.NAME} if is_program else ())
    director = _Faults(seed, _with_waits(faults), spared)
    marked: Callable[..., Any] = getattr(pytest.mark, explored.MARK)(director, case=case)(again)
    return marked


@dataclass(eq=False)
class _Faults:
    """Applies the same faults to each run of a test."""

    seed: int
    steps: tuple[Step[Any], ...]
    spared: frozenset[str]

    @property
    def arguments(self) -> dict[str, Any]:
        return {"seed": self.seed}

    def begin(self, simulation: Simulation) -> None:
        Conductor(lambda _world: self.steps, spared=self.spared).begin(simulation)


def _with_waits(faults: Sequence[Timed]) -> tuple[Step[Any], ...]:
    steps: list[Step[Any]] = []
    now_ms = 0
    for at_ms, line in faults:
        if at_ms < now_ms:
            raise UsageError(
                f"faults must be in order of time: {line!r} at {at_ms} ms follows {now_ms} ms"
            )
        if at_ms > now_ms:
            steps.append(Wait(at_ms - now_ms))
        now_ms = at_ms
        steps.append(parse_step(line))
    return tuple(steps)


def timed(steps: Sequence[Step[Any]]) -> list[Timed]:
    """Return steps with their times, followed by a step that ends every fault."""
    found = []
    now_ms = 0
    for step in steps:
        if isinstance(step, Wait):
            now_ms += step.ms
        else:
            found.append((now_ms, str(step)))
    return [*found, (now_ms, str(EndFaults()))]


def written_test(
    test: str, name: str, seed: int, steps: Sequence[Step[Any]], about: str, case: str | None
) -> str:
    """Return the source of a failing test, for a user to paste below the test ``name``."""
    of_case = "" if case is None else f"    case={json.dumps(case, ensure_ascii=False)},\n"
    lines = "".join(f'        ({at_ms}, "{line}"),\n' for at_ms, line in timed(steps))
    command = f"PYTHONHASHSEED=0 python -m pytest {test.partition('::')[0]} -k {name}_under_faults"
    return (
        f"# Paste this behind {name} in {test.partition('::')[0]}, and run it by\n"
        f"#     {command}\n"
        f"{textwrap.indent(textwrap.fill(about, 96), '# ')}\n"
        f"from {__name__} import under_faults  # noqa: E402\n\n"
        f"{name}_under_faults = under_faults(\n"
        f"    {name},\n{of_case}    seed={seed},\n"
        f"    faults=[  # milliseconds after the first program was started\n{lines}    ],\n)\n"
    )
