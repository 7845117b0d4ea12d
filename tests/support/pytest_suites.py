"""Test suites of pytest's own, run by a test of the plugin."""

from __future__ import annotations

import pytest

# Imported here, because pytester forgets what is first imported while one of its suites runs.
from fakekafka import Cluster, Simulation  # noqa: F401
from fakekafka.cli import trace as _trace  # noqa: F401

PLUGIN = ("-p", "fakekafka.testing.pytest_plugin", "-p", "no:cacheprovider", "-p", "no:randomly")


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """A directory for a suite; the plugin is loaded already, as in any process of its users."""
    pytester.makeini("[pytest]\naddopts = -p no:cacheprovider -p no:fakekafka\n")
    return pytester


def run(suite: pytest.Pytester, source: str, *arguments: str) -> pytest.RunResult:
    suite.makepyfile(source)
    return suite.runpytest_inprocess("-p", "fakekafka.testing.pytest_plugin", *arguments)
