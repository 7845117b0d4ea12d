"""A service of kstreams is killed while it works, and started again.

kstreams looks at the annotations of a stream's function, which must not be texts.
"""

import asyncio

from fakekafka import Simulation
from kstreams import ConsumerRecord, backends, create_engine

OPTIONS = {"topics": {"orders": 1, "invoices": 1}}


async def billing() -> None:
    backend = backends.Kafka(bootstrap_servers=["kafka:9092"])
    engine = create_engine(title="billing", backend=backend)

    @engine.stream("orders", group_id="billing", auto_offset_reset="earliest")
    async def bill(record: ConsumerRecord) -> None:  # type: ignore[type-arg]
        assert record.value is not None
        await asyncio.sleep(0.05)
        await engine.send("invoices", value=b"invoice for " + record.value)

    await engine.start()
    await asyncio.Event().wait()


def run(simulation: Simulation) -> None:
    simulation.produce("orders", [f"order {number}" for number in range(16)])
    program = simulation.program(billing, name="billing")
    simulation.wait_for_records("invoices", 8, timeout_s=120)
    program.kill()
    simulation.run_for(15_000)
    program.restart()
    simulation.wait_for_records("invoices", 16, timeout_s=120)
