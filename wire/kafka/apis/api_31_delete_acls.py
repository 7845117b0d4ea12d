"""DeleteAcls (key 31): remove the ACLs that filters match (KIP-140).

Versions 0-3, as those of DescribeAcls.
"""

from __future__ import annotations

from ....protocol.errors import ErrorCode
from ....protocol.security.acls import AclFilter, DeleteAclsRequest, DeleteAclsResponse
from ..api import Api, UnknownElement
from ..primitives import Reader, Writer
from .api_29_describe_acls import read_filter, write_entry


def decode(reader: Reader, version: int) -> DeleteAclsRequest:
    filters: list[AclFilter] = []
    has_unknown = False
    for _ in range(reader.array()):
        wanted, is_unknown = read_filter(reader, version)
        filters.append(wanted)
        has_unknown |= is_unknown
    reader.tags()
    request = DeleteAclsRequest(tuple(filters))
    if has_unknown:
        raise UnknownElement(request)
    return request


def encode(writer: Writer, version: int, response: DeleteAclsResponse, request: object) -> None:
    writer.int32(writer.throttle_ms)
    writer.array(len(response.results))
    for result in response.results:
        writer.int16(result.error)
        writer.nullable_string(result.error_message)
        writer.array(len(result.acls))
        for acl in result.acls:
            writer.int16(ErrorCode.NONE)
            writer.nullable_string(None)
            writer.int8(acl.resource.type)
            writer.string(acl.resource.name)
            if version >= 1:
                writer.int8(acl.resource.pattern)
            write_entry(writer, acl)
            writer.tags()
        writer.tags()
    writer.tags()


API = Api(31, "DeleteAcls", 0, 3, flexible_from=2, decode=decode, encode=encode)
