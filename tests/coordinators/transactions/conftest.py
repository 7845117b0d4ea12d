"""A transaction coordinator on a desk."""

from __future__ import annotations

import pytest
from fakekafka.tests.support.transaction_desk import Desk


@pytest.fixture
def desk() -> Desk:
    """A coordinator of 3.9 that has loaded the only partition of its log."""
    desk = Desk()
    desk.lead()
    return desk
