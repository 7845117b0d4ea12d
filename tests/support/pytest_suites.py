"""Test suites that the tests of the pytest plugin run."""

from __future__ import annotations

import pytest

# Imported here, because pytester unloads modules first imported while one of its suites runs.
from fakekafka import Cluster, Simulation  # noqa: F401
from fakekafka.cli import trace as _trace  # noqa: F401

PLUGIN = ("-p", "fakekafka.testing.pytest_plugin", "-p", "no:cacheprovider", "-p", "no:randomly")


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """Return a directory for a suite, in a process that has loaded the plugin as users' do."""
    pytester.makeini("[pytest]\naddopts = -p no:cacheprovider -p no:fakekafka\n")
    return pytester


def run(suite: pytest.Pytester, source: str, *arguments: str) -> pytest.RunResult:
    suite.makepyfile(source)
    return suite.runpytest_inprocess("-p", "fakekafka.testing.pytest_plugin", *arguments)
