"""The clients of a story, which send the requests of its steps and note the answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...protocol.awaiting import Disconnected, Pending
from ...protocol.data import (
    CONSUMER_REPLICA_ID,
    FetchPartition,
    FetchRequest,
    MetadataRequest,
    OffsetForLeaderEpochPartition,
    OffsetForLeaderEpochRequest,
    ProducePartition,
    ProduceRequest,
)
from ...protocol.errors import ErrorCode, UsageError
from ...protocol.names import broker_name
from ...protocol.records.batch import build_batch
from ...protocol.records.format import Record
from ...protocol.values import TopicPartition

if TYPE_CHECKING:
    from ...actors.clients.producer import SimulatedProducer
    from ...testing.simulation import Simulation
    from ..spec import StorySpec

ACKNOWLEDGED = "acknowledged"
WAITING = "waiting"
SENT = "sent"
_REQUEST_TIMEOUT_MS = 120_000
_READ_BYTES = 1 << 20


class StoryClients:
    """Producers and readers of one partition."""

    def __init__(self, simulation: Simulation, story: StorySpec, leader: Callable[[], int]) -> None:
        self._simulation = simulation
        self._story = story
        self._where = TopicPartition(story.topic, story.partition)
        self._leader = leader
        self._producers: dict[int, SimulatedProducer] = {}
        self.answers: dict[str, str] = {}
        """Last answer to the client, by record value or name of a read."""
        self.promised: dict[str, int] = {}
        """The ``acks`` of each value whose write succeeded, in the order of the answers."""

    # -- writing -------------------------------------------------------------------------------

    def produce(
        self,
        values: Sequence[str],
        acks: int,
        retries: bool,
        timeout_ms: int,
        to: int | None = None,
    ) -> None:
        """Send each value as a batch of its own, in order.

        With ``retries`` a modelled producer sends them, which retries like a real one.
        """
        if retries:
            for value in values:
                self._produce_retrying(value, acks)
            return
        destination = self._destination(to)
        for value in values:
            self._produce_once(destination, value, acks, timeout_ms)

    def _produce_once(self, destination: str, value: str, acks: int, timeout_ms: int) -> None:
        admin = self._simulation.running.admin
        data = build_batch([Record(0, admin.wall_ms(), None, value.encode(), ())])
        request = ProduceRequest(acks, timeout_ms, (ProducePartition(self._where, data),))
        if acks == 0:
            self.answers[value] = SENT
            admin.send(destination, request)
            return
        self.answers[value] = WAITING

        def describe(response: Any) -> str:
            answer = response.partitions[0]
            if answer.error != ErrorCode.NONE:
                return str(answer.error.name)
            self.promised[value] = acks
            return f"{ACKNOWLEDGED} at {answer.base_offset}"

        self._ask(destination, request, value, describe)

    def _produce_retrying(self, value: str, acks: int) -> None:
        simulation = self._simulation
        producer = self._producers.get(acks)
        if producer is None:
            idempotent = acks == -1 and simulation.behaviour.idempotent_producers
            producer = simulation.producer(acks=acks, enable_idempotence=idempotent)
            self._producers[acks] = producer
        self.answers[value] = WAITING

        def note_outcome(error: ErrorCode, offset: int) -> None:
            if error != ErrorCode.NONE:
                self.answers[value] = str(error.name)
                return
            self.promised[value] = acks
            at = f" at {offset}" if offset >= 0 else ""
            self.answers[value] = f"{ACKNOWLEDGED}{at}"

        producer.produce(self._where, value.encode(), callback=note_outcome)

    # -- reading -------------------------------------------------------------------------------

    def read(self, name: str, offset: int, to: int | None = None) -> None:
        """Fetch once, like a consumer without epochs; the answer is the values or the error."""
        wanted = FetchPartition(self._where, offset, -1, _READ_BYTES)
        request = FetchRequest(CONSUMER_REPLICA_ID, 0, 0, _READ_BYTES, (wanted,))

        def describe(response: Any) -> str:
            answer = response.partitions[0]
            if answer.error != ErrorCode.NONE:
                return str(answer.error.name)
            records = [record for batch in answer.records for record in batch.records()]
            found = [(r.value or b"").decode() for r in records if r.offset >= offset]
            return " ".join(found) or "nothing"

        self._ask(self._destination(to), request, name, describe)

    def ask_epoch(self, name: str, epoch: int, to: int | None = None) -> None:
        """Ask where an epoch ends, as consumers have done before they resume since KIP-320."""
        wanted = OffsetForLeaderEpochPartition(self._where, epoch)
        request = OffsetForLeaderEpochRequest(CONSUMER_REPLICA_ID, (wanted,))

        def describe(response: Any) -> str:
            answer = response.partitions[0]
            if answer.error != ErrorCode.NONE:
                return str(answer.error.name)
            return f"epoch {answer.leader_epoch} ends at {answer.end_offset}"

        self._ask(self._destination(to), request, name, describe)

    def ask_leader(self, name: str, to: int | None = None) -> None:
        """Request metadata from a broker; the answer is ``leader A``, or the error."""
        names = {broker_id: name for name, broker_id in self._story.names.items()}

        def describe(response: Any) -> str:
            for partition in response.topics[0].partitions:
                if partition.partition == self._where.partition:
                    if partition.error != ErrorCode.NONE:
                        return str(partition.error.name)
                    return f"leader {names.get(partition.leader, partition.leader)}"
            return str(response.topics[0].error.name)

        self._ask(self._destination(to), MetadataRequest((self._where.topic,)), name, describe)

    # -- sending -------------------------------------------------------------------------------

    def _destination(self, to: int | None) -> str:
        if to is None:
            to = self._leader()
        if to < 0:
            raise UsageError(f"{self._where} has no leader; name a broker with 'to'")
        return broker_name(to)

    def _ask(
        self, destination: str, request: Any, name: str, describe: Callable[[Any], str]
    ) -> None:
        def note_answer(completed: Pending[Any]) -> None:
            if completed.exception is None:
                self.answers[name] = describe(completed.result())
            else:
                is_disconnected = isinstance(completed.exception, Disconnected)
                self.answers[name] = "disconnected" if is_disconnected else "timed out"

        pending = self._simulation.running.admin.ask(destination, request, _REQUEST_TIMEOUT_MS)
        pending.add_done_callback(note_answer)
