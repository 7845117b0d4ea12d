"""DescribeConfigs (docs/kafka/administration.md#configurations). For changes see
``config_changes``.

Source: Kafka's ``ConfigHelper``.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...protocol import znode_paths
from ...protocol.admin import (
    BROKER_LOGGER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    TOPIC_RESOURCE,
    ConfigEntry,
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from ...protocol.errors import INVALID_REQUEST_TEXT, ErrorCode, KafkaError
from ...protocol.topic_names import validate_topic_name
from .config_changes import (
    ConfigChanges,
    as_parsed,
    broker_id_of,
    invalid,
    is_known_type,
    type_name,
    wrong_broker,
)
from .config_entries import ConfigValues, logger_entries
from .parts import AdminParts

_NO_NAME = frozenset(("",))
_NO_SUBSCRIPTION = "Client metrics subscription name must not be empty"


class ConfigDescriptions:
    """Describes the configurations of topics and brokers, on any broker."""

    def __init__(self, parts: AdminParts, changes: ConfigChanges) -> None:
        self._parts = parts
        self._changes = changes

    def values(self) -> ConfigValues:
        """Return this broker's current values with their sources."""
        return ConfigValues(self._parts.config, self._parts.facts())

    async def describe_configs(self, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        """Return the values in force of each resource; refuses all if one has an unknown type."""
        behaviour = self._parts.behaviour
        unset = "" if behaviour.describe_configs_generated else None
        strange = [r for r, _ in request.resources if not is_known_type(r.type, behaviour)]
        if strange:
            text = INVALID_REQUEST_TEXT
            if not behaviour.resources_called_config_resources:
                kind = type_name(strange[0].type, behaviour)
                text = f"Unexpected resource type {kind} for resource {strange[0].name}"
            return DescribeConfigsResponse(
                tuple(
                    DescribeConfigsResult(
                        as_parsed(resource, behaviour), ErrorCode.INVALID_REQUEST, text, ()
                    )
                    for resource, _ in request.resources
                )
            )
        values = self.values()
        results: list[DescribeConfigsResult] = []
        for resource, names in request.resources:
            try:
                entries = await self._describe(resource, names, request, values)
                results.append(DescribeConfigsResult(resource, ErrorCode.NONE, unset, entries))
            except KafkaError as error:
                message = error.message or unset
                results.append(DescribeConfigsResult(resource, error.code, message, ()))
        return DescribeConfigsResponse(tuple(results))

    async def _describe(
        self,
        resource: ConfigResource,
        names: Sequence[str] | None,
        request: DescribeConfigsRequest,
        values: ConfigValues,
    ) -> tuple[ConfigEntry, ...]:
        behaviour = self._parts.behaviour
        chosen = frozenset(names or ())
        if names is not None and not names and not behaviour.empty_config_names_mean_all:
            chosen = _NO_NAME
        options = (request.include_synonyms, request.include_documentation)
        if resource.type == TOPIC_RESOURCE:
            validate_topic_name(resource.name, behaviour)
            if not behaviour.configs_of_unknown_topics and not self._parts.metadata.contains_topic(
                resource.name
            ):
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            overrides = await self._parts.zk.admin.get_entity_configs(
                znode_paths.TOPICS, resource.name
            )
            return values.topic_entries(overrides, chosen, *options)
        if resource.type == BROKER_LOGGER_RESOURCE:
            if not resource.name:
                raise invalid("Broker id must not be empty")
            self._check_broker(resource, "")
            return logger_entries(self._changes.log_levels, chosen)
        if resource.type == CLIENT_METRICS_RESOURCE:
            text = "Config type client-metrics is only supported on KRaft clusters"
            raise invalid(text if resource.name else _NO_SUBSCRIPTION)
        if not resource.name:
            return values.default_entries(chosen, *options)
        self._check_broker(resource, " or empty string,")
        return values.broker_entries(chosen, *options)

    def _check_broker(self, resource: ConfigResource, alternative: str) -> None:
        own_id = self._parts.controller.broker_id
        if broker_id_of(resource.name, "Broker") != own_id:
            received = wrong_broker(resource, self._parts.behaviour)
            raise invalid(
                f"Unexpected broker id, expected {own_id}{alternative} but received {received}"
            )
