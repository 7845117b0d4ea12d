"""``ask`` is typed for every request, since each declares its response."""

from __future__ import annotations

from typing import Any, get_args

from fakekafka.testing.api_names import REQUESTS


def declared_response(kind: Any) -> str:
    (base,) = kind.__orig_bases__
    (response,) = get_args(base)
    return str(response.__forward_arg__)


def test_every_request_declares_its_response() -> None:
    """Every request class declares its response; only a produce request may have none."""
    assert len(REQUESTS) == 58
    wanted = {api: f"{api}Response" for api in REQUESTS} | {"Produce": "ProduceResponse | None"}
    assert {api: declared_response(kind) for api, kind in REQUESTS.items()} == wanted
