"""Codecs are imported when their API is first asked for; the table says what they can do."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest
from fakekafka.protocol.api_versions import API_NAMES
from fakekafka.wire.kafka import apis
from fakekafka.wire.kafka.registry import CODEC_RANGES, CODECS, module_name

_LOADED = """
import sys
from fakekafka.wire.kafka.codec import Codec
from fakekafka.wire.kafka.registry import CODECS
ranges = Codec("3.9").ranges
CODECS[42]
CODECS[42]
names = sorted(name for name in sys.modules if name.startswith("fakekafka.wire.kafka.apis.api"))
print(len(ranges), *(name.rpartition(".")[2] for name in names))
"""


@pytest.mark.parametrize("key", CODEC_RANGES)
def test_the_table_says_what_the_codec_of_an_api_can_do(key: int) -> None:
    api = import_module(f"fakekafka.wire.kafka.apis.{module_name(key)}").API
    assert (api.key, api.name, api.versions) == (key, API_NAMES[key], CODEC_RANGES[key])
    assert CODECS[key] is api


def test_every_codec_stands_in_the_table() -> None:
    """In key order, since ApiVersions answers in this order."""
    files = [module.name for module in pkgutil.iter_modules(apis.__path__)]
    assert sorted(files) == [module_name(key) for key in CODEC_RANGES]
    assert list(CODEC_RANGES) == sorted(CODEC_RANGES)


def test_an_api_without_a_codec_is_a_key_error() -> None:
    """Such as LeaderAndIsr, which brokers advertise and refuse."""
    with pytest.raises(KeyError, match="4"):
        CODECS[4]


def test_a_broker_loads_the_codecs_that_it_is_asked_for() -> None:
    """It tells the versions of all APIs, and needs the codec of ApiVersions to do so."""
    command = [sys.executable, "-c", _LOADED]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)
    assert done.stdout.split() == ["62", "api_18_api_versions", "api_42_delete_groups"]
