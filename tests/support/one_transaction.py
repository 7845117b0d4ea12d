"""A record in a transaction of a modelled producer."""

from __future__ import annotations

from fakekafka.actors.clients.transactional_producer import SimulatedTransactionalProducer


async def write_in_transaction(
    producer: SimulatedTransactionalProducer,
    partition: tuple[str, int],
    value: bytes,
    *,
    commit: bool = False,
) -> None:
    """Write it in the producer's first transaction, which stays open unless it is committed."""
    await producer.init_transactions()
    producer.begin()
    await producer.write(partition, [value])
    if commit:
        await producer.commit()
