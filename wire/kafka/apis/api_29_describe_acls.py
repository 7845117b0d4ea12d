"""DescribeAcls (key 29): the ACLs that a filter matches (KIP-140).

Versions 0-3. 1: types of patterns (KIP-290). 2: flexible. 3: users as resources (KIP-373).
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeVar

from ....protocol.security.acls import (
    Acl,
    AclFilter,
    AclOperation,
    DescribeAclsRequest,
    DescribeAclsResponse,
    PatternType,
    Permission,
    Resource,
    ResourceType,
)
from ..api import Api, UnknownElement
from ..primitives import Reader, Writer

_NumberT = TypeVar("_NumberT", bound=IntEnum)


def number(kind: type[_NumberT], value: int) -> _NumberT:
    """The value that a number stands for; what is not known is UNKNOWN."""
    try:
        return kind(value)
    except ValueError:
        return kind(0)


def read_filter(reader: Reader, version: int) -> tuple[AclFilter, bool]:
    """A filter, and whether one of its numbers is 0; others that are not known are none."""
    kind, name = reader.int8(), reader.nullable_string()
    pattern = reader.int8() if version >= 1 else int(PatternType.LITERAL)
    principal, host = reader.nullable_string(), reader.nullable_string()
    operation, permission = reader.int8(), reader.int8()
    reader.tags()
    found = AclFilter(
        number(ResourceType, kind),
        name,
        number(PatternType, pattern),
        principal,
        host,
        number(AclOperation, operation),
        number(Permission, permission),
    )
    return found, 0 in (kind, pattern, operation, permission)


def decode(reader: Reader, version: int) -> DescribeAclsRequest:
    wanted, has_unknown = read_filter(reader, version)
    request = DescribeAclsRequest(wanted)
    if has_unknown:
        raise UnknownElement(request)
    return request


def encode(writer: Writer, version: int, response: DescribeAclsResponse, request: object) -> None:
    writer.int32(writer.throttle_ms)
    writer.int16(response.error)
    writer.nullable_string(response.error_message)
    by_resource: dict[Resource, list[Acl]] = {}
    for acl in response.acls:
        by_resource.setdefault(acl.resource, []).append(acl)
    writer.array(len(by_resource))
    for resource, acls in by_resource.items():
        writer.int8(resource.type)
        writer.string(resource.name)
        if version >= 1:
            writer.int8(resource.pattern)
        writer.array(len(acls))
        for acl in acls:
            write_entry(writer, acl)
            writer.tags()
        writer.tags()
    writer.tags()


def write_entry(writer: Writer, acl: Acl) -> None:
    writer.string(acl.entry.principal)
    writer.string(acl.entry.host)
    writer.int8(acl.entry.operation)
    writer.int8(acl.entry.permission)


API = Api(29, "DescribeAcls", 0, 3, flexible_from=2, decode=decode, encode=encode)
