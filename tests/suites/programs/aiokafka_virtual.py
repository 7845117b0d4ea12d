"""What aiokafka's tests get in virtual time: a loop of a program, and brokers in its reach."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from fakekafka import Simulation

_CONFIG = {
    "num.partitions": 2,
    "group.min.session.timeout.ms": 6000,
    "group.initial.rebalance.delay.ms": 0,
    "auto.create.topics.enable": True,
}
"""As the container has it that the tests are written for."""


class VirtualLoop:
    """What a test takes for its event loop: it lets a program run until a coroutine has ended."""

    _closed = False

    def __init__(self) -> None:
        self.simulation = Simulation([0], seed=1, kafka_version="2.8", config=_CONFIG, trace=False)
        self._loop: Any = None
        self.simulation.program(self._main, name="tests")
        self.simulation.run_until(lambda: self._loop is not None)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        # As with asyncio's own loops, an error that nobody waits for fails no test.
        self._loop.set_exception_handler(lambda _loop, _context: None)
        await self._loop.create_future()

    def run_until_complete(self, awaited: Awaitable[Any]) -> Any:
        ended: list[tuple[Any, BaseException | None]] = []
        tasks = []

        async def run() -> None:
            try:
                ended.append((await awaited, None))
            except BaseException as error:
                ended.append((None, error))

        self._loop.call_soon(lambda: tasks.append(self._loop.create_task(run())))
        self.simulation.run_until(lambda: ended, timeout_ms=600_000)
        result, error = ended[0]
        if error is not None:
            raise error
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)


@pytest.fixture(scope="class")
def loop() -> Iterator[VirtualLoop]:
    made = VirtualLoop()
    yield made
    made.simulation.stop()


@pytest.fixture(scope="session")
def kafka_server() -> SimpleNamespace:
    return SimpleNamespace(
        host="kafka",
        port=9092,
        ssl_port=0,
        sasl_plain_port=0,
        sasl_ssl_port=0,
        hosts=["kafka:9092"],
        container=None,
    )


@pytest.fixture(scope="session")
def docker() -> None:
    """Nothing is run in containers."""


@pytest.fixture(scope="session")
def ssl_folder() -> None:
    """There are no certificates."""


@pytest.fixture(scope="class")
def kerberos_utils() -> None:
    """There is no Kerberos server."""
