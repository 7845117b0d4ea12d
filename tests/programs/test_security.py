"""TLS and SASL in virtual time, on the listeners of brokers and between programs."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError
from fakekafka import Simulation
from fakekafka.protocol.errors import UsageError

SECURITY = {
    "listeners": ["PLAINTEXT", "TLS:SSL", "CLIENTS:SASL_SSL", "SCRAM:SASL_PLAINTEXT"],
    "users": {"alice": "secret"},
}
ALICE = {"sasl_plain_username": "alice", "sasl_plain_password": "secret"}


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    with Simulation(2, seed=1, topics={"orders": 2}, security=SECURITY) as simulation:
        yield simulation


async def produce(simulation: Simulation, port: int, protocol: str, **options: Any) -> int:
    context = None
    if protocol.endswith("SSL"):
        context = ssl.create_default_context(cafile=simulation.security.ca_path)
    producer = AIOKafkaProducer(
        bootstrap_servers=f"kafka:{port}",
        security_protocol=protocol,
        ssl_context=context,
        **options,
    )
    async with producer:
        sent = await producer.send_and_wait("orders", b"x", partition=0)
    return int(sent.offset)


@pytest.mark.parametrize(
    ("port", "protocol", "options"),
    [
        (9092, "PLAINTEXT", {}),
        (9093, "SSL", {}),
        (9094, "SASL_SSL", {"sasl_mechanism": "PLAIN", **ALICE}),
        (9095, "SASL_PLAINTEXT", {"sasl_mechanism": "SCRAM-SHA-512", **ALICE}),
    ],
)
def test_a_program_uses_any_listener(
    simulation: Simulation, port: int, protocol: str, options: dict[str, Any]
) -> None:
    """Metadata leads to the same listener of each broker, and certificates name brokers."""
    program = simulation.program(produce, simulation, port, protocol, **options)
    assert program.result() == 0
    assert simulation.broker(1).ports == {
        "PLAINTEXT": 9092,
        "TLS": 9093,
        "CLIENTS": 9094,
        "SCRAM": 9095,
    }


def test_a_wrong_password_is_refused(simulation: Simulation) -> None:
    """A wrong password is refused, as on a live cluster."""
    options = {**ALICE, "sasl_mechanism": "SCRAM-SHA-512", "sasl_plain_password": "wrong"}
    program = simulation.program(produce, simulation, 9095, "SASL_PLAINTEXT", **options)
    with pytest.raises(KafkaConnectionError):
        program.result()


def test_a_simulation_without_security_has_none() -> None:
    """The error says how to get a simulation with security."""
    with Simulation(1) as simulation, pytest.raises(UsageError, match="give Simulation a security"):
        _ = simulation.security


def test_programs_speak_tls_to_each_other(simulation: Simulation) -> None:
    """The server's certificate is checked against its name."""
    authority = simulation.security.authority
    certificate = authority.issue("server", hosts=("server",))

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line.upper())
            await writer.drain()
        writer.close()

    async def serve() -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.certificate_path, certificate.key_path)
        await asyncio.start_server(echo, port=443, ssl=context)
        await asyncio.sleep(1000)

    async def main() -> tuple[bytes, bool]:
        context = ssl.create_default_context(cafile=simulation.security.ca_path)
        reader, writer = await asyncio.open_connection("server", 443, ssl=context)
        writer.write(b"hello\n" * 10_000)
        lines = [await reader.readline() for _ in range(10_000)]
        is_secure = writer.get_extra_info("ssl_object") is not None
        writer.close()
        await writer.wait_closed()
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.open_connection(
                "server", 443, ssl=context, server_hostname="somebody-else"
            )
        return lines[-1], is_secure

    simulation.program(serve, name="server")
    assert simulation.program(main).result() == (b"HELLO\n", True)
