"""AlterConfigs and IncrementalAlterConfigs, with their checks and error messages
(docs/kafka/administration.md#configurations).

Source: Kafka's ``ZkAdminManager``, ``DynamicBrokerConfig`` and, since 3.2, ``ConfigAdminManager``,
which checks a request before them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ...protocol import znode_paths
from ...protocol.admin import (
    APPEND,
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    DELETE,
    SET,
    SUBTRACT,
    TOPIC_RESOURCE,
    AlterConfigsRequest,
    AlterConfigsResponse,
    ConfigResource,
)
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.release_configs import (
    ConfigException,
    InvalidTopicConfig,
    ReleaseConfig,
    ReleaseConfigs,
    release_configs,
)
from ...protocol.topic_names import validate_topic_name
from ...protocol.versions import Behaviour
from ..broker.reconfiguration import (
    check_names_and_types,
    check_reconfiguration,
    is_password,
    static_texts,
    usable,
)
from .parts import AdminParts

_Entries = Sequence[tuple[str, int, "str | None"]]
_TYPE_NAMES = {
    TOPIC_RESOURCE: "TOPIC",
    BROKER_RESOURCE: "BROKER",
    BROKER_LOGGER_RESOURCE: "BROKER_LOGGER",
    CLIENT_METRICS_RESOURCE: "CLIENT_METRICS",
}
_OLD_TYPE_NAMES = {1: "ANY", 3: "GROUP"}
"""Types of ``ResourceType`` in Kafka 1.1 that have no configurations."""
_OLD_TYPES = frozenset((TOPIC_RESOURCE, BROKER_RESOURCE, *_OLD_TYPE_NAMES))
_OPERATIONS = {SET: "SET", DELETE: "DELETE", APPEND: "APPEND", SUBTRACT: "SUBTRACT"}
_LEVELS = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")
_ROOT_LOGGER = "root"
_LOG_LEVELS = {
    _ROOT_LOGGER: "INFO",
    "kafka": "INFO",
    "kafka.authorizer.logger": "INFO",
    "kafka.controller": "TRACE",
    "kafka.log.LogCleaner": "INFO",
    "kafka.network.RequestChannel$": "WARN",
    "kafka.request.logger": "WARN",
    "org.apache.kafka": "INFO",
    "org.apache.zookeeper": "INFO",
    "state.change.logger": "INFO",
}
"""Levels of the loggers in the log4j settings of Kafka's distribution."""


