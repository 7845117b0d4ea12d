"""Responses of brokers become events of the controller."""

from __future__ import annotations

from ...protocol.control import LeaderAndIsrResponse, UpdateMetadataResponse
from ...protocol.errors import ErrorCode
from ...protocol.values import TopicPartition
from .events import (
    LeaderAndIsrResponseReceived,
    TopicDeletionStopReplicaResponseReceived,
    UpdateMetadataResponseReceived,
)
from .queue import ControllerEventManager


class ResponsesToEvents:
    """The callbacks of the request batches."""

    __slots__ = ("_events",)

    def __init__(self, events: ControllerEventManager) -> None:
        self._events = events

    def on_leader_and_isr_response(self, response: LeaderAndIsrResponse, broker_id: int) -> None:
        self._events.put(LeaderAndIsrResponseReceived(response, broker_id))

    def on_update_metadata_response(self, response: UpdateMetadataResponse, broker_id: int) -> None:
        self._events.put(UpdateMetadataResponseReceived(response, broker_id))

    def on_stop_replica_deletion_response(
        self, broker_id: int, error: ErrorCode, partition_errors: dict[TopicPartition, ErrorCode]
    ) -> None:
        self._events.put(
            TopicDeletionStopReplicaResponseReceived(
                broker_id, error, tuple(partition_errors.items())
            )
        )
