"""The states of a client."""

from __future__ import annotations

from enum import Enum

from ..messages import ZkCode


class ClientState(Enum):
    NOT_STARTED = "not started"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    EXPIRED = "expired"
    AUTH_FAILED = "authentication failed"
    CLOSED = "closed"


OVER = {
    ClientState.EXPIRED: ZkCode.SESSIONEXPIRED,
    ClientState.AUTH_FAILED: ZkCode.AUTHFAILED,
    ClientState.CLOSED: ZkCode.SESSIONEXPIRED,
}
"""States in which requests are answered at once, with what."""
