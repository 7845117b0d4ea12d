"""ACLs in ZooKeeper and the notifications of their changes: below ``/kafka-acl`` and, since 2.0,
``/kafka-acl-extended``.

Kafka: ``AclAuthorizer``, ``ZkAclStore``, ``AclApis``.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable

from ...protocol.errors import ErrorCode
from ...protocol.host import Host
from ...protocol.security.acls import (
    CLUSTER_NAME,
    Acl,
    AclEntry,
    AclFilter,
    AclOperation,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DeletedAcls,
    DescribeAclsRequest,
    DescribeAclsResponse,
    PatternType,
    Permission,
    Resource,
    ResourceType,
)
from ...protocol.versions import Behaviour
from ...protocol.znode_paths import (
    ACL,
    ACL_CHANGE_PREFIX,
    ACL_CHANGES,
    EXTENDED_ACL,
    EXTENDED_ACL_CHANGES,
)
from ...zkfake.messages import CreateRequest, DeleteRequest, SetDataRequest, ZkCode
from ..zookeeper.change_notifications import ChangeNotifications
from ..zookeeper.client import KafkaZkClient
from ..zookeeper.errors import Log
from ..zookeeper.requests import UNKNOWN_VERSION
from .authorizer import Authorizer

_PREFIXED = f"{EXTENDED_ACL}/prefixed"
_ATTEMPTS_MAX = 10
_NO_AUTHORIZER = "No Authorizer is configured."
_NO_AUTHORIZER_HERE = "No Authorizer is configured on the broker."
_UNKNOWN = "The filter contains UNKNOWN elements"


def _camel_case(name: str) -> str:
    """Return a name as ZooKeeper stores it: ``TRANSACTIONAL_ID`` as ``TransactionalId``."""
    return "".join(part.capitalize() for part in name.split("_"))


_TYPES = {_camel_case(kind.name): kind for kind in ResourceType if kind > ResourceType.ANY}
_OPERATIONS = {_camel_case(found.name): found for found in AclOperation if found > AclOperation.ANY}
_PERMISSIONS = {_camel_case(found.name): found for found in Permission if found > Permission.ANY}


def acl_path(resource: Resource) -> str:
    """Return the path of a resource's ACLs."""
    root = ACL if resource.pattern is PatternType.LITERAL else _PREFIXED
    return f"{root}/{_camel_case(resource.type.name)}/{resource.name}"


def encode_acls(entries: Iterable[AclEntry]) -> bytes:
    acls = [
        {
            "principal": entry.principal,
            "permissionType": _camel_case(entry.permission.name),
            "operation": _camel_case(entry.operation.name),
            "host": entry.host,
        }
        for entry in entries
    ]
    return json.dumps({"version": 1, "acls": acls}, separators=(",", ":")).encode()


def decode_acls(data: bytes | None) -> tuple[AclEntry, ...]:
    """Parse the content of an ACL node; raises ``ValueError`` if it is malformed."""
    if not data:
        return ()
    try:
        return tuple(
            AclEntry(
                acl["principal"],
                acl["host"],
                _OPERATIONS[acl["operation"]],
                _PERMISSIONS[acl["permissionType"]],
            )
            for acl in json.loads(data)["acls"]
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"malformed ACLs: {error!r}") from None


def encode_acl_change(resource: Resource) -> bytes:
    if resource.pattern is PatternType.LITERAL:
        return f"{_camel_case(resource.type.name)}:{resource.name}".encode()
    value = {
        "version": 1,
        "resourceType": resource.type.name,
        "name": resource.name,
        "patternType": resource.pattern.name,
    }
    return json.dumps(value, separators=(",", ":")).encode()


