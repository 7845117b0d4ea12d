"""Fixtures: a controller without actors, and a local ZooKeeper."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.tests.support.controller_core import Core, MakeCore
from fakekafka.tests.support.zookeeper_fixture import ZkFixture, with_top_level_paths


@pytest.fixture
def make_core() -> MakeCore:
    """Return a factory of controllers: ``make_core(*broker_ids, version="2.8", **config)``."""

    def make(*broker_ids: int, version: str = "2.8", config: Any = None) -> Core:
        return Core(version, broker_ids, config)

    return make


@pytest.fixture
def core(make_core: MakeCore) -> Core:
    """A 2.8 controller (id 5) with live broker 5."""
    return make_core(5)


@pytest.fixture
def fixture() -> ZkFixture:
    """A 2.8 client of a ZooKeeper with the top-level paths."""
    return with_top_level_paths()
