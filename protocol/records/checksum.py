"""CRC-32C, the checksum of batches.

On import, the package ``crc32c`` reads its metadata and prepares a command line. That takes longer
than importing all modules of ``protocol``, so only its extension module is loaded.
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
    import crc32c  # already imported, or its files are not laid out as expected

    return crc32c.crc32c


crc32c: Callable[..., int] = _function()
"""The checksum function, ``crc32c(data, start=0)``."""
