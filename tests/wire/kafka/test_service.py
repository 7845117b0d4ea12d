"""The state that a broker keeps for its connections, and when it is created."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from fakekafka.wire.kafka.service import BrokerService


def test_a_broker_without_connections_keeps_no_buffer_for_them() -> None:
    """Clients use few brokers of a large cluster; all connections of a broker share its buffer."""
    unused: Any = SimpleNamespace(kafka_version="3.9")
    service = BrokerService(unused, 1, unused)
    assert len(service.receive_buffer) == 0
    assert service.next_connection_index() == 0
    buffer = service.receive_buffer
    assert len(buffer) == 65536
    assert service.next_connection_index() == 1
    assert service.receive_buffer is buffer
