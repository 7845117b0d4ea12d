"""Blocks of producer ids that brokers request (KIP-730)."""

from __future__ import annotations

from ....protocol.awaiting import Cancelled
from ....protocol.control import AllocateProducerIdsResponse
from ....protocol.errors import ErrorCode, KafkaError
from ..events import AllocateProducerIds
from ..parts import ControllerParts


class ProducerIdBlocks:
    """Allocates blocks in ``/latest_producer_id_block`` to brokers with a current broker epoch."""

    def __init__(self, parts: ControllerParts) -> None:
        self._parts = parts

    async def process_allocate(self, event: AllocateProducerIds) -> None:
        """Allocate a block and answer with it, or with the error."""
        parts, request = self._parts, event.request
        error = self._request_error(event)
        if error is not None:
            event.callback(AllocateProducerIdsResponse(error))
            return
        try:
            first, last = await parts.zk.brokers.allocate_producer_id_block(request.broker_id)
        except Cancelled:
            raise
        except Exception as error:
            parts.log("error", f"no producer ids for broker {request.broker_id}: {error!r}")
            code = error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
            event.callback(AllocateProducerIdsResponse(code))
            return
        event.callback(AllocateProducerIdsResponse(ErrorCode.NONE, first, last - first + 1))

    def _request_error(self, event: AllocateProducerIds) -> ErrorCode | None:
        parts, request = self._parts, event.request
        if not parts.is_active:
            return ErrorCode.NOT_CONTROLLER
        known = parts.context.brokers.live_broker_id_and_epochs.get(request.broker_id)
        if known is None:
            parts.log("warn", f"producer ids for the unknown broker {request.broker_id} refused")
            return ErrorCode.BROKER_ID_NOT_REGISTERED
        if known != request.broker_epoch:
            parts.log("warn", f"producer ids for a former broker {request.broker_id} refused")
            return ErrorCode.STALE_BROKER_EPOCH
        return None
