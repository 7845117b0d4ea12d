"""Guards of transactions that are about to begin on a leader's partition (KIP-890;
docs/kafka/transactions.md#verification).

A guard exists from the request to the coordinator until the first batch of the transaction, or a
marker, is in the log. A response is valid only for the guard that it was requested for, so a
response that arrives after a marker cannot begin a transaction that would never end.
"""

from __future__ import annotations

from typing import Final

from ...protocol.errors import ErrorCode, KafkaError


class Unguarded:
    """The type of ``UNGUARDED``, for appends whose transactions are not verified."""

    __slots__ = ()


UNGUARDED: Final = Unguarded()


class VerificationGuard:
    """A pending verification of one producer; Kafka's ``VerificationStateEntry``."""

    __slots__ = ("epoch", "lowest_sequence", "started_ms")

    def __init__(self, sequence: int, epoch: int, started_ms: int) -> None:
        self.lowest_sequence: int = sequence
        """Lowest sequence to be verified; later batches are refused until it is in the log."""
        self.epoch: int = epoch
        self.started_ms: int = started_ms

    def take(self, sequence: int, epoch: int) -> None:
        """Update the guard for another batch that is to be verified."""
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
        """Return the guard of a producer whose batch is to be verified, creating it if needed."""
        guard = self._by_producer.get(producer_id)
        if guard is None:
            guard = self._by_producer[producer_id] = VerificationGuard(sequence, epoch, now_ms)
        else:
            guard.take(sequence, epoch)
        return guard

    def drop(self, producer_id: int) -> None:
        """Drop the guard of a producer, as its transaction has begun or ended."""
        self._by_producer.pop(producer_id, None)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Drop the guards that are at least ``expiration_ms`` old."""
        for producer_id, guard in tuple(self._by_producer.items()):
            if now_ms - guard.started_ms >= expiration_ms:
                del self._by_producer[producer_id]

    def check(self, producer_id: int, guard: VerificationGuard | None) -> None:
        """Check that a transaction may begin with a guard; raise ``KafkaError`` INVALID_TXN_STATE
        if the guard is not the producer's current one."""
        if guard is None or self._by_producer.get(producer_id) is not guard:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction"
            )

    def check_order(self, producer_id: int, first_sequence: int) -> None:
        """Raise ``KafkaError`` OUT_OF_ORDER_SEQUENCE_NUMBER if a batch must wait for an earlier
        one."""
        guard = self._by_producer.get(producer_id)
        if guard is not None and first_sequence > guard.lowest_sequence:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id}: sequence {first_sequence} must wait until sequence "
                f"{guard.lowest_sequence} is verified and appended",
            )
