"""A listener on both kinds of event loop, and the ``kafka`` package."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from fakekafka.tests.support.kafka_listener import MakeWire, Wire


def _new_loop(name: str) -> asyncio.AbstractEventLoop:
    if name == "uvloop":
        loop: asyncio.AbstractEventLoop = pytest.importorskip("uvloop").new_event_loop()
        return loop
    return asyncio.new_event_loop()


@pytest.fixture(params=["asyncio", "uvloop"])
def make_wire(request: pytest.FixtureRequest) -> Iterator[MakeWire]:
    loop = _new_loop(request.param)
    made: list[Wire] = []

    def make(**options: Any) -> Wire:
        made.append(Wire(loop, **options))
        return made[-1]

    yield make
    for wire in made:
        wire.stop()
    loop.close()


@pytest.fixture
def wire(make_wire: MakeWire) -> Wire:
    return make_wire()


@pytest.fixture(scope="session")
def kafka_python() -> Any:
    """The package ``kafka``, whose import warns of what it uses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import kafka
        import kafka.protocol.broker_version_data
    return kafka
