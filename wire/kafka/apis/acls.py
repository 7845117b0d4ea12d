"""Access control lists (KIP-140).

Version 1 adds types of patterns (KIP-290), 3 users as resources (KIP-373).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, TypeVar

from ....protocol.errors import ErrorCode
from ....protocol.security.acls import (
    Acl,
    AclEntry,
    AclFilter,
    AclOperation,
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    PatternType,
    Permission,
    Resource,
    ResourceType,
)
from ..api import Api, UnknownElement, reads, writes

_NumberT = TypeVar("_NumberT", bound=IntEnum)


def _number(kind: type[_NumberT], value: int) -> _NumberT:
    """Return the member with this number; UNKNOWN if there is none."""
    try:
        return kind(value)
    except ValueError:
        return kind(0)


def _filter(
    resource_type: int,
    name: str | None,
    pattern: int,
    principal: str | None,
    host: str | None,
    operation: int,
    permission: int,
) -> AclFilter:
    return AclFilter(
        _number(ResourceType, resource_type),
        name,
        _number(PatternType, pattern),
        principal,
        host,
        _number(AclOperation, operation),
        _number(Permission, permission),
    )


def _acl(
    resource_type: int,
    name: str,
    pattern: int,
    principal: str,
    host: str,
    operation: int,
    permission: int,
) -> Acl:
    found = _filter(resource_type, name, pattern, principal, host, operation, permission)
    return Acl(
        Resource(found.resource_type, name, found.pattern),
        AclEntry(principal, host, found.operation, found.permission),
    )


def _checked(request: Any, elements: tuple[tuple[Any, ...], ...]) -> Any:
    """Return the request; raise ``UnknownElement`` if one of its numbers is 0 (UNKNOWN).

    Other numbers without a meaning are accepted.
    """
    if any(0 in (kind, pattern, *numbers) for kind, _, pattern, _, _, *numbers in elements):
        raise UnknownElement(request)
    return request


def _describe(*fields: Any) -> DescribeAclsRequest:
    return _checked(DescribeAclsRequest(_filter(*fields)), (fields,))  # type: ignore[no-any-return]


def _create(creations: tuple[Any, ...]) -> CreateAclsRequest:
    request = CreateAclsRequest(tuple(_acl(*creation) for creation in creations))
    return _checked(request, creations)  # type: ignore[no-any-return]


def _delete(filters: tuple[Any, ...]) -> DeleteAclsRequest:
    request = DeleteAclsRequest(tuple(_filter(*fields) for fields in filters))
    return _checked(request, filters)  # type: ignore[no-any-return]


_FILTER = (
    "resourceTypeFilter resourceNameFilter patternTypeFilter principalFilter hostFilter operation "
    "permissionType"
)
_ENTRY = (
    "principal=entry.principal host=entry.host operation=entry.operation "
    "permissionType=entry.permission"
)


def _by_resource(acls: tuple[Acl, ...]) -> list[tuple[ResourceType, str, PatternType, list[Acl]]]:
    groups: dict[Resource, list[Acl]] = {}
    for acl in acls:
        groups.setdefault(acl.resource, []).append(acl)
    return [(one.type, one.name, one.pattern, found) for one, found in groups.items()]


DESCRIBE_ACLS = Api(
    29,
    reads(_describe, _FILTER),
    writes(
        "errorCode=error errorMessage "
        f"resources=acls[resourceType resourceName patternType acls({_ENTRY})]",
        resources=_by_resource,
    ),
)
"""List the ACLs that a filter matches."""

CREATE_ACLS = Api(
    30,
    reads(
        _create,
        "creations(resourceType resourceName resourcePatternType principal host operation "
        "permissionType)",
    ),
    writes("results[errorCode errorMessage]"),
)
"""Create ACLs, which allow or deny operations."""

DELETE_ACLS = Api(
    31,
    reads(_delete, f"filters({_FILTER})"),
    writes(
        "filterResults=results(errorCode=error errorMessage matchingAcls=acls[errorCode "
        "errorMessage resourceType resourceName patternType principal host operation "
        "permissionType])",
        matchingAcls=lambda acls: [
            (
                ErrorCode.NONE,
                None,
                acl.resource.type,
                acl.resource.name,
                acl.resource.pattern,
                acl.entry.principal,
                acl.entry.host,
                acl.entry.operation,
                acl.entry.permission,
            )
            for acl in acls
        ],
    ),
)
"""Delete the ACLs that filters match."""
