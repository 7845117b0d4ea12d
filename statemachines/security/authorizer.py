"""The authorizer, which decides by ACLs as Kafka does.

Deny takes precedence over allow. An ACL applies to one resource, to all of a type, or to names with
a common prefix. Permission to read, write, delete or alter implies permission to describe. Kafka:
``AclAuthorizer``, before 2.4 ``SimpleAclAuthorizer``.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...protocol.config import BrokerConfig
from ...protocol.security.acls import (
    EVERYBODY,
    OPERATIONS,
    WILDCARD,
    Acl,
    AclEntry,
    AclFilter,
    AclOperation,
    PatternType,
    Permission,
    Resource,
    ResourceType,
)
from ...protocol.versions import Behaviour

_ALTERS = (AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER)


class Authorizer:
    """Authorizes operations by the ACLs that one broker knows."""

    def __init__(self, config: BrokerConfig, behaviour: Behaviour) -> None:
        self._super_users = frozenset(
            user.strip() for user in (config["super.users"] or "").split(";") if user.strip()
        )
        self._allows_by_default: bool = config["allow.everyone.if.no.acl.found"]
        describers = _ALTERS if behaviour.altering_implies_describing else _ALTERS[:3]
        self._implied_by: dict[AclOperation, frozenset[AclOperation]] = {
            AclOperation.DESCRIBE: frozenset((*describers, AclOperation.DESCRIBE)),
            AclOperation.DESCRIBE_CONFIGS: frozenset(
                (AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS)
            ),
        }
        # Replaced, never changed in place, as other threads read them on the threaded runtime.
        self._acls: dict[Resource, tuple[AclEntry, ...]] = {}
        self._prefixes: tuple[Resource, ...] = ()

    def set_acls(self, resource: Resource, entries: Iterable[AclEntry]) -> None:
        """Replace the ACLs of a resource."""
        acls = {known: old for known, old in self._acls.items() if known != resource}
        found = tuple(dict.fromkeys(entries))
        if found:
            acls[resource] = found
        self._acls = acls
        self._prefixes = tuple(r for r in acls if r.pattern is PatternType.PREFIXED)

    def acls(self, wanted: AclFilter) -> tuple[Acl, ...]:
        """Return the ACLs that a filter matches."""
        return tuple(
            Acl(resource, entry)
            for resource, entries in self._acls.items()
            if wanted.matches_resource(resource)
            for entry in entries
            if wanted.matches_entry(entry)
        )

    def resources(self) -> tuple[Resource, ...]:
        """Return the resources with ACLs."""
        return tuple(self._acls)

    def is_allowed(
        self, principal: str, host: str, operation: AclOperation, kind: ResourceType, name: str
    ) -> bool:
        """Return whether the principal may perform the operation on a resource."""
        if principal in self._super_users:
            return True
        entries = self._matching(kind, name)
        if not entries:
            return self._allows_by_default
        wanted = {operation}
        if self._applies(entries, principal, host, wanted, Permission.DENY):
            return False
        allowing = self._implied_by.get(operation, wanted)
        return self._applies(entries, principal, host, allowing, Permission.ALLOW)

    def _matching(self, kind: ResourceType, name: str) -> list[AclEntry]:
        acls = self._acls
        entries = [
            *acls.get(Resource(kind, name), ()),
            *(() if name == WILDCARD else acls.get(Resource(kind, WILDCARD), ())),
        ]
        for resource in self._prefixes:
            if resource.type is kind and name.startswith(resource.name):
                entries += acls.get(resource, ())
        return entries

    @staticmethod
    def _applies(
        entries: Iterable[AclEntry],
        principal: str,
        host: str,
        operations: Iterable[AclOperation],
        permission: Permission,
    ) -> bool:
        return any(
            entry.permission is permission
            and entry.principal in (principal, EVERYBODY)
            and (entry.operation in operations or entry.operation is AclOperation.ALL)
            and entry.host in (host, WILDCARD)
            for entry in entries
        )

    def is_allowed_for_any(
        self, principal: str, host: str, operation: AclOperation, kind: ResourceType
    ) -> bool:
        """Return whether the principal may perform the operation on any resource of the type
        (KIP-679)."""
        if principal in self._super_users:
            return True
        resources = [resource for resource in self._acls if resource.type is kind]
        of_all = self._acls.get(Resource(kind, WILDCARD), ())
        if self._applies(of_all, principal, host, {operation}, Permission.DENY):
            return False
        if self._allows_by_default:
            return True
        for resource in resources:
            entries = list(self._acls[resource])
            if self._applies(entries, principal, host, {operation}, Permission.ALLOW):
                denied = [
                    entry
                    for other in resources
                    if other == resource or _covers(other, resource)
                    for entry in self._acls[other]
                ]
                if not self._applies(denied, principal, host, {operation}, Permission.DENY):
                    return True
        return False

    def operations(self, principal: str, host: str, kind: ResourceType, name: str) -> int:
        """Return the bit set of operations that the principal may do on a resource (KIP-430)."""
        return sum(
            1 << operation
            for operation in OPERATIONS[kind]
            if self.is_allowed(principal, host, operation, kind, name)
        )


def _covers(prefix: Resource, resource: Resource) -> bool:
    """Return whether a prefix pattern covers all resources that the other pattern matches."""
    return prefix.pattern is PatternType.PREFIXED and resource.name.startswith(prefix.name)
