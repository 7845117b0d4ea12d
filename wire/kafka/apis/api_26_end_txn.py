"""EndTxn (key 26): commit or abort a transaction.

Versions 0-4. 2: PRODUCER_FENCED, before that INVALID_PRODUCER_EPOCH (KIP-588). 3: flexible. 4 only
adds an error.
"""

from __future__ import annotations

from ....protocol.errors import ErrorCode
from ....protocol.transactions import EndTxnRequest, EndTxnResponse
from ..api import Api
from ..primitives import Reader, Writer


def decode(reader: Reader, version: int) -> EndTxnRequest:
    transactional_id = reader.string()
    producer_id = reader.int64()
    epoch = reader.int16()
    is_commit = reader.boolean()
    reader.tags()
    return EndTxnRequest(transactional_id, producer_id, epoch, is_commit)


def encode(
    writer: Writer, version: int, response: EndTxnResponse, request: EndTxnRequest | None
) -> None:
    error = response.error
    if error is ErrorCode.PRODUCER_FENCED and version < 2:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    writer.int32(writer.throttle_ms)
    writer.int16(error)
    writer.tags()


API = Api(26, "EndTxn", 0, 4, flexible_from=3, decode=decode, encode=encode)
