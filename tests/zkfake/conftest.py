"""Fixtures: ZooKeeper servers and clients on a network with virtual time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fakekafka.tests.support.zookeeper_network import Recorder, Sessions, ZkNetwork


@pytest.fixture
def log() -> list[str]:
    """Return the list to which handlers of ``watcher`` and ``session_callbacks`` append."""
    return []


@pytest.fixture
def watcher(log: list[str]) -> Callable[..., Recorder]:
    """Return a function that makes handlers of changes and child changes: ``watcher(name)``."""
    return lambda name="": Recorder(log, name)


@pytest.fixture
def session_callbacks(log: list[str]) -> Callable[..., Sessions]:
    """Return a function that makes state change handlers: ``session_callbacks(name,
    fail=False)``.
    """
    return lambda name="", fail=False: Sessions(log, name, fail)


@pytest.fixture
def network() -> ZkNetwork:
    return ZkNetwork()


@pytest.fixture
def trio(network: ZkNetwork) -> ZkNetwork:
    """Return a network of three servers, of which the third leads."""
    network.ensemble(3)
    assert network.settle() == 3
    network.log.clear()
    return network


@pytest.fixture
def single(network: ZkNetwork) -> ZkNetwork:
    """Return a network with one standalone server."""
    network.ensemble(1)
    return network
