"""The addresses of brokers in responses to clients of one listener."""

from __future__ import annotations

from collections.abc import Sequence

from ...protocol.values import BrokerInfo


def addresses(
    brokers: Sequence[BrokerInfo], listener: str
) -> list[tuple[int, str, int, str | None]]:
    """Return id, host, port and rack of each broker."""
    return [(broker.id, *_address(broker, listener), broker.rack) for broker in brokers]


def _address(broker: BrokerInfo, listener: str) -> tuple[str, int]:
    """Return a broker's host and port on the listener, or on its first if it lacks the listener."""
    endpoint = broker.endpoint(listener)
    if endpoint is None:
        if not broker.endpoints:
            return "", -1
        endpoint = broker.endpoints[0]
    return endpoint.host, endpoint.port
