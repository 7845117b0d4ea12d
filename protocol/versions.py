"""The names of the emulated versions, and the flags of each (``releases.behaviour``)."""

from __future__ import annotations

from functools import cache

from .errors import UsageError, did_you_mean
from .releases.behaviour import Behaviour
from .releases.release import DEFAULT_KAFKA_VERSION, JUDGED_VERSIONS, KAFKA_VERSIONS, Release

__all__ = ["DEFAULT_KAFKA_VERSION", "JUDGED_VERSIONS", "KAFKA_VERSIONS", "Behaviour", "behaviour"]


def behaviour(kafka_version: str, **replaced: object) -> Behaviour:
    """Return the flags of an emulated version, some of them replaced for a "what if" experiment.

    The flags of a version are a shared object; with replaced flags, a new one is returned. Raises
    ``UsageError`` for a version that is not emulated and for a flag that does not exist.
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
