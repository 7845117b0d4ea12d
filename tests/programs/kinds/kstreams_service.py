"""A service of kstreams is killed while it works, and restarted."""

from __future__ import annotations

from fakekafka import Simulation
from fakekafka.examples.programs.kstreams_billing import billing

OPTIONS = {"topics": {"orders": 1, "invoices": 1}}


def run(simulation: Simulation) -> None:
    simulation.produce("orders", [f"order {number}" for number in range(16)])
    program = simulation.program(billing, name="billing")
    simulation.wait_for_records("invoices", 8, timeout_s=120)
    program.kill()
    simulation.run_for(15_000)
    program.restart()
    simulation.wait_for_records("invoices", 16, timeout_s=120)
