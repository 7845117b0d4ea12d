"""Fixtures of aiokafka's tests in virtual time: a program's loop, and brokers in its reach."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
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
_SECURITY = {
    "listeners": "PLAINTEXT;SSL;SASL_PLAINTEXT;SASL_SSL",
    "users": {"test": "test", "admin": "admin"},
    "client_auth": "required",
    "authorizer": True,
    "allow_everyone_if_no_acl_found": True,
    "super_users": ("User:admin",),
}
_PORT = 9092
"""Of the first listener; the others follow."""


class VirtualLoop:
    """A test's event loop: it lets a program run until a coroutine has ended."""

    _closed = False

    def __init__(self) -> None:
        self.simulation = Simulation(
            [0], seed=1, kafka_version="2.8", config=_CONFIG, security=_SECURITY, trace=False
        )
        self.inner: Any = None
        self._aside: list[Callable[[], object]] = []
        self.simulation.program(self._main, name="tests")
        self.simulation.run_until(lambda: self.inner is not None)

    async def _main(self) -> None:
        self.inner = asyncio.get_running_loop()
        # As with asyncio's own loops, an error that nobody waits for fails no test.
        self.inner.set_exception_handler(lambda _loop, _context: None)
        await self.inner.create_future()

    def run_until_complete(self, awaited: Awaitable[Any]) -> Any:
        ended: list[tuple[Any, BaseException | None]] = []
        tasks = []

        async def run() -> None:
            try:
                ended.append((await awaited, None))
            except BaseException as error:
                ended.append((None, error))

        self.inner.call_soon(lambda: tasks.append(self.inner.create_task(run())))
        while not ended:
            self.simulation.run_until(lambda: ended or self._aside, timeout_ms=600_000)
            while self._aside:
                self._aside.pop(0)()
            self.inner.resume()
        result, error = ended[0]
        if error is not None:
            raise error
        return result

    def aside(self, function: Callable[[], object]) -> None:
        """Do something to the cluster that takes time: its callbacks wait until then."""
        self.inner.pause()
        self._aside.append(function)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@pytest.fixture(scope="class")
def loop() -> Iterator[VirtualLoop]:
    made = VirtualLoop()
    yield made
    made.simulation.stop()


@pytest.fixture(autouse=True)
def new_event_loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that makes a loop and runs it gets that of the program, which goes on afterwards."""
    if "no_running_loop" in request.node.name:
        virtual: VirtualLoop = request.getfixturevalue("loop")
        inner = virtual.inner
        kind = type(inner)
        monkeypatch.setattr(asyncio, "new_event_loop", lambda: inner)
        run = virtual.run_until_complete
        monkeypatch.setattr(kind, "run_until_complete", lambda _, awaited: run(awaited))
        monkeypatch.setattr(kind, "close", lambda _: None)


@pytest.fixture(scope="session")
def kafka_server() -> SimpleNamespace:
    return SimpleNamespace(
        host="kafka",
        port=_PORT,
        ssl_port=_PORT + 1,
        sasl_plain_port=_PORT + 2,
        sasl_ssl_port=_PORT + 3,
        hosts=[f"kafka:{_PORT}"],
        container=None,
    )


@pytest.fixture(scope="class")
def ssl_folder(loop: VirtualLoop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The authority and a certificate of the simulation."""
    folder = tmp_path_factory.mktemp("certificates")
    security = loop.simulation.security
    certificate = security.client_certificate("client")
    (folder / "ca.crt").write_text(security.ca_pem)
    (folder / "client.crt").write_text(certificate.certificate_pem)
    (folder / "client.key").write_text(certificate.key_pem)
    return folder


@pytest.fixture(scope="class")
def kafka_config() -> SimpleNamespace:
    """The users are there from the start."""
    return SimpleNamespace(add_scram_user=lambda _name, _password: None)


class AclManager:
    """The setter of ACLs for tests, in the middle of a coroutine."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._security = loop.simulation.security

    def list_acl(self) -> bytes:
        return str(self._security.acls()).encode()

    def add_acl(
        self,
        operation: str,
        allow_principal: str | None = None,
        deny_principal: str | None = None,
        cluster: bool = False,
        **about: Any,
    ) -> None:
        assert cluster or about
        add = self._security.deny if allow_principal is None else self._security.allow
        principal = f"User:{allow_principal or deny_principal}"
        self._loop.aside(partial(add, principal, operation.upper(), **about))

    def cleanup(self) -> None:
        self._security.remove_acls()


@pytest.fixture(scope="class")
def acl_manager(loop: VirtualLoop) -> AclManager:
    return AclManager(loop)


@pytest.fixture(scope="session")
def docker() -> None:
    """Nothing is run in containers."""


@pytest.fixture(scope="class")
def kerberos_utils() -> SimpleNamespace:
    def kinit(_principal: str) -> None:
        pytest.fail("there is no Kerberos server")

    return SimpleNamespace(kinit=kinit, kdestroy=lambda: None)