class ConfigChanges:
    """Checks and writes configuration changes of clients, on any broker."""

    def __init__(self, parts: AdminParts) -> None:
        self._parts = parts
        self._preprocessed = parts.behaviour.config_changes_preprocessed
        self.log_levels: dict[str, str] = dict(_LOG_LEVELS)
        """Levels by logger (KIP-412), which have no effect but can be described."""

    @property
    def _release(self) -> ReleaseConfigs:
        return release_configs(self._parts.config.kafka_version)

    async def alter_configs(self, request: AlterConfigsRequest) -> AlterConfigsResponse:
        """Replace or change the overrides of each resource, and notify the brokers."""
        behaviour = self._parts.behaviour
        counts = Counter(resource for resource, _ in request.resources)
        if not self._preprocessed and any(not is_known_type(r.type, behaviour) for r in counts):
            strange = next(r.type for r in counts if not is_known_type(r.type, behaviour))
            text = f"Unexpected resource type {type_name(strange, behaviour)}"
            return AlterConfigsResponse(
                tuple(
                    (as_parsed(r, behaviour), ErrorCode.INVALID_REQUEST, text)
                    for r, _ in request.resources
                )
            )
        results: list[tuple[ConfigResource, ErrorCode, str | None]] = []
        resources = request.resources
        if request.incremental and not self._preprocessed:
            # IncrementalAlterConfigs of 2.8 collects resources in a map: the last mention counts.
            resources = tuple(dict(resources).items())
            counts.clear()
        for resource, entries in resources:
            try:
                if counts[resource] > 1:
                    raise invalid("Each resource must appear at most once.")
                await self._alter(resource, entries, request)
                results.append((resource, ErrorCode.NONE, None))
            except KafkaError as error:
                results.append((resource, error.code, error.message or None))
            except ConfigException as refusal:
                code, text = self._refused_value(resource, str(refusal))
                results.append((resource, code, text))
        return AlterConfigsResponse(tuple(results))

    def _refused_value(self, resource: ConfigResource, text: str) -> tuple[ErrorCode, str]:
        if self._preprocessed and resource.type == BROKER_RESOURCE:
            return ErrorCode.INVALID_REQUEST, text
        shown = shown_resource(resource, self._parts.behaviour)
        code = ErrorCode.INVALID_CONFIG if self._preprocessed else ErrorCode.INVALID_REQUEST
        return code, f"Invalid config value for resource {shown}: {text}"

    async def _alter(
        self, resource: ConfigResource, entries: _Entries, request: AlterConfigsRequest
    ) -> None:
        self._check_entries(entries, request.incremental)
        if resource.type == BROKER_LOGGER_RESOURCE and request.incremental:
            self._check_broker(resource)
            self._alter_log_levels(entries, request.validate_only)
            return
        behaviour = self._parts.behaviour
        is_topic = resource.type == TOPIC_RESOURCE
        if resource.type == CLIENT_METRICS_RESOURCE and behaviour.client_metrics_resources:
            raise invalid(
                "AlterConfigs is only supported for topics and brokers, but resource type is "
                "CLIENT_METRICS"
            )
        if resource.type == BROKER_RESOURCE and not behaviour.broker_configs_api:
            raise invalid("AlterConfigs is only supported for topics, but resource type is BROKER")
        if not is_topic and resource.type != BROKER_RESOURCE:
            raise invalid(f"Unknown resource type {resource.type}")
        if is_topic and not resource.name and self._preprocessed:
            raise invalid("Default topic resources are not allowed.")
        if not is_topic and resource.name:
            self._check_broker(resource)
        entity_type = znode_paths.TOPICS if is_topic else znode_paths.BROKERS
        entity = resource.name or znode_paths.DEFAULT_ENTITY
        zk = self._parts.zk
        if request.incremental:
            if is_topic and not resource.name:  # ZooKeeper's PathUtils throws for this path
                raise ConfigException("Path must not end with / character")
            stored = await zk.admin.get_entity_configs(entity_type, entity)
            if not is_topic:
                stored, _ignored = self._usable(stored, per_broker=bool(resource.name))
            changed = self._apply(stored, entries, is_topic)
        else:
            changed = {name: value for name, _, value in entries if value is not None}
        if is_topic:
            self._check_topic(resource.name, changed)
        else:
            self._check_broker_configs(changed, per_broker=bool(resource.name))
        if request.validate_only:
            return
        if not is_topic:
            self._check_passwords(resource, changed)
        await zk.admin.set_or_create_entity_configs(entity_type, entity, changed)
        await zk.admin.create_config_change_notification(f"{entity_type}/{entity}")

    def _check_entries(self, entries: _Entries, incremental: bool) -> None:
        twice = [
            name for name, count in Counter(name for name, _, _ in entries).items() if count > 1
        ]
        if twice and self._preprocessed:
            raise invalid("Error due to duplicate config keys")
        if twice and incremental:
            raise invalid(f"Error due to duplicate config keys : {','.join(twice)}")
        null = [(n, op) for n, op, v in entries if v is None and not (incremental and op == DELETE)]
        if null and not incremental and not self._preprocessed:
            # Kafka puts the value into a ``Properties``, which throws.
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        if null and self._preprocessed:
            raise invalid(f"Null value not supported for : {', '.join(name for name, _ in null)}")
        if null:
            shown = [f"{_OPERATIONS.get(op)}:{name}" for name, op in null]
            raise invalid(f"Null value not supported for : {','.join(shown)}")

    def _check_broker(self, resource: ConfigResource) -> None:
        own_id = self._parts.controller.broker_id
        if broker_id_of(resource.name, "Node" if self._preprocessed else "Broker") != own_id:
            received = wrong_broker(resource, self._parts.behaviour)
            raise invalid(f"Unexpected broker id, expected {own_id}, but received {received}")

    def _check_topic(self, name: str, config: Mapping[str, str]) -> None:
        behaviour = self._parts.behaviour
        is_missing = not self._parts.metadata.contains_topic(name)
        if behaviour.configs_of_unknown_topics:
            validate_topic_name(name, behaviour)
            if is_missing:
                text = f'Topic "{name}" does not exist.'
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text)
        elif is_missing:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
            )
        try:
            self._release.validate_topic(config)
        except InvalidTopicConfig as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None

    def _check_broker_configs(self, config: Mapping[str, str], per_broker: bool) -> None:
        """Check that the values may change and that the broker can apply them
        (``DynamicBrokerConfig.validate``)."""
        release, behaviour, own = self._release, self._parts.behaviour, self._parts.config
        check_names_and_types(config, release, behaviour, per_broker=per_broker)
        static = {**static_texts(own), **self._parts.facts()}
        default, of_broker = own.dynamic_default, own.dynamic_of_broker
        wanted = (default, config) if per_broker else (config, of_broker)
        check_reconfiguration(static, own.applied, wanted, release, behaviour)

    def _usable(
        self, stored: Mapping[str, str], per_broker: bool
    ) -> tuple[dict[str, str], list[str]]:
        version = self._parts.config.kafka_version
        return usable(stored, version, self._parts.behaviour, per_broker=per_broker)

    def _check_passwords(self, resource: ConfigResource, config: Mapping[str, str]) -> None:
        """Refuse passwords, as no broker here has the secret to encrypt them with
        (``DynamicBrokerConfig.toPersistentProps``)."""
        if any(is_password(name, self._release) for name in config):
            text = "Password encoder secret not configured"
            if not resource.name:
                text = "Password config can be defined only at broker level"
            shown = shown_resource(resource, self._parts.behaviour)
            code = ErrorCode.INVALID_CONFIG if self._preprocessed else ErrorCode.INVALID_REQUEST
            raise KafkaError(code, f"Invalid config value for resource {shown}: {text}")

    # --- incremental changes

    def _apply(
        self, stored: Mapping[str, str], entries: _Entries, is_topic: bool
    ) -> dict[str, str]:
        """Return the overrides after incremental operations; raises ``KafkaError``."""
        changed = dict(stored)
        known = self._release.topic if is_topic else self._release.broker
        for name, operation, value in entries:
            if operation == SET:
                changed[name] = value or ""
            elif operation == DELETE:
                changed.pop(name, None)
            elif operation in (APPEND, SUBTRACT):
                changed[name] = self._edit_list(changed, name, operation, value or "", known)
            elif self._preprocessed and not is_topic:
                raise invalid(f"Unknown operations type {operation}")
            else:
                # Kafka's pattern match has no case for an unknown operation, and fails.
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return changed

    def _edit_list(
        self,
        stored: Mapping[str, str],
        name: str,
        operation: int,
        value: str,
        known: Mapping[str, ReleaseConfig],
    ) -> str:
        config = known.get(name)
        if config is None:
            # Kafka looks up a missing key, and fails.
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        if config.type != "list":
            verb = "append" if operation == APPEND else "subtract"
            raise KafkaError(
                ErrorCode.INVALID_CONFIG if self._preprocessed else ErrorCode.INVALID_REQUEST,
                f"Config value {verb} is not allowed for config key: {name}",
            )
        items = [item for item in stored.get(name, config.default or "").split(",") if item]
        edited = [item for item in value.split(",") if item]
        if operation == APPEND:
            once = self._parts.behaviour.appended_values_once
            present = frozenset(items) if once else frozenset()
            return ",".join(items + [item for item in edited if item not in present])
        dropped = set(edited)
        return ",".join(item for item in items if item not in dropped)

    def _alter_log_levels(self, entries: _Entries, validate_only: bool) -> None:
        """Change the levels of loggers (KIP-412); raises ``KafkaError`` or ``ConfigException``."""
        changed = dict(self.log_levels)
        for name, operation, level in entries:
            if operation not in (SET, DELETE):
                shown = _OPERATIONS.get(operation)
                raise invalid(f"{shown} operation is not allowed for the BROKER_LOGGER resource")
            if name not in changed:
                raise ConfigException(f"Logger {name} does not exist!")
            if operation == SET and level not in _LEVELS:
                raise ConfigException(
                    f"Cannot set the log level of {name} to {level} as it is not a supported log "
                    f"level. Valid log levels are {', '.join(_LEVELS)}"
                )
            if operation == DELETE and name == _ROOT_LOGGER:
                raise invalid("Removing the log level of the root logger is not allowed")
            changed[name] = str(level) if operation == SET else changed[_ROOT_LOGGER]
        if not validate_only:
            self.log_levels = changed


