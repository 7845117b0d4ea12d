"""A modelled application that consumes, transforms and produces exactly once.

It reads its input from the committed offsets of its group, writes each record to the output, and
commits the new offsets in the same transaction. It keeps no other state: after any failure it
begins again from the committed offsets, in a new epoch if another producer fenced it.
"""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.awaiting import Disconnected, RequestTimeout
from ...protocol.data import (
    CONSUMER_REPLICA_ID,
    READ_COMMITTED,
    FetchPartition,
    FetchRequest,
    FetchResponse,
)
from ...protocol.errors import ErrorCode
from ...protocol.groups import OffsetFetchRequest, OffsetFetchResponse
from ...protocol.host import sleep
from ...protocol.names import broker_name
from ...protocol.values import TopicPartition, frozen
from ..interfaces import AbstractRuntime, Process
from .client import RETRY_BACKOFF_MS, refuse_setting
from .client_operation import ClientOperation
from .committed_reading import visible_batches
from .coordinated import GROUP
from .transactional_producer import (
    ProducerFenced,
    SimulatedTransactionalProducer,
    TransactionAbortable,
    TransactionalProducerSettings,
)

_NONE = ErrorCode.NONE


@frozen
class TransformerSettings(TransactionalProducerSettings):
    """Settings of a transactional producer, with the partitions to read and to write."""

    group_id: str = "transformers"
    """Group for which offsets are committed."""
    inputs: tuple[TopicPartition, ...] = ()
    """Partitions to read."""
    outputs: tuple[TopicPartition, ...] = ()
    """Partitions to write: a record at offset n goes to output n modulo the number of outputs."""
    fetch_max_wait_ms: int = 500
    """Maximum time in milliseconds for which a fetch waits for records."""
    returns_when_fenced: bool = True
    """True to initialize the transactional id again after fencing; False to stop."""

    def __post_init__(self) -> None:
        TransactionalProducerSettings.__post_init__(self)
        if not self.inputs or not self.outputs:
            refuse_setting(
                self, "inputs" if self.outputs else "outputs", "partitions, at least one"
            )


class SimulatedTransformer(SimulatedTransactionalProducer):
    """Copies records from its inputs to its outputs, each exactly once."""

    def __init__(
        self,
        runtime: AbstractRuntime,
        name: str,
        process: Process,
        bootstrap: tuple[int, ...],
        settings: TransformerSettings,
    ) -> None:
        super().__init__(runtime, name, process, bootstrap, settings)
        self._transformer_settings = settings
        self.fenced: int = 0
        """Number of times that another producer has fenced the transformer."""
        self.has_ended: bool = False
        """True once fencing has stopped it for good, with ``returns_when_fenced=False``."""
        self.transform: Callable[[bytes | None], bytes | None] = lambda value: value
        """Called with each value read; returns the value to write, initially the same."""

    def on_start(self) -> None:
        for where in (*self._transformer_settings.inputs, *self._transformer_settings.outputs):
            self.use_topic(where.topic)
        self.start_task(self._run())

    async def _run(self) -> None:
        while True:
            try:
                await self.init_transactions()
                await self._copy()
            except ProducerFenced:
                self.fenced += 1
                if not self._transformer_settings.returns_when_fenced:
                    self.has_ended = True
                    return

    async def _copy(self) -> None:
        """Copy records until fenced."""
        positions = await self._fetch_committed()
        while True:
            for where in self._transformer_settings.inputs:
                records, position = await self._fetch(where, positions[where])
                if position == positions[where]:
                    continue
                try:
                    await self._copy_once(where, records, position)
                except TransactionAbortable:
                    await self.abort()
                    positions = await self._fetch_committed()
                else:
                    positions[where] = position

    async def _copy_once(
        self, where: TopicPartition, records: list[tuple[int, bytes | None]], position: int
    ) -> None:
        self.begin()
        outputs = self._transformer_settings.outputs
        by_output: dict[TopicPartition, list[bytes | None]] = {}
        for offset, value in records:
            output = outputs[offset % len(outputs)]
            by_output.setdefault(output, []).append(self.transform(value))
        for output, values in by_output.items():
            await self.write(output, values)
        await self.send_offsets(self._transformer_settings.group_id, {where: position})
        await self.commit()

    async def _fetch_committed(self) -> dict[TopicPartition, int]:
        """Fetch the positions to continue from; waits for a pending transaction to end
        (KIP-447)."""
        inputs = self._transformer_settings.inputs
        group_id = self._transformer_settings.group_id
        request = OffsetFetchRequest(group_id, inputs, require_stable=True)
        with ClientOperation(self, "offset_fetch", group_id):
            answer: OffsetFetchResponse = await self.ask_coordinator(
                GROUP, group_id, request, _offsets_error
            )
        return {found.topic_partition: max(found.offset, 0) for found in answer.partitions}

    async def _fetch(
        self, where: TopicPartition, position: int
    ) -> tuple[list[tuple[int, bytes | None]], int]:
        """Return (offset, value) of the next records, and the position after them."""
        leader = self.leaders.get(where)
        if leader is None:
            self.refresh_metadata()
            await sleep(self, RETRY_BACKOFF_MS)
            return [], position
        request = FetchRequest(
            CONSUMER_REPLICA_ID,
            self._transformer_settings.fetch_max_wait_ms,
            1,
            1048576,
            (FetchPartition(where, position),),
            READ_COMMITTED,
        )
        try:
            answer: FetchResponse = await self.ask(
                broker_name(leader[0]), request, self.request_timeout_ms
            )
        except (Disconnected, RequestTimeout):
            answer = FetchResponse(ErrorCode.NETWORK_EXCEPTION, 0, ())
        if answer.error is not _NONE or answer.partitions[0].error is not _NONE:
            self.refresh_metadata()
            await sleep(self, RETRY_BACKOFF_MS)
            return [], position
        found = answer.partitions[0]
        records = [
            (record.offset, record.value)
            for batch in visible_batches(found, is_committed_only=True)
            for record in batch.records()
            if record.offset >= position
        ]
        for batch in found.records:
            position = max(position, batch.last_offset + 1)
        return records, position


def _offsets_error(response: OffsetFetchResponse) -> ErrorCode:
    if response.error is not _NONE:
        return response.error
    return next((p.error for p in response.partitions if p.error is not _NONE), _NONE)
