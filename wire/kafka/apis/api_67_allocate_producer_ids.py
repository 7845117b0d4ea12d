"""AllocateProducerIds (key 67): a broker asks the controller for producer ids (KIP-730).

Version 0, flexible. As for AlterPartition, whoever sends it over TCP is a client.
"""

from __future__ import annotations

from ....protocol.control import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ..api import Api
from ..primitives import Reader, Writer


def decode(reader: Reader, version: int) -> AllocateProducerIdsRequest:
    broker_id, broker_epoch = reader.int32(), reader.int64()
    reader.tags()
    return AllocateProducerIdsRequest(broker_id, broker_epoch)


def encode(
    writer: Writer,
    version: int,
    response: AllocateProducerIdsResponse,
    request: AllocateProducerIdsRequest | None,
) -> None:
    writer.int32(writer.throttle_ms)
    writer.int16(response.error)
    writer.int64(response.first_producer_id)
    writer.int32(response.count)
    writer.tags()


API = Api(67, "AllocateProducerIds", 0, 0, flexible_from=0, decode=decode, encode=encode)
