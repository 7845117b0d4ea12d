"""Guards of transactions that a leader is about to let begin on a partition (KIP-890;
docs/kafka/transactions.md#verification).

A guard stands from the question to the coordinator until the first batch of the transaction, or a
marker, is in the log. The answer counts only for the very guard it was asked for: one that
is late, after a marker, cannot begin a transaction that nobody will end.
"""

from __future__ import annotations

from typing import Final

from ...protocol.errors import ErrorCode, KafkaError


class Unguarded:
    """Says that an append needs no guard: nobody verifies transactions there."""

    __slots__ = ()


UNGUARDED: Final = Unguarded()


class VerificationGuard:
    """A question under way for one producer; Kafka's ``VerificationStateEntry``."""

    __slots__ = ("epoch", "lowest_sequence", "started_ms")

    def __init__(self, sequence: int, epoch: int, started_ms: int) -> None:
        self.lowest_sequence: int = sequence
        """A batch beyond the first one waits until that is in the log."""
        self.epoch: int = epoch
        self.started_ms: int = started_ms

    def take(self, sequence: int, epoch: int) -> None:
        """Another batch of the producer is to be verified."""
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence
        elif epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence


class VerificationGuards:
    """The guards of one partition, by producer id."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, VerificationGuard] = {}

    def __len__(self) -> int:
        return len(self._by_producer)

    def start(self, producer_id: int, sequence: int, epoch: int, now_ms: int) -> VerificationGuard:
        """The guard of a producer whose batch is to be verified; a new one if it has none."""
        guard = self._by_producer.get(producer_id)
        if guard is None:
            guard = self._by_producer[producer_id] = VerificationGuard(sequence, epoch, now_ms)
        else:
            guard.take(sequence, epoch)
        return guard

    def drop(self, producer_id: int) -> None:
        """A transaction of the producer has begun or ended."""
        self._by_producer.pop(producer_id, None)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Drop the guards of questions that led to nothing."""
        for producer_id, guard in tuple(self._by_producer.items()):
            if now_ms - guard.started_ms >= expiration_ms:
                del self._by_producer[producer_id]

    def check(self, producer_id: int, guard: VerificationGuard | None) -> None:
        """Check that a transaction may begin with a guard; ``KafkaError`` INVALID_TXN_STATE."""
        if guard is None or self._by_producer.get(producer_id) is not guard:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction"
            )

    def check_order(self, producer_id: int, first_sequence: int) -> None:
        """A batch waits for an earlier one; ``KafkaError`` OUT_OF_ORDER_SEQUENCE_NUMBER."""
        guard = self._by_producer.get(producer_id)
        if guard is not None and first_sequence > guard.lowest_sequence:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id}: sequence {first_sequence} before "
                f"{guard.lowest_sequence}, which is still to be verified",
            )
