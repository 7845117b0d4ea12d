"""Users as a broker knows them: their credentials, and what they may do."""

from __future__ import annotations

from collections.abc import Mapping

from ...protocol.config import BrokerConfig
from ...protocol.versions import Behaviour
from ...protocol.znode_paths import CLIENTS, IPS, USERS
from ...statemachines.broker.dynamic_config import DynamicConfigManager
from ...statemachines.controller.controller import KafkaController
from ...statemachines.security.acl_store import AclStore
from ...statemachines.security.authorizer import Authorizer
from ...statemachines.security.client_quotas import ClientQuotas
from ...statemachines.security.delegation_tokens import DelegationTokens
from ...statemachines.security.scram_credentials import ScramAdmin, ScramCredentials
from ...statemachines.zookeeper.client import KafkaZkClient
from ..node import Node


class BrokerSecurity:
    """Kept up with ZooKeeper while the broker runs."""

    __slots__ = ("acls", "authorizer", "quotas", "scram", "scram_admin", "tokens")

    def __init__(
        self,
        node: Node,
        config: BrokerConfig,
        behaviour: Behaviour,
        zk: KafkaZkClient,
        dynamic_config: DynamicConfigManager,
        controller: KafkaController,
    ) -> None:
        self.scram: ScramCredentials = ScramCredentials()
        self.scram_admin: ScramAdmin = ScramAdmin(zk)
        self.quotas: ClientQuotas = ClientQuotas(config)
        dynamic_config.on_entity_config[USERS] = self._user_changed
        dynamic_config.on_entity_config[CLIENTS] = self.quotas.client_changed
        if behaviour.ip_configs:
            dynamic_config.on_entity_config[IPS] = self.quotas.ip_changed
        has_authorizer = bool(config["authorizer.class.name"])
        self.authorizer: Authorizer | None = (
            Authorizer(config, behaviour) if has_authorizer else None
        )
        self.acls: AclStore = AclStore(node, zk, behaviour, self.authorizer, node.log)
        self.tokens: DelegationTokens = DelegationTokens(
            node, zk, config, node.log, lambda: controller.is_active, node.start_task
        )

    def _user_changed(self, entity: str, values: Mapping[str, str]) -> None:
        self.scram.user_changed(entity, values)
        self.quotas.user_changed(entity, values)

    async def start(self) -> None:
        """Read what is kept in ZooKeeper."""
        await self.acls.start()
        await self.tokens.start()
