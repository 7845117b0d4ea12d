"""Frameworks, and HTTP between programs, in the examples that users read."""

from __future__ import annotations

import runpy
from typing import Any

import pytest
from fakekafka.tests.support.paths import ROOT

pytestmark = [
    pytest.mark.slow,  # the frameworks take seconds to import
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # pydantic warns about kstreams
]

EXAMPLES = ROOT / "examples" / "programs"
INVOICES = {b"invoice for order %d" % number for number in range(20)}


def main_of(name: str) -> Any:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]


def test_every_example_is_run_here() -> None:
    """Every example is run here, except the payments, which have a file of their own."""
    names = {"faststream_billing", "kstreams_billing", "payments", "services_over_http"}
    assert {path.stem for path in EXAMPLES.glob("*.py")} == names


def test_faststream_bills_every_order_through_the_death_of_a_leader() -> None:
    """The failover takes as long as Kafka's default session timeout, and no real time."""
    invoices, took_s = main_of("faststream_billing")()
    assert set(invoices) == INVOICES
    assert took_s > 18


def test_kstreams_bills_every_order_although_it_was_killed() -> None:
    """Work that was not committed is repeated, so delivery is at least once."""
    invoices, _ = main_of("kstreams_billing")(2)
    assert set(invoices) == INVOICES
    assert len(invoices) >= 20


def test_httpx_and_uvicorn_speak_over_the_simulated_network() -> None:
    """Requests run into their timeout while the link is cut, and are answered afterwards."""
    told = main_of("services_over_http")()
    assert len(told) == 10
    assert [text for text in told if "Timeout" in text] == ["ConnectTimeout for 4"]
    assert {f"paid {number}" for number in (0, 1, 2, 3, 9)} <= set(told)


@pytest.mark.parametrize("name", ["faststream_billing", "kstreams_billing", "services_over_http"])
def test_the_same_seed_gives_the_same_outcome(name: str) -> None:
    main = main_of(name)
    assert main(7) == main(7)
