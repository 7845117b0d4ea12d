"""Modules of APIs are imported, and readers compiled, when an API is first requested."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest
from fakekafka.protocol.api_versions import API_NAMES
from fakekafka.wire.kafka import apis
from fakekafka.wire.kafka.api import Api
from fakekafka.wire.kafka.messages.table import message
from fakekafka.wire.kafka.registry import CODEC_RANGES, CODECS

_LOADED = """
import sys
from fakekafka.wire.kafka.codec import Codec
codec = Codec("3.9")
def show():
    rooms = ("fakekafka.wire.kafka.apis.", "fakekafka.wire.kafka.messages.")
    print(*sorted(n.rpartition(".")[2] for n in sys.modules if n.startswith(rooms)))
show()
codec.decode(42, 1, memoryview(b"\\0\\0\\0\\0"))
show()
"""


@pytest.mark.parametrize("key", CODEC_RANGES)
def test_every_api_is_found_by_its_key(key: int) -> None:
    """The API's name and versions are those of the table."""
    assert CODECS[key].key == key
    request, response = message(key, "request"), message(key, "response")
    name = API_NAMES[key]
    assert (request.name, response.name) == (f"{name}Request", f"{name}Response")
    assert request.versions == response.versions == CODEC_RANGES[key]
    assert request.flexible == response.flexible


def test_every_module_has_an_api() -> None:
    """Every module has APIs, and keys are in order, as ApiVersions answers in this order."""
    assert list(CODEC_RANGES) == sorted(CODEC_RANGES)
    for module in pkgutil.iter_modules(apis.__path__):
        found = import_module(f"{apis.__name__}.{module.name}")
        of_module = [one for one in vars(found).values() if isinstance(one, Api)]
        assert of_module
        assert all(CODECS[one.key] is one for one in of_module)


def test_an_api_that_is_not_served_is_a_key_error() -> None:
    """There is no codec of LeaderAndIsr, for example, which brokers advertise and refuse."""
    with pytest.raises(KeyError, match="4"):
        CODECS[4]


def test_a_broker_loads_only_the_codecs_of_requested_apis() -> None:
    """A broker tells the versions of all APIs by means of the codec of ApiVersions alone."""
    command = [sys.executable, "-c", _LOADED]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)
    assert done.stdout.splitlines() == [
        "api_versions table varints",
        "api_versions groups lines metadata readers selection table varints",
    ]
