"""The checksum of batches, CRC-32C.

The package ``crc32c`` reads its metadata and prepares a command line when it is imported. That
takes longer than all modules of ``protocol``, so its extension module is loaded without it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any

_PACKAGE = "crc32c"


def _function() -> Any:
    if _PACKAGE not in sys.modules:
        package = PathFinder.find_spec(_PACKAGE)
        folders = package.submodule_search_locations if package else None
        spec = PathFinder.find_spec(f"{_PACKAGE}._crc32c", folders) if folders else None
        if spec is not None and spec.loader is not None:
            extension = module_from_spec(spec)
            spec.loader.exec_module(extension)
            return extension.crc32c
    import crc32c  # loaded already, or not laid out as expected

    return crc32c.crc32c


crc32c: Callable[..., int] = _function()
"""``crc32c(data, start=0)``."""
