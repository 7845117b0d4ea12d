"""Configurations of topics and brokers, and the features of a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ....protocol.admin import (
    SAFE_DOWNGRADE,
    SET,
    UPGRADE,
    AlterConfigsRequest,
    ConfigEntry,
    ConfigResource,
    DescribeConfigsRequest,
    FeatureUpdate,
    UpdateFeaturesRequest,
)
from ....protocol.errors import ErrorCode
from ..api import Api, ApiCall, each, reads, writes


def _named(kind: int, name: str, value: Any) -> tuple[ConfigResource, Any]:
    return ConfigResource(kind, name), value


def _without_secrets(entries: tuple[ConfigEntry, ...]) -> list[ConfigEntry]:
    return [_without_secret(entry) if entry.is_sensitive else entry for entry in entries]


def _without_secret(entry: ConfigEntry) -> ConfigEntry:
    synonyms = tuple((name, None, source) for name, _, source in entry.synonyms)
    return replace(entry, value=None, synonyms=synonyms)


DESCRIBE_CONFIGS = Api(
    32,
    reads(
        DescribeConfigsRequest,
        "resources(resourceType resourceName configurationKeys) includeSynonyms "
        "includeDocumentation",
        resources=each(_named),
    ),
    writes(
        "results(errorCode=error errorMessage resourceType=resource.type "
        "resourceName=resource.name configs=entries(name value readOnly isDefault "
        "configSource=source isSensitive synonyms[name value source] configType documentation))",
        configs=_without_secrets,
    ),
)
"""List the configuration in force for topics and brokers.

Version 1 has source and synonyms instead of ``isDefault`` (KIP-226). 3 adds type and documentation
(KIP-569).
"""


def _alter_configs(resources: tuple[Any, ...], validate_only: bool) -> AlterConfigsRequest:
    set_all = tuple(
        (resource, tuple((name, SET, value) for name, value in entries))
        for resource, entries in resources
    )
    return AlterConfigsRequest(set_all, False, validate_only)


def _by_resource(results: tuple[tuple[ConfigResource, ErrorCode, str | None], ...]) -> list[Any]:
    return [(resource.type, resource.name, *rest) for resource, *rest in results]


_ALTERED = writes(
    "responses=results[resourceType resourceName errorCode errorMessage]", responses=_by_resource
)
ALTER_CONFIGS = Api(
    33,
    reads(
        _alter_configs,
        "resources(resourceType resourceName configs(name value)) validateOnly",
        resources=each(_named),
    ),
    _ALTERED,
)
"""Replace all overrides of topics or brokers. Superseded by IncrementalAlterConfigs (KIP-339)."""


def _incremental_alter_configs(
    resources: tuple[Any, ...], validate_only: bool
) -> AlterConfigsRequest:
    return AlterConfigsRequest(resources, True, validate_only)


INCREMENTAL_ALTER_CONFIGS = Api(
    44,
    reads(
        _incremental_alter_configs,
        "resources(resourceType resourceName configs(name configOperation value)) validateOnly",
        resources=each(_named),
    ),
    _ALTERED,
)
"""Set, delete, append to or subtract from overrides (KIP-339)."""


def _update_features(
    call: ApiCall, updates: tuple[tuple[str, int, bool, int], ...], timeout_ms: int, validate: bool
) -> UpdateFeaturesRequest:
    has_upgrade_type = call.version >= 1
    feature_updates = [
        FeatureUpdate(
            name,
            level,
            kind if has_upgrade_type else SAFE_DOWNGRADE if allows_downgrade else UPGRADE,
        )
        for name, level, allows_downgrade, kind in updates
    ]
    return UpdateFeaturesRequest(tuple(feature_updates), timeout_ms, validate)


UPDATE_FEATURES = Api(
    57,
    reads(
        _update_features,
        "call featureUpdates(feature maxVersionLevel allowDowngrade upgradeType) timeoutMs "
        "validateOnly",
    ),
    writes("errorCode=error errorMessage results[feature errorCode errorMessage]"),
)
"""Change the finalised features of the cluster (KIP-584, KIP-778).

Version 0 says whether a downgrade is permitted, 1 which kind of change it is. 1 also adds
``validateOnly``, which brokers with ZooKeeper ignore.
"""
