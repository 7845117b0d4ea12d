"""The address of a broker that clients of one listener are given."""

from __future__ import annotations

from ...protocol.values import BrokerInfo
from .primitives import CompactWriter, Writer

NODE_ENDPOINTS_TAG = 0


def address(broker: BrokerInfo, listener: str) -> tuple[str, int]:
    """Host and port of a broker on the listener, or on its first one where it lacks that."""
    endpoint = broker.endpoint(listener)
    if endpoint is None:
        if not broker.endpoints:
            return "", -1
        endpoint = broker.endpoints[0]
    return endpoint.host, endpoint.port


def write_address(writer: Writer, broker: BrokerInfo) -> None:
    """Id, host and port, as most answers about brokers begin."""
    host, port = address(broker, writer.listener)
    writer.int32(broker.id)
    writer.string(host)
    writer.int32(port)


def node_endpoints(brokers: tuple[BrokerInfo, ...], listener: str) -> tuple[int, bytes]:
    """The tagged field that names the brokers of ``current_leader`` fields (KIP-951)."""
    writer = CompactWriter(listener=listener)
    writer.array(len(brokers))
    for broker in brokers:
        write_address(writer, broker)
        writer.nullable_string(broker.rack)
        writer.tags()
    return NODE_ENDPOINTS_TAG, b"".join(writer.parts)


def current_leader(tag: int, leader: tuple[int, int]) -> tuple[int, bytes]:
    """The tagged field that tells a client the leader and its epoch (KIP-951)."""
    writer = CompactWriter()
    writer.int32(leader[0])
    writer.int32(leader[1])
    writer.tags()
    return tag, b"".join(writer.parts)
