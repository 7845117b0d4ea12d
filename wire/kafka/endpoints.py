"""The addresses of brokers that clients of one listener are given."""

from __future__ import annotations

from collections.abc import Sequence

from ...protocol.values import BrokerInfo


def addresses(
    brokers: Sequence[BrokerInfo], listener: str
) -> list[tuple[int, str, int, str | None]]:
    """Id, host, port and rack of brokers."""
    return [(broker.id, *_address(broker, listener), broker.rack) for broker in brokers]


def _address(broker: BrokerInfo, listener: str) -> tuple[str, int]:
    """Host and port of a broker on the listener, or on its first one where it lacks that."""
    endpoint = broker.endpoint(listener)
    if endpoint is None:
        if not broker.endpoints:
            return "", -1
        endpoint = broker.endpoints[0]
    return endpoint.host, endpoint.port
