"""InitProducerId (key 22): an id and an epoch for an idempotent or transactional producer.

Versions 0-5. 2: flexible. 3: the producer's present id and epoch (KIP-360). 4: PRODUCER_FENCED,
before that INVALID_PRODUCER_EPOCH. 5 only adds an error of KIP-890.
"""

from __future__ import annotations

from ....protocol.data import InitProducerIdRequest, InitProducerIdResponse
from ....protocol.errors import ErrorCode
from ..api import Api
from ..primitives import Reader, Writer


def decode(reader: Reader, version: int) -> InitProducerIdRequest:
    transactional_id = reader.nullable_string()
    timeout_ms = reader.int32()
    producer_id, epoch = (reader.int64(), reader.int16()) if version >= 3 else (-1, -1)
    reader.tags()
    return InitProducerIdRequest(transactional_id, timeout_ms, producer_id, epoch)


def encode(
    writer: Writer,
    version: int,
    response: InitProducerIdResponse,
    request: InitProducerIdRequest | None,
) -> None:
    error = response.error
    if error is ErrorCode.PRODUCER_FENCED and version < 4:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    writer.int32(writer.throttle_ms)
    writer.int16(error)
    writer.int64(response.producer_id)
    writer.int16(response.producer_epoch)
    writer.tags()


API = Api(22, "InitProducerId", 0, 5, flexible_from=2, decode=decode, encode=encode)
