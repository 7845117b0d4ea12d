"""A server on asyncio's streams, and clients that are cut off, lose bytes and reconnect."""

from __future__ import annotations

import asyncio

from fakekafka import Simulation

OPTIONS = {"brokers": 1}


async def serve(simulation: Simulation) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                writer.write(line.upper() * 50)
                await writer.drain()
        except OSError as error:
            simulation.note("lost", error=type(error).__name__)
        writer.close()

    server = await asyncio.start_server(answer, port=7000)
    simulation.note("serves")
    async with server:
        await server.serve_forever()


async def ask(simulation: Simulation) -> None:
    for number in range(15):
        try:
            async with asyncio.timeout(3):
                reader, writer = await asyncio.open_connection("server", 7000)
                writer.write(f"question {number}\n".encode() * 40)
                writer.write_eof()
                sizes = []
                while data := await reader.read(1 << 14):
                    sizes.append(len(data))
                writer.close()
                simulation.note("answered", number=number, sizes=sizes)
        except (OSError, TimeoutError) as error:
            simulation.note("failed", number=number, error=type(error).__name__)
        await asyncio.sleep(0.4)


def run(simulation: Simulation) -> None:
    server = simulation.program(serve, simulation, name="server")
    simulation.run_for(100)
    clients = [simulation.program(ask, simulation, name=f"client-{n}") for n in (1, 2)]
    simulation.network.drop(0.1)
    simulation.run_for(1500)
    simulation.network.partition(["client-1"], ["server"])
    simulation.run_for(2500)
    simulation.network.heal()
    server.restart()
    for client in clients:
        client.result(120)
