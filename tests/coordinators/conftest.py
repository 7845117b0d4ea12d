"""A group coordinator on a desk."""

from __future__ import annotations

import pytest
from fakekafka.tests.support.group_desk import GroupDesk


@pytest.fixture
def desk() -> GroupDesk:
    """A coordinator of 3.9 that leads the only partition of the offsets topic."""
    return GroupDesk()
