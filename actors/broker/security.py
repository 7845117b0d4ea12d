"""Credentials, permissions, quotas and delegation tokens of users, as a broker knows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ...protocol.config import BrokerConfig
from ...protocol.versions import Behaviour
from ...protocol.znode_paths import CLIENTS, IPS, USERS
from ...statemachines.broker.dynamic_config import DynamicConfigManager
from ...statemachines.controller.controller import KafkaController
from ...statemachines.zookeeper.change_notifications import ChangeNotifications
from ...statemachines.zookeeper.client import KafkaZkClient
from ..node import Node

if TYPE_CHECKING:
    from ...statemachines.security.acl_store import AclStore
    from ...statemachines.security.authorizer import Authorizer
    from ...statemachines.security.client_quotas import ClientQuotas
    from ...statemachines.security.delegation_tokens import DelegationTokens
    from ...statemachines.security.scram_credentials import ScramAdmin, ScramCredentials


class BrokerSecurity:
    """The parts of a broker's security, kept in sync with ZooKeeper while the broker runs.

    Each part is created when it is first needed, which in a cluster without security is never.
    """

    def __init__(
        self,
        node: Node,
        config: BrokerConfig,
        behaviour: Behaviour,
        zk: KafkaZkClient,
        dynamic_config: DynamicConfigManager,
        controller: KafkaController,
        enforce: Callable[[ClientQuotas], object],
    ) -> None:
        """Create the parts; ``enforce`` is called with the quotas after each change of them."""
        self._node = node
        self._config = config
        self._behaviour = behaviour
        self._zk = zk
        self._controller = controller
        self._enforce = enforce
        self._scram: ScramCredentials | None = None
        self._scram_admin: ScramAdmin | None = None
        self._quotas: ClientQuotas | None = None
        self._acls: AclStore | None = None
        self._tokens: DelegationTokens | None = None
        self.authorizer: Authorizer | None = None
        if config["authorizer.class.name"]:
            from ...statemachines.security.authorizer import Authorizer

            self.authorizer = Authorizer(config, behaviour)
        dynamic_config.on_entity_config[USERS] = self._user_changed
        dynamic_config.on_entity_config[CLIENTS] = self._client_changed
        if behaviour.ip_configs:
            dynamic_config.on_entity_config[IPS] = self._ip_changed

    @property
    def scram(self) -> ScramCredentials:
        """The SCRAM credentials of users."""
        if self._scram is None:
            from ...statemachines.security.scram_credentials import ScramCredentials

            self._scram = ScramCredentials()
        return self._scram

    @property
    def scram_admin(self) -> ScramAdmin:
        """The administration of SCRAM credentials."""
        if self._scram_admin is None:
            from ...statemachines.security.scram_credentials import ScramAdmin

            self._scram_admin = ScramAdmin(self._zk)
        return self._scram_admin

    @property
    def quotas(self) -> ClientQuotas:
        """The quotas of users, clients and addresses."""
        if self._quotas is None:
            from ...statemachines.security.client_quotas import ClientQuotas

            quotas = self._quotas = ClientQuotas(self._config)
            quotas.on_change = lambda _: self._enforce(quotas)
        return self._quotas

    @property
    def acls(self) -> AclStore:
        """The ACLs in ZooKeeper."""
        if self._acls is None:
            from ...statemachines.security.acl_store import AclStore

            node = self._node
            self._acls = AclStore(node, self._zk, self._behaviour, self.authorizer, node.log)
        return self._acls

    @property
    def tokens(self) -> DelegationTokens:
        """The delegation tokens."""
        if self._tokens is None:
            from ...statemachines.security.delegation_tokens import DelegationTokens

            node, controller = self._node, self._controller
            self._tokens = DelegationTokens(
                node,
                self._zk,
                self._config,
                node.log,
                lambda: controller.is_active,
                node.start_task,
            )
        return self._tokens

    @property
    def followed(self) -> tuple[ChangeNotifications, ...]:
        """The change notifications that the broker follows for ACLs and tokens."""
        acl_notifications = () if self.authorizer is None else self.acls.followed
        token_notifications = self.tokens.followed if self._config.delegation_token_key else ()
        return (*acl_notifications, *token_notifications)

    def _user_changed(self, entity: str, values: Mapping[str, str]) -> None:
        self.scram.user_changed(entity, values)
        self.quotas.user_changed(entity, values)

    def _client_changed(self, entity: str, values: Mapping[str, str]) -> None:
        self.quotas.client_changed(entity, values)

    def _ip_changed(self, entity: str, values: Mapping[str, str]) -> None:
        self.quotas.ip_changed(entity, values)

    def forget_usage(self) -> None:
        """Reset the measured usage of clients' quotas."""
        if self._quotas is not None:
            self._quotas.forget_usage()

    async def start(self) -> None:
        """Read the ACLs and delegation tokens from ZooKeeper, where they are in use."""
        if self.authorizer is not None:
            await self.acls.start()
        if self._config.delegation_token_key:
            await self.tokens.start()
