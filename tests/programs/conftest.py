"""Fixtures for a network of programs and for suites of pytest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fakekafka.tests.support.programs import World
from fakekafka.tests.support.pytest_suites import suite as suite


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    assert world.runtime.failures == []
    world.end()
