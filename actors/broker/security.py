"""What a broker knows of users: their credentials, and what they may do."""

from __future__ import annotations

from ...protocol.config import BrokerConfig
from ...protocol.versions import Behaviour
from ...protocol.znode_paths import USERS
from ...statemachines.broker.dynamic_config import DynamicConfigManager
from ...statemachines.security.acl_store import AclStore
from ...statemachines.security.authorizer import Authorizer
from ...statemachines.security.scram_credentials import ScramAdmin, ScramCredentials
from ...statemachines.zookeeper.client import KafkaZkClient
from ..node import Node


class BrokerSecurity:
    """Kept up with ZooKeeper while the broker runs."""

    __slots__ = ("acls", "authorizer", "scram", "scram_admin")

    def __init__(
        self,
        node: Node,
        config: BrokerConfig,
        behaviour: Behaviour,
        zk: KafkaZkClient,
        dynamic_config: DynamicConfigManager,
    ) -> None:
        self.scram = ScramCredentials()
        self.scram_admin = ScramAdmin(zk)
        dynamic_config.on_entity_config[USERS] = self.scram.user_changed
        has_authorizer = bool(config["authorizer.class.name"])
        self.authorizer = Authorizer(config, behaviour) if has_authorizer else None
        self.acls = AclStore(node, zk, behaviour, self.authorizer, node.log)

    async def start(self) -> None:
        """Read what is kept in ZooKeeper."""
        await self.acls.start()
