"""DescribeTransactions (key 65): what a coordinator knows of transactional ids (KIP-664).

Version 0, flexible.
"""

from __future__ import annotations

from ....protocol.transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from ..api import Api
from ..primitives import Reader, Writer


def decode(reader: Reader, version: int) -> DescribeTransactionsRequest:
    transactional_ids = reader.strings()
    reader.tags()
    return DescribeTransactionsRequest(transactional_ids)


def encode(
    writer: Writer,
    version: int,
    response: DescribeTransactionsResponse,
    request: DescribeTransactionsRequest | None,
) -> None:
    writer.int32(writer.throttle_ms)
    writer.array(len(response.transactions))
    for transaction in response.transactions:
        writer.int16(transaction.error)
        writer.string(transaction.transactional_id)
        writer.string(transaction.state)
        writer.int32(transaction.timeout_ms)
        writer.int64(transaction.start_time_ms)
        writer.int64(transaction.producer_id)
        writer.int16(transaction.producer_epoch)
        topics: dict[str, list[int]] = {}
        for topic, number in transaction.partitions:
            topics.setdefault(topic, []).append(number)
        writer.array(len(topics))
        for topic, numbers in topics.items():
            writer.string(topic)
            writer.int32s(numbers)
            writer.tags()
        writer.tags()
    writer.tags()


API = Api(65, "DescribeTransactions", 0, 0, flexible_from=0, decode=decode, encode=encode)
