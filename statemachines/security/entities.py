"""Names of users and clients in ZooKeeper, and changes of their configurations.

Kafka: ``Sanitizer``, ``AdminZkClient.changeConfigs``.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, unquote

from ...protocol import znode_paths
from ..zookeeper.client import KafkaZkClient


def sanitize(name: str | None) -> str:
    """Return a user's or client's name encoded for a znode; None is the default entity."""
    if name is None:
        return znode_paths.DEFAULT_ENTITY
    return quote(name, safe="-_.").replace("~", "%7E")


def desanitize(name: str) -> str | None:
    return None if name == znode_paths.DEFAULT_ENTITY else unquote(name)


async def change_entity_config(
    zk: KafkaZkClient, entity_type: str, entity: str, values: Mapping[str, str]
) -> None:
    """Store an entity's values and notify every broker."""
    await zk.admin.set_or_create_entity_configs(entity_type, entity, values)
    await zk.admin.create_config_change_notification(f"{entity_type}/{entity}")
