"""The APIs that have a codec, gathered from the modules of ``wire.kafka.apis``.

The ApiVersions answer, the documentation and the gap list are computed from ``APIS``; nothing is
kept by hand.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from ...protocol.api_versions import VersionRange
from ...protocol.errors import invariant
from .api import Api


def _gather() -> dict[int, Api]:
    package = import_module(".apis", __package__)
    apis: dict[int, Api] = {}
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda found: found.name):
        api: Api = import_module(f".apis.{module.name}", __package__).API
        invariant(
            module.name.startswith(f"api_{api.key:02d}_") and api.key not in apis,
            f"wire/apis/{module.name}.py defines API key {api.key}",
        )
        apis[api.key] = api
    return apis


def implemented_ranges() -> Mapping[int, VersionRange]:
    """API key -> versions that have a codec."""
    return {key: api.versions for key, api in APIS.items()}


APIS: Mapping[int, Api] = MappingProxyType(_gather())
"""API key -> its codec, in key order."""
