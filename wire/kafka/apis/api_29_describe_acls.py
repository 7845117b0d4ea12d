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
from ..api import Api
from ..primitives import Reader, Writer

_NumberT = TypeVar("_NumberT", bound=IntEnum)


def number(kind: type[_NumberT], value: int) -> _NumberT:
    """The value that a number stands for; what is not known is UNKNOWN."""
    try:
        return kind(value)
    except ValueError:
        return kind(0)


def read_filter(reader: Reader, version: int) -> AclFilter:
    resource_type = number(ResourceType, reader.int8())
    name = reader.nullable_string()
    pattern = PatternType.LITERAL
    if version >= 1:
        pattern = number(PatternType, reader.int8())
    principal, host = reader.nullable_string(), reader.nullable_string()
    operation = number(AclOperation, reader.int8())
    permission = number(Permission, reader.int8())
    reader.tags()
    return AclFilter(resource_type, name, pattern, principal, host, operation, permission)


def decode(reader: Reader, version: int) -> DescribeAclsRequest:
    return DescribeAclsRequest(read_filter(reader, version))


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
