"""ListTransactions (key 66): the transactional ids of one coordinator (KIP-664).

Versions 0-1, flexible. 1: only transactions open for longer than a time (KIP-994).
"""

from __future__ import annotations

from ....protocol.transactions import ListTransactionsRequest, ListTransactionsResponse
from ..api import Api
from ..primitives import Reader, Writer


def decode(reader: Reader, version: int) -> ListTransactionsRequest:
    states = reader.strings()
    producer_ids = tuple([reader.int64() for _ in range(reader.array())])
    duration_ms = reader.int64() if version >= 1 else -1
    reader.tags()
    return ListTransactionsRequest(states, producer_ids, duration_ms)


def encode(
    writer: Writer,
    version: int,
    response: ListTransactionsResponse,
    request: ListTransactionsRequest | None,
) -> None:
    writer.int32(writer.throttle_ms)
    writer.int16(response.error)
    writer.array(len(response.unknown_states))
    for state in response.unknown_states:
        writer.string(state)
    writer.array(len(response.transactions))
    for transaction in response.transactions:
        writer.string(transaction.transactional_id)
        writer.int64(transaction.producer_id)
        writer.string(transaction.state)
        writer.tags()
    writer.tags()


API = Api(66, "ListTransactions", 0, 1, flexible_from=0, decode=decode, encode=encode)
