"""The payments service of the examples, whose four wrong versions are found."""

from __future__ import annotations

import runpy
from typing import Any

import pytest
from fakekafka.tests.support.paths import ROOT

pytestmark = pytest.mark.slow

SEEDS = 20
PROBLEMS = {
    "commits_first": "was never charged",
    "commits_by_itself": "has no invoice",
    "does_not_wait": "has no invoice",
    "charges_without_a_key": "was charged twice",
}


@pytest.fixture(scope="module")
def payments() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "examples" / "programs" / "payments.py"))


def test_the_right_version_loses_and_doubles_nothing(payments: dict[str, Any]) -> None:
    for seed in range(1, 9):
        assert payments["problems"](payments["right"], seed) == []


def test_every_wrong_version_is_judged_here(payments: dict[str, Any]) -> None:
    assert {version.__name__ for version in payments["WRONG"]} == set(PROBLEMS)


@pytest.mark.parametrize("version", PROBLEMS)
def test_a_wrong_version_is_found_within_twenty_seeds(
    payments: dict[str, Any], version: str
) -> None:
    """Each wrong version is found by its own mistake."""
    for seed in range(1, SEEDS + 1):
        told = payments["problems"](payments[version], seed)
        if told:
            assert any(text.endswith(PROBLEMS[version]) for text in told), told
            return
    pytest.fail(f"{version}: nothing in {SEEDS} seeds")