def is_known_type(resource_type: int, behaviour: Behaviour) -> bool:
    """Return whether resources of a type have configurations in the emulated release."""
    return (
        resource_type in (TOPIC_RESOURCE, BROKER_RESOURCE)
        or (resource_type == BROKER_LOGGER_RESOURCE and behaviour.broker_loggers)
        or (resource_type == CLIENT_METRICS_RESOURCE and behaviour.client_metrics_resources)
    )


def shown_resource(resource: ConfigResource, behaviour: Behaviour) -> str:
    """Return a resource as messages show it; the unmatched brace is Kafka's."""
    shown = f"Resource(type={_TYPE_NAMES[resource.type]}, name='{resource.name}'"
    return f"Config{shown})" if behaviour.resources_called_config_resources else f"{shown}}}"


def wrong_broker(resource: ConfigResource, behaviour: Behaviour) -> str:
    """Return the received broker id as the message about a wrong id shows it."""
    if behaviour.wrong_broker_shown_as_resource:
        return f"{shown_resource(resource, behaviour)}.name"
    return resource.name


def type_name(resource_type: int, behaviour: Behaviour) -> str:
    """Return the name of a type without configurations in messages of the emulated release."""
    is_old = not behaviour.resources_called_config_resources
    return _OLD_TYPE_NAMES.get(resource_type, "UNKNOWN") if is_old else "UNKNOWN"


def as_parsed(resource: ConfigResource, behaviour: Behaviour) -> ConfigResource:
    """Return the resource to put into an answer: old releases turn an unknown type into 0."""
    if behaviour.resources_called_config_resources or resource.type in _OLD_TYPES:
        return resource
    return ConfigResource(0, resource.name)


def broker_id_of(name: str, noun: str) -> int:
    """Parse a resource's name as a broker id; raises ``KafkaError`` (INVALID_REQUEST)."""
    digits = name[1:] if name[:1] in ("-", "+") else name
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 10:
        raise invalid(f"{noun} id must be an integer, but it is: {name}")
    return int(name)


def invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)
