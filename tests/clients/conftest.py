"""Fixtures of real client libraries against a cluster on 127.0.0.1."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["live", "threaded"])
def runtime_name(request: pytest.FixtureRequest) -> str:
    """Each of the two real-time runtimes."""
    return str(request.param)
