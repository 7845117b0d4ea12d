"""A kstreams service bills orders; it is killed while it works, and started again.

``from __future__ import annotations`` is missing on purpose: kstreams inspects the annotations of a
stream's function, which must not be strings.
"""

import asyncio

from fakekafka import Simulation
from kstreams import ConsumerRecord, backends, create_engine

ORDERS = 20


async def billing() -> None:
    """Read orders, and write an invoice for each."""
    backend = backends.Kafka(bootstrap_servers=["kafka:9092"])
    engine = create_engine(title="billing", backend=backend)

    @engine.stream("orders", group_id="billing", auto_offset_reset="earliest")
    async def bill(record: ConsumerRecord) -> None:  # type: ignore[type-arg]
        assert record.value is not None
        await asyncio.sleep(0.05)
        await engine.send("invoices", value=b"invoice for " + record.value)

    await engine.start()
    await asyncio.Event().wait()


def main(seed: int = 1) -> tuple[list[bytes | None], float]:
    """Run the service under a fault; return the invoices, and the virtual seconds that passed."""
    with Simulation(3, seed=seed, topics={"orders": 1, "invoices": 1}) as simulation:
        simulation.produce("orders", [f"order {number}" for number in range(ORDERS)])
        program = simulation.program(billing, name="billing")
        simulation.wait_for_records("invoices", ORDERS // 2, timeout_s=120)
        program.kill()
        simulation.run_for(15_000)  # so that the group removes the dead member
        program.restart()

        def are_billed() -> bool:
            return len({record.value for record in simulation.records("invoices")}) == ORDERS

        simulation.wait_until(are_billed, timeout_s=120)
        invoices = [record.value for record in simulation.records("invoices")]
        return invoices, simulation.now_ms / 1000


if __name__ == "__main__":
    invoices, took_s = main()
    print(f"{len(set(invoices))} orders have {len(invoices)} invoices, in {took_s:.0f} virtual s")
