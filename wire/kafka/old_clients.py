"""Errors that came with a later version of an API: clients of earlier ones are told another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...protocol.errors import ErrorCode
from .api import ApiCall


def fenced_before(version: int) -> Callable[[Any, ApiCall], Any]:
    """Give the response as clients of versions before this one know it (KIP-588)."""

    def known(response: Any, call: ApiCall) -> Any:
        if call.version < version and response.error is ErrorCode.PRODUCER_FENCED:
            return replace(response, error=ErrorCode.INVALID_PRODUCER_EPOCH)
        return response

    return known
