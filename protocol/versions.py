"""The emulated versions by name, and the flags of each (``releases.behaviour``)."""

from __future__ import annotations

from functools import cache

from .errors import UsageError, did_you_mean
from .releases.behaviour import Behaviour
from .releases.release import DEFAULT_KAFKA_VERSION, JUDGED_VERSIONS, KAFKA_VERSIONS, Release

__all__ = ["DEFAULT_KAFKA_VERSION", "JUDGED_VERSIONS", "KAFKA_VERSIONS", "Behaviour", "behaviour"]


def behaviour(kafka_version: str, **replaced: object) -> Behaviour:
    """Return the flags of an emulated version, with some replaced for a "what if".

    All who ask for the same version share one object; flags that are replaced are one of their own.
    Raises ``UsageError`` for a version that is not emulated and a flag that does not exist.
    """
    if not replaced:
        return _behaviour(kafka_version)
    flags = Behaviour(Release(kafka_version))
    for name, value in replaced.items():
        if name not in Behaviour.__slots__:
            hint = did_you_mean(name, Behaviour.__slots__)
            raise UsageError(f"there is no flag {name!r}{hint}")
        setattr(flags, name, value)
    return flags


@cache
def _behaviour(kafka_version: str) -> Behaviour:
    return Behaviour(Release(kafka_version))
