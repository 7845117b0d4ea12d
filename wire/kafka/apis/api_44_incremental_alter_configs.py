"""IncrementalAlterConfigs (key 44): set, delete, append to or subtract from overrides (KIP-339).

Versions 0-1. 1: flexible.
"""

from __future__ import annotations

from ....protocol.admin import AlterConfigsRequest
from ..api import Api
from ..primitives import Reader
from .api_33_alter_configs import decode_resources, encode


def decode(reader: Reader, version: int) -> AlterConfigsRequest:
    return decode_resources(reader, incremental=True)


API = Api(44, "IncrementalAlterConfigs", 0, 1, flexible_from=1, decode=decode, encode=encode)
