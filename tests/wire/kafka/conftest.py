"""Fixtures: a listener on both kinds of event loop, and the ``kafka`` package."""

from __future__ import annotations

import asyncio
import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from fakekafka.tests.support.kafka_listener import MakeWire, Wire


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine on the loop of its listeners."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given: dict[str, Any] = pyfuncitem.funcargs
    names = inspect.signature(pyfuncitem.obj).parameters
    test = pyfuncitem.obj(**{name: given[name] for name in names})
    given["loop"].run_until_complete(asyncio.wait_for(test, 20))
    return True


@pytest.fixture(params=["asyncio", "uvloop"])
def loop(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop]:
    loop = pytest.importorskip(request.param).new_event_loop()
    yield loop
    loop.close()


@pytest.fixture
def make_wire(loop: asyncio.AbstractEventLoop) -> Iterator[MakeWire]:
    made: list[Wire] = []

    def make(**options: Any) -> Wire:
        made.append(Wire(loop, **options))
        return made[-1]

    yield make
    for wire in made:
        loop.run_until_complete(wire.stop())


@pytest.fixture
def wire(make_wire: MakeWire) -> Wire:
    return make_wire()


@pytest.fixture(scope="session")
def kafka_python() -> Any:
    """Import the package ``kafka`` without the warnings of its import."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import kafka
        import kafka.protocol.broker_version_data
    return kafka
