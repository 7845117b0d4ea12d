from __future__ import annotations

import pytest


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """A directory for a suite; the plugin is loaded already, as in any process of its users."""
    pytester.makeini("[pytest]\naddopts = -p no:cacheprovider -p no:fakekafka\n")
    return pytester
