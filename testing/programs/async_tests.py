"""``async def`` tests with the mark ``kafka_program``, which run as programs in virtual time.

Such a test becomes a plain function before any other plugin sees it, as plugins for asyncio would
run it in an event loop of real time.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import pytest

MARK = "kafka_program"
NAME = "test"
"""Name of the program that runs an async test."""
_TIMEOUT_S = 3600.0
ORIGINAL = "_fakekafka_main"
"""Attribute of the plain function that holds the original test."""


def prepare(collector: Any, name: str, function: Any) -> None:
    """Replace an ``async def`` test that has the mark, or whose class or module has it."""
    if not inspect.iscoroutinefunction(function) or not collector.istestfunction(function, name):
        return
    own = [mark.name for mark in getattr(function, "pytestmark", ())]
    if MARK not in own and collector.get_closest_marker(MARK) is None:
        return

    @functools.wraps(function)
    def run(*_args: Any, **_options: Any) -> None:
        raise pytest.UsageError(f"{name} can only be run by the fakekafka plugin")

    setattr(run, ORIGINAL, function)
    setattr(collector.obj, name, run)
    pytest.mark.usefixtures("kafka_simulation")(run)
    pytest.mark.usefixtures("kafka_simulation")(function)


def run(item: Any) -> bool:
    """Run a test that is a program in its simulation; return False for other tests."""
    main = getattr(item.obj, ORIGINAL, None)
    if main is None:
        return False
    simulation = item.funcargs["kafka_simulation"]
    names = [name for name in inspect.signature(main).parameters if name in item.funcargs]
    values = {name: item.funcargs[name] for name in names}
    test = getattr(item.obj, "__self__", None)
    mark = item.get_closest_marker(MARK)
    timeout_s = mark.kwargs.get("timeout_s", _TIMEOUT_S)
    program = simulation.program(main, *(() if test is None else (test,)), name=NAME, **values)
    program.result(timeout_s)
    return True


def seeds_of(metafunc: pytest.Metafunc) -> range | None:
    """Return the seeds of the option ``--kafka-seeds`` if it is given and the test is a program."""
    count = metafunc.config.getoption("--kafka-seeds")
    is_marked = metafunc.definition.get_closest_marker(MARK) is not None
    if count is None or not is_marked or "kafka_simulation" not in metafunc.fixturenames:
        return None
    if count < 1:
        raise pytest.UsageError(f"--kafka-seeds must be at least 1, not {count}")
    return range(1, count + 1)
