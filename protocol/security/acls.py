"""Access control lists, which allow or deny operations on resources to principals, and the messages
about them (KIP-140, KIP-290).
"""

from __future__ import annotations

from enum import IntEnum

from ..errors import ErrorCode
from ..values import Request, message

CLUSTER_NAME = "kafka-cluster"
WILDCARD = "*"
EVERYBODY = "User:*"


class ResourceType(IntEnum):
    """Types of resources, by Kafka's names."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """Ways in which the name in an ACL matches resources."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    """In filters only: any pattern that matches the name."""
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """Operations on resources, by Kafka's names."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14


class Permission(IntEnum):
    """The effect of an ACL: to allow or to deny."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


_TOPIC_OPERATIONS = (3, 4, 5, 6, 7, 8, 10, 11)
OPERATIONS: dict[ResourceType, tuple[AclOperation, ...]] = {
    ResourceType.TOPIC: tuple(map(AclOperation, _TOPIC_OPERATIONS)),
    ResourceType.GROUP: (AclOperation.READ, AclOperation.DELETE, AclOperation.DESCRIBE),
    ResourceType.CLUSTER: tuple(map(AclOperation, (5, 7, 8, 9, 10, 11, 12))),
    ResourceType.TRANSACTIONAL_ID: (AclOperation.WRITE, AclOperation.DESCRIBE),
    ResourceType.DELEGATION_TOKEN: (AclOperation.DESCRIBE,),
    ResourceType.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}
"""The operations that exist for each type of resource."""


@message
class Resource:
    """A resource pattern, which matches one name, all resources of a type (``*``), or a prefix."""

    type: ResourceType
    name: str
    pattern: PatternType = PatternType.LITERAL


@message
class AclEntry:
    principal: str
    host: str
    operation: AclOperation
    permission: Permission


@message
class Acl:
    resource: Resource
    entry: AclEntry


@message
class AclFilter:
    """A filter of ACLs. None and ``ANY`` match all values of a field; for ``MATCH`` see
    ``PatternType``."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: Permission = Permission.ANY

    def matches_resource(self, resource: Resource) -> bool:
        if self.resource_type not in (ResourceType.ANY, resource.type):
            return False
        if self.pattern not in (PatternType.ANY, PatternType.MATCH, resource.pattern):
            return False
        name = self.resource_name
        if name is None:
            return True
        if self.pattern is not PatternType.MATCH:
            return name == resource.name
        if resource.pattern is PatternType.LITERAL:
            return resource.name in (name, WILDCARD)
        return name.startswith(resource.name)

    def matches_entry(self, entry: AclEntry) -> bool:
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (AclOperation.ANY, entry.operation)
            and self.permission in (Permission.ANY, entry.permission)
        )

    @property
    def is_unknown(self) -> bool:
        """True if a field has a value that this release does not know."""
        return 0 in (self.resource_type, self.pattern, self.operation, self.permission)


@message
class DescribeAclsRequest(Request["DescribeAclsResponse"]):
    filter: AclFilter


@message
class DescribeAclsResponse:
    error: ErrorCode
    error_message: str | None = None
    acls: tuple[Acl, ...] = ()


@message
class CreateAclsRequest(Request["CreateAclsResponse"]):
    acls: tuple[Acl, ...]


@message
class CreateAclsResponse:
    results: tuple[tuple[ErrorCode, str | None], ...]


@message
class DeleteAclsRequest(Request["DeleteAclsResponse"]):
    filters: tuple[AclFilter, ...]


@message
class DeletedAcls:
    error: ErrorCode
    error_message: str | None = None
    acls: tuple[Acl, ...] = ()


@message
class DeleteAclsResponse:
    results: tuple[DeletedAcls, ...]
