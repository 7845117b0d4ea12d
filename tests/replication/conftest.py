"""A log under test, and a host whose clock the test advances."""

from __future__ import annotations

import pytest
from fakekafka.replication.log.log import Log
from fakekafka.tests.support.hosts import FakeHost
from fakekafka.tests.support.logs import Tools


@pytest.fixture
def tools() -> type[Tools]:
    return Tools


@pytest.fixture
def log(tools: type[Tools]) -> Log:
    return tools.log()


@pytest.fixture
def host() -> FakeHost:
    return FakeHost()
