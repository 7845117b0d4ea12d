"""Fixtures: ZooKeeper servers with TCP listeners, which are stopped after the test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fakekafka.tests.support.zookeeper_servers import Ensemble, MakeEnsemble, Recorder


@pytest.fixture
def make_ensemble() -> Iterator[MakeEnsemble]:
    made: list[Ensemble] = []

    def make(count: int = 1, runtime: Any = None) -> Ensemble:
        made.append(Ensemble(count, runtime))
        return made[-1]

    yield make
    for ensemble in made:
        ensemble.stop()
        assert ensemble.runtime.failures == []


@pytest.fixture
def server(make_ensemble: MakeEnsemble) -> Ensemble:
    """Return one standalone server."""
    return make_ensemble(1)


@pytest.fixture
def ensemble(make_ensemble: MakeEnsemble) -> Ensemble:
    """Return three servers that are serving."""
    three = make_ensemble(3)
    three.leader()
    return three


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()
