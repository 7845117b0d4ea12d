"""Two services over HTTP, with uvicorn and httpx; one is cut off, then paused."""

from __future__ import annotations

import asyncio

import httpx
from fakekafka import Simulation
from fakekafka.examples.programs.services_over_http import payments

OPTIONS = {"brokers": 1}


async def shop(simulation: Simulation) -> None:
    async with httpx.AsyncClient(base_url="http://payments:8080", timeout=1) as client:

        async def order(number: int) -> None:
            try:
                answer = await client.post("/pay", params={"order": str(number)})
                simulation.note("paid", order=answer.json()["paid"], date=answer.headers["date"])
            except httpx.HTTPError as error:
                simulation.note("failed", order=number, error=type(error).__name__)

        for number in range(0, 24, 3):
            await asyncio.gather(*map(order, range(number, number + 3)))
            await asyncio.sleep(1)


def run(simulation: Simulation) -> None:
    paying = simulation.program(payments, name="payments")
    simulation.run_for(100)
    shopping = simulation.program(shop, simulation, name="shop")
    simulation.run_for(2000)
    simulation.network.isolate("payments")
    simulation.run_for(2500)
    simulation.network.heal()
    paying.pause()
    simulation.run_for(2000)
    paying.resume()
    shopping.result(120)
