"""The APIs that have a codec: which versions each can be spoken in, and its module on first use.

The ApiVersions answer needs the versions of all APIs as soon as a broker listens. A cluster is
asked for few of them, so a codec is imported when the first request of its API comes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from ...protocol.api_versions import API_NAMES, VersionRange
from .api import Api

# fmt: off
_NEWEST = {
    0: 11, 1: 17, 2: 9, 3: 12, 8: 9, 9: 9, 10: 6, 11: 9, 12: 4, 13: 5, 14: 5, 15: 5, 16: 5, 17: 1,
    18: 4, 19: 7, 20: 6, 21: 2, 22: 5, 23: 4, 24: 5, 25: 4, 26: 4, 27: 1, 28: 4, 29: 3, 30: 3,
    31: 3, 32: 4, 33: 2, 34: 2, 35: 4, 36: 2, 37: 3, 38: 3, 39: 2, 40: 2, 41: 3, 42: 2, 43: 2,
    44: 1, 45: 0, 46: 0, 47: 0, 48: 1, 49: 1, 50: 0, 51: 0, 56: 3, 57: 1, 60: 1, 61: 0, 65: 0,
    66: 1, 67: 0, 68: 1, 69: 0,
}
# fmt: on

CODEC_RANGES: Mapping[int, VersionRange] = MappingProxyType(
    {key: VersionRange(0, newest) for key, newest in _NEWEST.items()}
)
"""API key -> versions that have a codec, in key order: the same as the modules say."""


class _Codecs(dict[int, Api]):
    """API key -> its codec; holds those that have been asked for."""

    __slots__ = ()

    def __missing__(self, key: int) -> Api:
        if key not in CODEC_RANGES:
            raise KeyError(key)
        api: Api = import_module(f".apis.{module_name(key)}", __package__).API
        self[key] = api
        return api


CODECS = _Codecs()


def module_name(key: int) -> str:
    """The module of ``wire.kafka.apis`` with this API's codec, such as ``api_03_metadata``."""
    words = re.sub(r"(?<=.)(?=[A-Z])", "_", API_NAMES[key]).lower()
    return f"api_{key:02d}_{words}"
