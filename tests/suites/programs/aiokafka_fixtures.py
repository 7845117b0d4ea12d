"""Fixtures of aiokafka's tests: a cluster that runs already, instead of a container with Kafka."""

from __future__ import annotations

import json
import os
import subprocess
from types import SimpleNamespace

import pytest

_TOLD = json.loads(os.environ["FAKEKAFKA_SERVED"])


class Container:
    """Runs Kafka's command line tools, as ``exec_run`` of a container does."""

    def exec_run(self, command: str) -> tuple[int, bytes]:
        words = [*_TOLD["tools"], command]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return done.returncode, done.stdout


@pytest.fixture(scope="session")
def docker() -> None:
    """Nothing is run in containers."""


@pytest.fixture(scope="session")
def kafka_server() -> SimpleNamespace:
    ports = _TOLD["ports"]
    return SimpleNamespace(
        host="127.0.0.1",
        port=ports["PLAINTEXT"],
        ssl_port=ports["SSL"],
        sasl_plain_port=ports["SASL_PLAINTEXT"],
        sasl_ssl_port=ports["SASL_SSL"],
        hosts=[f"127.0.0.1:{ports['PLAINTEXT']}"],
        container=Container(),
    )


@pytest.fixture(scope="class")
def kerberos_utils() -> SimpleNamespace:
    def kinit(_principal: str) -> None:
        pytest.fail("there is no Kerberos server")

    return SimpleNamespace(kinit=kinit, kdestroy=lambda: None)
