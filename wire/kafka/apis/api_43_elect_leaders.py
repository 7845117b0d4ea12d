"""ElectLeaders (key 43): elect the preferred or an unclean leader (KIP-183, KIP-460).

Versions 0-2. 0: preferred only, no error for the whole answer. 1: the kind of election.
2: flexible.
"""

from __future__ import annotations

from ....protocol.admin import PREFERRED, UNCLEAN, ElectLeadersRequest, ElectLeadersResponse
from ....protocol.errors import ErrorCode
from ....protocol.values import TopicPartition
from ..api import Api, CodecAnswer
from ..primitives import Reader, Writer
from ..tuple_groups import tuples_by_topic


def decode(reader: Reader, version: int) -> ElectLeadersRequest | CodecAnswer:
    election_type = reader.int8() if version >= 1 else PREFERRED
    partitions = reader.nullable_topic_partitions()
    timeout_ms = reader.int32()
    reader.tags()
    if election_type not in (PREFERRED, UNCLEAN):  # ElectionType.valueOf throws
        error = ErrorCode.UNKNOWN_SERVER_ERROR
        results = tuple((partition, error, None) for partition in partitions or ())
        return CodecAnswer(ElectLeadersResponse(error, results))
    return ElectLeadersRequest(election_type, partitions, timeout_ms)


def encode(
    writer: Writer,
    version: int,
    response: ElectLeadersResponse,
    request: ElectLeadersRequest | None,
) -> None:
    writer.int32(writer.throttle_ms)
    if version >= 1:
        writer.int16(response.error)
    encode_partition_errors(writer, _results(version, response, request))
    writer.tags()


def _results(
    version: int, response: ElectLeadersResponse, request: ElectLeadersRequest | None
) -> tuple[tuple[TopicPartition, ErrorCode, str | None], ...]:
    """Version 0 has no place for the error of all: every partition asked for carries it."""
    if version >= 1 or response.error is ErrorCode.NONE or request is None:
        return response.partitions
    return tuple((partition, response.error, None) for partition in request.partitions or ())


def encode_partition_errors(
    writer: Writer, partitions: tuple[tuple[TopicPartition, ErrorCode, str | None], ...]
) -> None:
    """An array of topics with the error code and message of each partition."""
    topics = tuples_by_topic(partitions)
    writer.array(len(topics))
    for topic, results in topics:
        writer.string(topic)
        writer.array(len(results))
        for partition, error, message in results:
            writer.int32(partition.partition)
            writer.int16(error)
            writer.nullable_string(message)
            writer.tags()
        writer.tags()


API = Api(43, "ElectLeaders", 0, 2, flexible_from=2, decode=decode, encode=encode)
