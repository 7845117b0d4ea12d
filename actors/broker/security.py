"""What a broker knows of users: their credentials."""

from __future__ import annotations

from ...protocol.znode_paths import USERS
from ...statemachines.broker.dynamic_config import DynamicConfigManager
from ...statemachines.security.scram_credentials import ScramCredentials


class BrokerSecurity:
    """Kept up with ZooKeeper while the broker runs."""

    __slots__ = ("scram",)

    def __init__(self, dynamic_config: DynamicConfigManager) -> None:
        self.scram = ScramCredentials()
        dynamic_config.on_entity_config[USERS] = self.scram.user_changed
