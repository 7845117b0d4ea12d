"""Bodies of requests: limits of size and time, and how they are parsed."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from typing import Any, NoReturn

from starlette.requests import ClientDisconnect, Request

from ..protocol.errors import UsageError

BODY_BYTES_MAX = 1_500_000
_BRACKETS_MAX = 50_000
"""Arrays and objects in a body. They take much memory and time, and while one body is read no
other thread runs."""
BODIES_BYTES_MAX = 20_000_000
"""Of all requests together."""
BODY_S_MAX = 30.0
"""The time that a body may take to come."""
_DRAIN_S = 1.0


class NoObject(UsageError):
    """A body that is not a JSON object."""


class Refused(Exception):
    """A request that is answered with an error before anything is done."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.headers: dict[str, str] = dict(headers or {})


class Bodies:
    """Reads the bodies of all requests, within limits."""

    def __init__(self) -> None:
        self._parsing = threading.Lock()
        """One body at a time, as each may take much memory."""
        self._held_bytes = 0

    async def read(self, request: Request) -> bytes:
        """The whole body; ``Refused`` for one that is too long, too slow, or one too many."""
        raw = bytearray()
        promised = request.headers.get("content-length", "0")
        try:
            if promised.isdigit() and int(promised) > BODY_BYTES_MAX:
                raise Refused(413, f"a body may have at most {BODY_BYTES_MAX} bytes")
            async with asyncio.timeout(BODY_S_MAX):
                async for part in request.stream():
                    self._hold(len(part))
                    raw += part
                    if len(raw) > BODY_BYTES_MAX:
                        raise Refused(413, f"a body may have at most {BODY_BYTES_MAX} bytes")
            return bytes(raw)
        except TimeoutError:
            raise Refused(408, f"the body did not come within {BODY_S_MAX:g} s") from None
        except Refused:
            await _drain(request)
            raise
        finally:
            self._held_bytes -= len(raw)

    def _hold(self, size: int) -> None:
        if self._held_bytes + size > BODIES_BYTES_MAX:
            raise Refused(
                503, f"the bodies of all requests take {self._held_bytes} bytes; try again later"
            )
        self._held_bytes += size

    def read_object(self, raw: bytes) -> dict[str, Any]:
        """The JSON object of a body, empty when there is none; raises ``NoObject`` otherwise."""
        with self._parsing:
            return _read_object(raw)


def _read_object(raw: bytes) -> dict[str, Any]:
    """The JSON object of a body, empty when there is none; raises ``NoObject`` otherwise."""
    if raw.count(b"[") + raw.count(b"{") > _BRACKETS_MAX:
        raise NoObject(f"a body may have at most {_BRACKETS_MAX} arrays and objects")
    try:
        body = json.loads(raw, parse_constant=_refuse_constant) if raw.strip() else {}
    except (ValueError, RecursionError) as error:
        raise NoObject(f"the body is not a JSON object: {error}") from None
    if not isinstance(body, dict):
        raise NoObject("the body is not a JSON object: it must be written as {...}")
    return body


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")


async def _drain(request: Request) -> None:
    """Take what is left of a body: closing before would reset the connection, answer and all."""
    if "expect" in request.headers:
        return  # it waits for leave to send its body
    try:
        async with asyncio.timeout(_DRAIN_S):
            async for _ in request.stream():
                pass
    except (TimeoutError, ClientDisconnect, RuntimeError):
        return
