"""AddOffsetsToTxn (key 25): a transaction is about to commit offsets of a group.

Versions 0-4. 2: PRODUCER_FENCED, before that INVALID_PRODUCER_EPOCH (KIP-588). 3: flexible. 4 only
adds an error.
"""

from __future__ import annotations

from ....protocol.errors import ErrorCode
from ....protocol.transactions import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ..api import Api
from ..primitives import Reader, Writer


def decode(reader: Reader, version: int) -> AddOffsetsToTxnRequest:
    transactional_id = reader.string()
    producer_id = reader.int64()
    epoch = reader.int16()
    group_id = reader.string()
    reader.tags()
    return AddOffsetsToTxnRequest(transactional_id, producer_id, epoch, group_id)


def encode(
    writer: Writer,
    version: int,
    response: AddOffsetsToTxnResponse,
    request: AddOffsetsToTxnRequest | None,
) -> None:
    error = response.error
    if error is ErrorCode.PRODUCER_FENCED and version < 2:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    writer.int32(writer.throttle_ms)
    writer.int16(error)
    writer.tags()


API = Api(25, "AddOffsetsToTxn", 0, 4, flexible_from=3, decode=decode, encode=encode)
