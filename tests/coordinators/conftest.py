"""A group coordinator in a test rig."""

from __future__ import annotations

import pytest
from fakekafka.tests.support.group_rig import GroupRig


@pytest.fixture
def rig() -> GroupRig:
    """A coordinator of 3.9 that leads the only partition of the offsets topic."""
    return GroupRig()
