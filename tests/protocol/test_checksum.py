"""The checksum of batches is the one that Kafka uses, and is cheap to import."""

from __future__ import annotations

import subprocess
import sys

import pytest
from fakekafka.protocol.records.checksum import crc32c

_CHECKED = "print(hex(crc32c(b'123456789')), hex(crc32c(b'6789', crc32c(b'12345'))))"
_OURS = f"from fakekafka.protocol.records.checksum import crc32c\n{_CHECKED}\nimport sys\n"


def test_the_checksum_uses_castagnolis_polynomial() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(memoryview(b"6789"), crc32c(b"12345")) == 0xE3069283


@pytest.mark.parametrize("before", ["", "import crc32c\n"])
def test_the_checksum_package_can_be_imported_by_others_too(before: str) -> None:
    code = before + _OURS + "import crc32c as p\nassert p.crc32c(b'123456789') == 0xE3069283"
    assert _printed(code) == "0xe3069283 0xe3069283"


def test_neither_metadata_nor_a_command_line_is_loaded() -> None:
    """``argparse`` and ``email`` take longer to import than all modules of ``protocol``."""
    told = _printed(_OURS + "print('argparse' in sys.modules, 'email' in sys.modules)")
    assert told.split()[2:] == ["False", "False"]


def test_a_package_laid_out_otherwise_is_imported_whole() -> None:
    code = (
        "from importlib.machinery import PathFinder\n"
        "found = PathFinder.find_spec\n"
        "def find_spec(name, path=None, target=None):\n"
        "    hidden = name == 'crc32c._crc32c' and 'crc32c' not in __import__('sys').modules\n"
        "    return None if hidden else found(name, path, target)\n"
        "PathFinder.find_spec = find_spec\n"
    )
    told = _printed(code + _OURS + "print('crc32c' in sys.modules)")
    assert told.split() == ["0xe3069283", "0xe3069283", "True"]


def _printed(code: str) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)
    return done.stdout.strip()
