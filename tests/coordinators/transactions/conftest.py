"""A transaction coordinator in a test rig."""

from __future__ import annotations

import pytest
from fakekafka.tests.support.transaction_rig import TransactionRig


@pytest.fixture
def rig() -> TransactionRig:
    """A coordinator of 3.9 that has loaded the only partition of its log."""
    rig = TransactionRig()
    rig.lead()
    return rig
