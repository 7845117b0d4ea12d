"""CreateAcls (key 30): allow or deny (KIP-140).

Versions 0-3, as those of DescribeAcls.
"""

from __future__ import annotations

from ....protocol.security.acls import (
    Acl,
    AclEntry,
    AclOperation,
    CreateAclsRequest,
    CreateAclsResponse,
    PatternType,
    Permission,
    Resource,
    ResourceType,
)
from ..api import Api, UnknownElement
from ..primitives import Reader, Writer
from .api_29_describe_acls import number


def decode(reader: Reader, version: int) -> CreateAclsRequest:
    acls: list[Acl] = []
    has_unknown = False
    for _ in range(reader.array()):
        kind, name = reader.int8(), reader.string()
        pattern = reader.int8() if version >= 1 else int(PatternType.LITERAL)
        principal, host = reader.string(), reader.string()
        operation, permission = reader.int8(), reader.int8()
        reader.tags()
        entry = AclEntry(
            principal, host, number(AclOperation, operation), number(Permission, permission)
        )
        resource = Resource(number(ResourceType, kind), name, number(PatternType, pattern))
        acls.append(Acl(resource, entry))
        has_unknown |= 0 in (kind, pattern, operation, permission)
    reader.tags()
    request = CreateAclsRequest(tuple(acls))
    if has_unknown:
        raise UnknownElement(request)
    return request


def encode(writer: Writer, version: int, response: CreateAclsResponse, request: object) -> None:
    writer.int32(writer.throttle_ms)
    writer.array(len(response.results))
    for error, message in response.results:
        writer.int16(error)
        writer.nullable_string(message)
        writer.tags()
    writer.tags()


API = Api(30, "CreateAcls", 0, 3, flexible_from=2, decode=decode, encode=encode)
