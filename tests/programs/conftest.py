"""A network of programs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fakekafka.tests.support.programs import World


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    assert world.runtime.failures == []
    world.end()
