"""A modelled producer's transaction with one record."""

from __future__ import annotations

from fakekafka.actors.clients.transactional_producer import SimulatedTransactionalProducer


async def write_in_transaction(
    producer: SimulatedTransactionalProducer,
    partition: tuple[str, int],
    value: bytes,
    *,
    commit: bool = False,
) -> None:
    """Write a record in the producer's first transaction and, with ``commit``, commit it."""
    await producer.init_transactions()
    producer.begin()
    await producer.write(partition, [value])
    if commit:
        await producer.commit()
