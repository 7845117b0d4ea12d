"""ZooKeeper servers and clients on a network with virtual time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fakekafka.tests.support.zookeeper_network import Recorder, Sessions, ZkNetwork


@pytest.fixture
def log() -> list[str]:
    """What the handlers of ``watcher`` and ``session_callbacks`` write down."""
    return []


@pytest.fixture
def watcher(log: list[str]) -> Callable[..., Recorder]:
    """Makes handlers of changes and child changes: ``watcher(name)``."""
    return lambda name="": Recorder(log, name)


@pytest.fixture
def session_callbacks(log: list[str]) -> Callable[..., Sessions]:
    """Makes state change handlers: ``session_callbacks(name, fail=False)``."""
    return lambda name="", fail=False: Sessions(log, name, fail)


@pytest.fixture
def network() -> ZkNetwork:
    return ZkNetwork()


@pytest.fixture
def trio(network: ZkNetwork) -> ZkNetwork:
    """Three servers, the third leads."""
    network.ensemble(3)
    assert network.settle() == 3
    network.log.clear()
    return network


@pytest.fixture
def single(network: ZkNetwork) -> ZkNetwork:
    """One standalone server."""
    network.ensemble(1)
    return network
