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
from ..api import Api
from ..primitives import Reader, Writer
from .api_29_describe_acls import number


def decode(reader: Reader, version: int) -> CreateAclsRequest:
    acls: list[Acl] = []
    for _ in range(reader.array()):
        resource_type, name = number(ResourceType, reader.int8()), reader.string()
        pattern = number(PatternType, reader.int8()) if version >= 1 else PatternType.LITERAL
        principal, host = reader.string(), reader.string()
        operation = number(AclOperation, reader.int8())
        permission = number(Permission, reader.int8())
        reader.tags()
        entry = AclEntry(principal, host, operation, permission)
        acls.append(Acl(Resource(resource_type, name, pattern), entry))
    reader.tags()
    return CreateAclsRequest(tuple(acls))


def encode(writer: Writer, version: int, response: CreateAclsResponse, request: object) -> None:
    writer.int32(writer.throttle_ms)
    writer.array(len(response.results))
    for error, message in response.results:
        writer.int16(error)
        writer.nullable_string(message)
        writer.tags()
    writer.tags()


API = Api(30, "CreateAcls", 0, 3, flexible_from=2, decode=decode, encode=encode)
