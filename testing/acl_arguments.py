"""Arguments about ACLs, read into values."""

from __future__ import annotations

from typing import Any

from ..protocol.errors import UsageError, did_you_mean
from ..protocol.security.acls import (
    CLUSTER_NAME,
    AclOperation,
    PatternType,
    Resource,
    ResourceType,
)
from . import arguments

_KINDS = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
}


def acl_resource(given: dict[str, Any]) -> Resource:
    """The resource that arguments name; these arguments are removed from ``given``."""
    named = [name for name in _KINDS if name in given]
    if len(named) > 1:
        raise UsageError(f"an ACL is about one resource, not {' and '.join(named)}")
    pattern = PatternType.PREFIXED if given.pop("prefix", False) else PatternType.LITERAL
    if not named:
        return Resource(ResourceType.CLUSTER, CLUSTER_NAME, pattern)
    return Resource(_KINDS[named[0]], arguments.text(named[0], given.pop(named[0])), pattern)


def acl_operation(name: str) -> AclOperation:
    try:
        return AclOperation[arguments.text("operation", name).upper()]
    except KeyError:
        hint = did_you_mean(name.upper(), [found.name for found in AclOperation])
        raise UsageError(f"there is no operation {name!r}{hint}") from None
