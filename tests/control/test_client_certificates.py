"""Certificates that programs in other languages request from the control API."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from fakekafka import Cluster, ListenerSpec
from fakekafka.control.server import ControlServer
from fakekafka.tests.support.served import Served


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    mutual = ListenerSpec("SSL", client_auth="required")
    with Cluster(1, security={"listeners": mutual}) as cluster:
        server = ControlServer(cluster)
        yield Served(cluster, server)
        server.close()


def files(told: dict[str, Any], folder: Path) -> tuple[Path, Path]:
    """Write the authority, the certificate and its key as the API returned them."""
    ca, pair = folder / "ca.pem", folder / "pair.pem"
    ca.write_text(told["ca_pem"])
    pair.write_text(told["certificate_pem"] + told["key_pem"])
    return ca, pair


def test_a_client_authenticates_with_a_certificate_from_the_server(
    served: Served, tmp_path: Path
) -> None:
    told = served.ask("POST", "/client_certificates", common_name="ada", organization="Acme")
    assert told["name"] == "CN=ada,O=Acme"
    assert Path(told["certificate_path"]).read_text() == told["certificate_pem"]
    assert Path(told["key_path"]).read_text() == told["key_pem"]
    assert Path(told["keystore_path"]).exists()
    assert told["keystore_password"]
    ca, pair = files(told, tmp_path)
    admin = AdminClient(
        {
            "bootstrap.servers": served.cluster.bootstrap_servers,
            "security.protocol": "SSL",
            "ssl.ca.location": str(ca),
            "ssl.certificate.location": str(pair),
            "ssl.key.location": str(pair),
        }
    )
    assert list(admin.list_topics(timeout=10).brokers) == [1]


@pytest.mark.parametrize("fault", ["foreign", "expired"])
def test_an_invalid_certificate_can_be_requested(
    served: Served, tmp_path: Path, fault: str
) -> None:
    """A client can request a certificate that brokers must refuse; the authority in the answer is
    still the brokers' own."""
    told = served.ask("POST", "/client_certificates", common_name="eve", **{fault: True})
    ca, pair = files(told, tmp_path)
    context = ssl.create_default_context(cafile=str(ca))
    context.load_cert_chain(pair)
    host, port = served.cluster.bootstrap_servers.split(":")
    with (
        contextlib.suppress(ssl.SSLError, ConnectionError),
        socket.create_connection((host, int(port)), 10) as raw,
        context.wrap_socket(raw, server_hostname="localhost") as secured,
    ):
        assert secured.recv(1) == b"", "the broker waits for requests"


def test_a_certificate_needs_a_name(served: Served) -> None:
    assert served.call("POST", "/client_certificates")[0] == 400
