"""The APIs that can be served, with their versions and the modules that define them.

The ApiVersions response needs the versions of all APIs as soon as a broker listens. A cluster
usually serves few APIs, so a module is imported on the first request of one of its APIs.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from ...protocol.api_versions import VersionRange
from .api import Api
from .messages.table import version_range

_MODULES: Mapping[str, tuple[int, ...]] = {
    "produce": (0,),
    "fetch": (1,),
    "offsets": (2, 21, 23),
    "metadata": (3, 60),
    "committed_offsets": (8, 9, 28, 47),
    "groups": (10, 11, 12, 13, 14, 15, 16, 42),
    "consumer_groups": (68, 69),
    "transactions": (22, 24, 25, 26, 27, 61, 65, 66, 67),
    "api_versions": (18,),
    "topics": (19, 20, 37, 43, 45, 46),
    "configurations": (32, 33, 44, 57),
    "log_dirs": (34, 35),
    "alter_partition": (56,),
    "acls": (29, 30, 31),
    "authentication": (17, 36, 50, 51),
    "delegation_tokens": (38, 39, 40, 41),
    "quotas": (48, 49),
}
"""Modules of ``wire.kafka.apis`` with the keys of their APIs."""
_MODULE_OF = {key: name for name, keys in _MODULES.items() for key in keys}

CODEC_RANGES: Mapping[int, VersionRange] = MappingProxyType(
    {key: version_range(key) for key in sorted(_MODULE_OF)}
)
"""API key -> versions that can be served, in key order: all versions in Kafka's field table."""


class _Codecs(dict[int, Api]):
    """API key -> its ``Api``, which is imported when it is first looked up."""

    def __missing__(self, key: int) -> Api:
        module = import_module(f".apis.{_MODULE_OF[key]}", __package__)
        for api in vars(module).values():
            if isinstance(api, Api):
                self[api.key] = api
        return self[key]


CODECS = _Codecs()