def decode_acl_change(data: bytes) -> Resource:
    """Return the resource whose ACLs changed; raises ``ValueError`` if the data is malformed."""
    if data.startswith(b"{"):
        try:
            value = json.loads(data)
            kind, pattern = value["resourceType"], value["patternType"]
            return Resource(ResourceType[kind], value["name"], PatternType[pattern])
        except (KeyError, TypeError) as error:
            raise ValueError(f"malformed ACL change: {error!r}") from None
    kind, _, name = data.decode().partition(":")
    if kind not in _TYPES:
        raise ValueError(f"malformed ACL change: {data!r}")
    return Resource(_TYPES[kind], name)


class AclStore:
    """Store of ACLs in ZooKeeper, which keeps an authorizer up to date."""

    def __init__(
        self,
        host: Host,
        zk: KafkaZkClient,
        behaviour: Behaviour,
        authorizer: Authorizer | None,
        log: Log,
    ) -> None:
        """Create a store; without an authorizer it refuses every request."""
        self._zk = zk
        self._behaviour = behaviour
        is_on_broker = behaviour.missing_authorizer_is_brokers
        self._no_authorizer = _NO_AUTHORIZER_HERE if is_on_broker else _NO_AUTHORIZER
        self._authorizer = authorizer
        roots = [ACL_CHANGES]
        if behaviour.prefixed_acls:
            roots.append(EXTENDED_ACL_CHANGES)
        self._followed = {
            root: ChangeNotifications(host, zk, root, self._apply_change, log) for root in roots
        }

    # -- following -----------------------------------------------------------------------------

    @property
    def followed(self) -> tuple[ChangeNotifications, ...]:
        """The followed notifications of changed ACLs; none without an authorizer."""
        return () if self._authorizer is None else tuple(self._followed.values())

    async def start(self) -> None:
        """Start to follow changes, then read all stored ACLs."""
        authorizer = self._authorizer
        if authorizer is None:
            return
        for root, followed in self._followed.items():
            await self._zk.requests.make_sure_persistent_path_exists(root)
            await followed.start()
        patterns = {PatternType.LITERAL: ACL}
        if self._behaviour.prefixed_acls:
            patterns[PatternType.PREFIXED] = _PREFIXED
        for pattern, root in patterns.items():
            for name, kind in _TYPES.items():
                path = f"{root}/{name}"
                await self._zk.requests.make_sure_persistent_path_exists(path)
                for child in await self._zk.requests.get_children(path, register_watch=False):
                    await self._read(Resource(kind, child, pattern))

    async def _apply_change(self, data: bytes) -> None:
        await self._read(decode_acl_change(data))

    async def _read(self, resource: Resource) -> None:
        data, _ = await self._zk.requests.get_data_and_version(acl_path(resource))
        if self._authorizer is not None:
            self._authorizer.set_acls(resource, decode_acls(data))

    # -- requests ------------------------------------------------------------------------------

    async def describe(self, request: DescribeAclsRequest) -> DescribeAclsResponse:
        if self._authorizer is None:
            text = "No Authorizer is configured on the broker"
            return DescribeAclsResponse(ErrorCode.SECURITY_DISABLED, text)
        if request.filter.is_unknown:
            return DescribeAclsResponse(ErrorCode.INVALID_REQUEST, _UNKNOWN)
        return DescribeAclsResponse(ErrorCode.NONE, None, self._authorizer.acls(request.filter))

    async def create(self, request: CreateAclsRequest) -> CreateAclsResponse:
        if self._authorizer is None:
            refused = (ErrorCode.SECURITY_DISABLED, self._no_authorizer)
            return CreateAclsResponse((refused,) * len(request.acls))
        refusals = [_refusal(acl) for acl in request.acls]
        added: dict[Resource, list[AclEntry]] = {}
        for acl, refusal in zip(request.acls, refusals, strict=True):
            if refusal is None:
                added.setdefault(acl.resource, []).append(acl.entry)
        for resource, entries in added.items():
            await self._update(resource, functools.partial(_added, entries))
        return CreateAclsResponse(
            tuple(
                (ErrorCode.NONE, None) if text is None else (ErrorCode.INVALID_REQUEST, text)
                for text in refusals
            )
        )

    async def delete(self, request: DeleteAclsRequest) -> DeleteAclsResponse:
        authorizer = self._authorizer
        if authorizer is None:
            refused = DeletedAcls(ErrorCode.SECURITY_DISABLED, self._no_authorizer)
            return DeleteAclsResponse((refused,) * len(request.filters))
        deleted: list[list[Acl]] = [[] for _ in request.filters]
        for resource in authorizer.resources():
            wanted = [
                (at, found)
                for at, found in enumerate(request.filters)
                if not found.is_unknown and found.matches_resource(resource)
            ]
            removed: dict[AclEntry, int] = {}
            for acl in authorizer.acls(_filter_for(resource)):
                at = next((at for at, found in wanted if found.matches_entry(acl.entry)), None)
                if at is not None:
                    removed[acl.entry] = at
                    deleted[at].append(acl)
            if removed:
                await self._update(resource, functools.partial(_removed, removed))
        return DeleteAclsResponse(
            tuple(
                DeletedAcls(ErrorCode.INVALID_REQUEST, _UNKNOWN)
                if wanted.is_unknown
                else DeletedAcls(ErrorCode.NONE, None, tuple(acls))
                for wanted, acls in zip(request.filters, deleted, strict=True)
            )
        )

    async def _update(
        self, resource: Resource, change: Callable[[tuple[AclEntry, ...]], list[AclEntry]]
    ) -> None:
        """Change a resource's ACLs, repeating on concurrent changes, and notify every broker."""
        path = acl_path(resource)
        for _ in range(_ATTEMPTS_MAX):
            data, version = await self._zk.requests.get_data_and_version(path)
            old = decode_acls(data)
            new = tuple(dict.fromkeys(change(old)))
            if new == old:
                return
            if await self._write(path, new, version):
                break
        else:
            raise ValueError(
                f"the ACLs of {resource} changed concurrently in all {_ATTEMPTS_MAX} attempts to "
                "write them"
            )
        await self._read(resource)
        is_literal = resource.pattern is PatternType.LITERAL
        changes = ACL_CHANGES if is_literal else EXTENDED_ACL_CHANGES
        await self._zk.requests.create_sequential(
            f"{changes}/{ACL_CHANGE_PREFIX}", encode_acl_change(resource)
        )

    async def _write(self, path: str, entries: tuple[AclEntry, ...], version: int) -> bool:
        """Write ACLs if the version matches; returns False if a concurrent change came first."""
        request: CreateRequest | DeleteRequest | SetDataRequest
        if not entries:
            request = DeleteRequest(path, version)
        elif version == UNKNOWN_VERSION:
            request = CreateRequest(path, encode_acls(entries))
        else:
            request = SetDataRequest(path, encode_acls(entries), version)
        answer = await self._zk.requests.send_one(request)
        if answer.code in (ZkCode.BADVERSION, ZkCode.NODEEXISTS, ZkCode.NONODE):
            return False
        answer.raise_if_failed()
        return True


def _added(new: list[AclEntry], old: tuple[AclEntry, ...]) -> list[AclEntry]:
    return [*old, *new]


def _removed(removed: dict[AclEntry, int], old: tuple[AclEntry, ...]) -> list[AclEntry]:
    return [entry for entry in old if entry not in removed]


def _filter_for(resource: Resource) -> AclFilter:
    return AclFilter(resource.type, resource.name, resource.pattern)


def _refusal(acl: Acl) -> str | None:
    """Return the reason why an ACL cannot be created, or None."""
    resource, entry = acl.resource, acl.entry
    if resource.type is ResourceType.CLUSTER and resource.name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not resource.name:
        return "Invalid empty resource name"
    is_concrete = (
        resource.type > ResourceType.ANY
        and resource.pattern in (PatternType.LITERAL, PatternType.PREFIXED)
        and entry.operation > AclOperation.ANY
        and entry.permission > Permission.ANY
    )
    return None if is_concrete else "Failed to create ACL"
