"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs (data_plane 15.7).

Source: Kafka's ``ConfigHelper`` and ``ZkAdminManager``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..protocol import znodes
from ..protocol.admin import (
    APPEND,
    BROKER_RESOURCE,
    DELETE,
    SET,
    SUBTRACT,
    TOPIC_RESOURCE,
    AlterConfigsRequest,
    AlterConfigsResponse,
    ConfigEntry,
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from ..protocol.config import DEFINITIONS
from ..protocol.errors import ErrorCode, KafkaError
from .config_entries import ConfigValues
from .topic_names import validate_topic_name

if TYPE_CHECKING:
    from .admin_manager import AdminManager

_Entries = Sequence[tuple[str, int, "str | None"]]


class ConfigAdmin:
    """Configurations of topics and brokers; any broker may be asked."""

    def __init__(self, admin: AdminManager) -> None:
        self._admin = admin

    # --- describing

    async def values(self) -> ConfigValues:
        """Where this broker's values come from, as stored now."""
        zk, broker_id = self._admin.zk, self._admin.controller.broker_id
        return ConfigValues(
            self._admin.config,
            await zk.get_entity_configs(znodes.BROKERS, str(broker_id)),
            await zk.get_entity_configs(znodes.BROKERS, znodes.DEFAULT_ENTITY),
        )

    async def describe_configs(self, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        """Values in force, per resource."""
        values = await self.values()
        results: list[DescribeConfigsResult] = []
        for resource, names in request.resources:
            try:
                entries = await self._describe(resource, names, request, values)
                results.append(DescribeConfigsResult(resource, ErrorCode.NONE, None, entries))
            except KafkaError as error:
                results.append(DescribeConfigsResult(resource, error.code, error.message, ()))
        return DescribeConfigsResponse(tuple(results))

    async def _describe(
        self,
        resource: ConfigResource,
        names: Sequence[str] | None,
        request: DescribeConfigsRequest,
        values: ConfigValues,
    ) -> tuple[ConfigEntry, ...]:
        chosen = frozenset(names or ())
        options = (request.include_synonyms, request.include_documentation)
        if resource.type == TOPIC_RESOURCE:
            self._check_topic(resource.name)
            overrides = await self._admin.zk.get_entity_configs(znodes.TOPICS, resource.name)
            return values.topic_entries(overrides, chosen, *options)
        entity = self._broker_entity(resource)
        if entity == znodes.DEFAULT_ENTITY:
            return values.default_entries(chosen, *options)
        return values.broker_entries(chosen, *options)

    def _check_topic(self, name: str) -> None:
        validate_topic_name(name, self._admin.behaviour)
        if not self._admin.metadata.contains_topic(name):
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
            )

    def _broker_entity(self, resource: ConfigResource) -> str:
        """Name of a broker's config node; raises ``KafkaError`` for another broker's."""
        if resource.type != BROKER_RESOURCE:
            raise _invalid(f"Unsupported resource type: {resource.type}")
        if not resource.name:
            return znodes.DEFAULT_ENTITY
        own_id = self._admin.controller.broker_id
        if not resource.name.lstrip("-").isdecimal():
            raise _invalid(f"Broker id must be an integer, but it is: {resource.name}")
        if int(resource.name) != own_id:
            raise _invalid(
                f"Unexpected broker id, expected {own_id} or empty string, but received "
                f"{resource.name}"
            )
        return str(own_id)

    # --- altering

    async def alter_configs(self, request: AlterConfigsRequest) -> AlterConfigsResponse:
        """Replace or change overrides, per resource; brokers learn by notification."""
        resources = [resource for resource, _ in request.resources]
        results: list[tuple[ConfigResource, ErrorCode, str | None]] = []
        for resource, entries in request.resources:
            try:
                if resources.count(resource) > 1:
                    raise _invalid("Error due to duplicate config resources")
                await self._alter(resource, entries, request.incremental, request.validate_only)
                results.append((resource, ErrorCode.NONE, None))
            except KafkaError as error:
                results.append((resource, error.code, error.message))
        return AlterConfigsResponse(tuple(results))

    async def _alter(
        self, resource: ConfigResource, entries: _Entries, incremental: bool, validate_only: bool
    ) -> None:
        names = [name for name, _, _ in entries]
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if twice:
            raise _invalid(f"Error due to duplicate config keys : {','.join(twice)}")
        null = [
            n for n, op, value in entries if value is None and not (incremental and op == DELETE)
        ]
        if null:
            raise _invalid(f"Null value not supported for : {','.join(null)}")
        is_topic = resource.type == TOPIC_RESOURCE
        if is_topic:
            self._check_topic(resource.name)
            entity_type, entity = znodes.TOPICS, resource.name
        else:
            entity_type, entity = znodes.BROKERS, self._broker_entity(resource)
        changed: dict[str, str] = {}
        if incremental:
            stored = await self._admin.zk.get_entity_configs(entity_type, entity)
            changed = self._apply(stored, entries, is_topic)
        else:
            changed = {name: value for name, _, value in entries if value is not None}
        _validate(changed, is_topic)
        if validate_only:
            return
        await self._admin.zk.set_or_create_entity_configs(entity_type, entity, changed)
        await self._admin.zk.create_config_change_notification(f"{entity_type}/{entity}")

    def _apply(
        self, stored: Mapping[str, str], entries: _Entries, is_topic: bool
    ) -> dict[str, str]:
        """Overrides after incremental operations; raises ``KafkaError``."""
        changed = dict(stored)
        for name, operation, value in entries:
            if operation == SET:
                changed[name] = value or ""
            elif operation == DELETE:
                changed.pop(name, None)
            elif operation in (APPEND, SUBTRACT):
                changed[name] = self._edit_list(changed, name, operation, value or "", is_topic)
            else:
                raise _invalid(f"Unknown operation {operation} for config {name}")
        return changed

    def _edit_list(
        self, stored: Mapping[str, str], name: str, operation: int, value: str, is_topic: bool
    ) -> str:
        definition = DEFINITIONS.get(name)
        if definition is None or (is_topic and not definition.topic):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown config name: {name}")
        if definition.type != "list":
            verb = "APPEND" if operation == APPEND else "SUBTRACT"
            raise _invalid(f"Config value {verb} is not allowed for config key: {name}")
        current = stored.get(name)
        if current is None:
            default = definition.parse(definition.default_for(self._admin.config.kafka_version))
            current = ",".join(default)
        items = [item for item in current.split(",") if item]
        edited = [item for item in value.split(",") if item]
        if operation == APPEND:
            return ",".join(items + [item for item in edited if item not in items])
        return ",".join(item for item in items if item not in edited)


def _validate(config: Mapping[str, str], is_topic: bool) -> None:
    """Raises ``KafkaError``: INVALID_CONFIG for unknown names, INVALID_REQUEST for bad values."""
    fixed: list[str] = []
    for name, value in config.items():
        definition = DEFINITIONS.get(name)
        if definition is None or not (definition.topic if is_topic else definition.broker):
            kind = "topic" if is_topic else "broker"
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown {kind} config name: {name}")
        if not is_topic and not definition.dynamic:
            fixed.append(name)
            continue
        try:
            definition.parse(value)
        except ValueError as error:
            raise _invalid(str(error)) from None
    if fixed:
        raise _invalid(f"Cannot update these configs dynamically: {','.join(fixed)}")


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)
