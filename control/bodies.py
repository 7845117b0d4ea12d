"""Bodies of requests: limits on their size and time, and their parsing."""

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
"""Maximum number of arrays and objects in a body. They take much memory and time, and no other
thread runs while a body is parsed."""
BODIES_BYTES_MAX = 20_000_000
"""Maximum number of bytes in the bodies of all requests together."""
BODY_S_MAX = 30.0
"""Time in seconds within which a body must arrive."""
_DRAIN_S = 1.0


class NotAnObject(UsageError):
    """Raised for a body that is not a JSON object."""


class HttpRefusal(Exception):
    """Raised for a request that is refused before its operation runs."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.headers: dict[str, str] = dict(headers or {})


class Bodies:
    """Reads the bodies of all requests, within limits."""

    def __init__(self) -> None:
        self._parsing = threading.Lock()
        """Held while a body is parsed: one at a time, as each may take much memory."""
        self._held_bytes = 0

    async def read(self, request: Request) -> bytes:
        """Read a whole body; raise ``HttpRefusal`` if it is too long or too slow, or if all
        bodies together are too long."""
        raw = bytearray()
        promised = request.headers.get("content-length", "0")
        try:
            if promised.isdigit() and int(promised) > BODY_BYTES_MAX:
                raise HttpRefusal(413, f"a body may have at most {BODY_BYTES_MAX} bytes")
            async with asyncio.timeout(BODY_S_MAX):
                async for part in request.stream():
                    self._hold(len(part))
                    raw += part
                    if len(raw) > BODY_BYTES_MAX:
                        raise HttpRefusal(413, f"a body may have at most {BODY_BYTES_MAX} bytes")
            return bytes(raw)
        except TimeoutError:
            raise HttpRefusal(408, f"the body did not arrive within {BODY_S_MAX:g} s") from None
        except HttpRefusal:
            await _drain(request)
            raise
        finally:
            self._held_bytes -= len(raw)

    def _hold(self, size: int) -> None:
        if self._held_bytes + size > BODIES_BYTES_MAX:
            raise HttpRefusal(
                503, f"the bodies of all requests take {self._held_bytes} bytes; try again later"
            )
        self._held_bytes += size

    def read_object(self, raw: bytes) -> dict[str, Any]:
        """Parse a body as a JSON object; an empty body gives an empty object.

        Raises ``NotAnObject`` for any other body.
        """
        with self._parsing:
            return _read_object(raw)


def _read_object(raw: bytes) -> dict[str, Any]:
    """Parse a body as a JSON object; raise ``NotAnObject`` if it is not one."""
    if raw.count(b"[") + raw.count(b"{") > _BRACKETS_MAX:
        raise NotAnObject(f"a body may have at most {_BRACKETS_MAX} arrays and objects")
    try:
        body = json.loads(raw, parse_constant=_refuse_constant) if raw.strip() else {}
    except (ValueError, RecursionError) as error:
        raise NotAnObject(f"the body is not a JSON object: {error}") from None
    if not isinstance(body, dict):
        raise NotAnObject("the body is not a JSON object: it must be written as {...}")
    return body


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")


async def _drain(request: Request) -> None:
    """Read the rest of a body: closing with unread data would reset the connection, and the client
    would lose the answer."""
    if "expect" in request.headers:
        return  # the client waits for 100 Continue before it sends the body
    try:
        async with asyncio.timeout(_DRAIN_S):
            async for _ in request.stream():
                pass
    except (TimeoutError, ClientDisconnect, RuntimeError):
        return
