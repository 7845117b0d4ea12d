"""Records of fetched batches that an application gets (Kafka's ``Fetcher``).

Markers are never handed out. With read committed, records of aborted transactions are left out as
well: the answer lists their producers, each with the first offset of its transaction, and an abort
marker ends the transaction.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...protocol.data import FetchPartitionResponse
from ...protocol.records.batch import RecordBatch


def visible_batches(
    response: FetchPartitionResponse, is_committed_only: bool
) -> Iterator[RecordBatch]:
    """Yield the batches that an application may see, in order."""
    aborted = sorted(
        (transaction.first_offset, transaction.producer_id)
        for transaction in response.aborted_transactions or ()
    )
    producers: set[int] = set()
    for batch in response.records:
        if batch.last_offset < 0:  # cut off at the end of the answer
            continue
        while aborted and aborted[0][0] <= batch.last_offset:
            producers.add(aborted.pop(0)[1])
        if batch.is_control:
            marker = batch.control_marker()
            if marker is not None and not marker.is_commit:
                producers.discard(batch.producer_id)
        elif not (is_committed_only and batch.is_transactional and batch.producer_id in producers):
            yield batch
