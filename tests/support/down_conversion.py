"""Conversion of a whole fetch response for an old client, without the broker's pauses."""

from __future__ import annotations

from collections.abc import Callable

from fakekafka.protocol.data import FetchRequest, FetchResponse
from fakekafka.protocol.values import TopicPartition
from fakekafka.replication.leader.down_conversion import conversion
from fakekafka.replication.partition.partition import Partition


def down_converted(
    request: FetchRequest,
    response: FetchResponse,
    api_version: int,
    hosted: Callable[[TopicPartition], Partition | None],
) -> FetchResponse:
    """Return the response in the record format of the request's version."""
    steps = conversion(request, response, api_version, hosted)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
