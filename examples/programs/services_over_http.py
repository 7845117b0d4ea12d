"""Two services that talk over HTTP, with uvicorn and httpx, and are cut off from each other.

The libraries are unmodified; only the network between the services is simulated.
"""

from __future__ import annotations

import asyncio

import httpx
import uvicorn
from fakekafka import Simulation
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


async def payments() -> None:
    """Serve requests to pay, each of which takes 200 ms."""

    async def pay(request: Request) -> JSONResponse:
        await asyncio.sleep(0.2)
        return JSONResponse({"paid": request.query_params["order"]})

    app = Starlette(routes=[Route("/pay", pay, methods=["POST"])])
    config = uvicorn.Config(app, host="0.0.0.0", port=8080, log_level="error")
    await uvicorn.Server(config).serve()


async def shop() -> list[str]:
    """Pay for ten orders, and return the outcome of each."""
    told = []
    async with httpx.AsyncClient(base_url="http://payments:8080", timeout=1) as client:
        for number in range(10):
            try:
                answer = await client.post("/pay", params={"order": str(number)})
                told.append(f"paid {answer.json()['paid']}")
            except httpx.TimeoutException as error:
                told.append(f"{type(error).__name__} for {number}")
            await asyncio.sleep(1)
    return told


def main(seed: int = 1) -> list[str]:
    """Run both services, and cut the payments off for two and a half seconds."""
    with Simulation(1, seed=seed) as simulation:
        simulation.program(payments, name="payments")
        simulation.run_for(100)
        shopping = simulation.program(shop, name="shop")
        simulation.run_for(4000)
        simulation.network.isolate("payments")
        simulation.run_for(2500)
        simulation.network.heal()
        simulation.wait_until(lambda: not shopping.is_running, timeout_s=120)
        told: list[str] = shopping.result()
        return told


if __name__ == "__main__":
    print("\n".join(main()))
