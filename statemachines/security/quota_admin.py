"""The APIs to describe and alter quotas (KIP-546). Kafka: ``ZkAdminManager``."""

from __future__ import annotations

from collections.abc import Mapping

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.security.quotas import (
    CLIENT_ID,
    CLIENT_QUOTAS,
    DEFAULT,
    EXACT,
    IP,
    IP_QUOTAS,
    USER,
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    Entity,
    QuotaAlteration,
    QuotaFilterComponent,
)
from ...protocol.znode_paths import CLIENTS, IPS, USERS
from ..zookeeper.client import KafkaZkClient
from .entities import change_entity_config, desanitize, sanitize

_EPSILON = 1e-6


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)


class QuotaAdmin:
    """Describes and alters the quotas in ZooKeeper, on any broker."""

    def __init__(self, zk: KafkaZkClient) -> None:
        self._zk = zk

    # -- describing ----------------------------------------------------------------------------

    async def describe(self, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
        try:
            components = _components(request.components)
        except KafkaError as error:
            return DescribeClientQuotasResponse(error.code, error.message)
        stored = await self._stored()
        entries = []
        for entity, values in stored:
            named = dict(entity)
            if not _matches(named, components, request.is_strict):
                continue
            known = IP_QUOTAS if IP in named else CLIENT_QUOTAS
            found = tuple((name, float(values[name])) for name in known if name in values)
            if found:
                entries.append((entity, found))
        return DescribeClientQuotasResponse(ErrorCode.NONE, None, tuple(entries))

    async def _stored(self) -> list[tuple[Entity, Mapping[str, str]]]:
        """Return every entity that has a configuration, with its values."""
        found: list[tuple[Entity, Mapping[str, str]]] = []
        read = self._zk.admin.get_all_entity_configs
        for user, values in (await read(USERS)).items():
            found.append((((USER, desanitize(user)),), values))
            for client, own in (await read(f"{USERS}/{user}/{CLIENTS}")).items():
                both = ((USER, desanitize(user)), (CLIENT_ID, desanitize(client)))
                found.append((both, own))
        for client, values in (await read(CLIENTS)).items():
            found.append((((CLIENT_ID, desanitize(client)),), values))
        for ip, values in (await read(IPS)).items():
            found.append((((IP, desanitize(ip)),), values))
        return found

    # -- altering ------------------------------------------------------------------------------

    async def alter(self, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
        results: list[tuple[Entity, ErrorCode, str | None]] = []
        for alteration in request.alterations:
            try:
                await self._alter_one(alteration, request.validate_only)
                results.append((alteration.entity, ErrorCode.NONE, None))
            except KafkaError as error:
                results.append((alteration.entity, error.code, error.message))
        return AlterClientQuotasResponse(tuple(results))

    async def _alter_one(self, alteration: QuotaAlteration, validate_only: bool) -> None:
        entity_type, path = _config_path(alteration.entity)
        known = IP_QUOTAS if entity_type == IPS else CLIENT_QUOTAS
        values = await self._zk.admin.get_entity_configs(entity_type, path)
        for name, value in alteration.changes:
            if value is None:
                values.pop(name, None)
            elif name not in known:
                raise _invalid(f"Invalid configuration key {name}")
            elif known[name] is int:
                whole = int(value + _EPSILON)
                if abs(whole - value) > _EPSILON:
                    raise _invalid(f"Configuration {name} must be a LONG value")
                values[name] = str(whole)
            else:
                values[name] = repr(float(value))
        if not validate_only:
            await change_entity_config(self._zk, entity_type, path, values)


def _components(components: tuple[QuotaFilterComponent, ...]) -> dict[str, QuotaFilterComponent]:
    """Check a filter's components and return them by entity type; raises ``KafkaError``."""
    found: dict[str, QuotaFilterComponent] = {}
    for component in components:
        kind = component.entity_type
        if not kind:
            raise _invalid("Unexpected empty filter component entity type")
        if kind not in (USER, CLIENT_ID, IP):
            text = f"Custom entity type '{kind}' not supported"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, text)
        if kind in found:
            name = "client" if kind == CLIENT_ID else kind
            raise _invalid(f"Duplicate {name} filter component entity type")
        found[kind] = component
    if IP in found and len(found) > 1:
        raise _invalid(
            "Invalid entity filter component combination, IP filter component should not be used "
            "with user or clientId filter component."
        )
    return found


def _matches(
    entity: Mapping[str, str | None],
    components: Mapping[str, QuotaFilterComponent],
    is_strict: bool,
) -> bool:
    for kind, component in components.items():
        if kind not in entity:
            return False
        if component.match_type == EXACT and entity[kind] != component.match:
            return False
        if component.match_type == DEFAULT and entity[kind] is not None:
            return False
    return not is_strict or set(entity) == set(components)


def _config_path(entity: Entity) -> tuple[str, str]:
    """Return the type and the path of an entity's configuration; raises ``KafkaError``."""
    if not entity:
        raise _invalid("Invalid empty client quota entity")
    named = dict(entity)
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
    if IP in named:
        if len(named) > 1:
            raise _invalid(
                "Invalid quota entity combination, IP entity should not be used with "
                "user/client ID entity."
            )
        return IPS, sanitize(named[IP])
    if USER not in named:
        return CLIENTS, sanitize(named[CLIENT_ID])
    path = sanitize(named[USER])
    if CLIENT_ID in named:
        path += f"/{CLIENTS}/{sanitize(named[CLIENT_ID])}"
    return USERS, path
