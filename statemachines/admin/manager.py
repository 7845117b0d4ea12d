"""The admin APIs that brokers serve (Kafka's ``ZkAdminManager``).

Only the active controller's broker creates, deletes and grows topics; any broker serves requests
for configurations. A refused request returns an error and never raises an exception.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from .parts import AdminParts

if TYPE_CHECKING:
    from .auto_creation import AutoCreation
    from .config_changes import ConfigChanges
    from .configs import ConfigDescriptions
    from .partitions import PartitionAdmin
    from .topics import TopicAdmin


class AdminManager:
    """The parts that serve admin requests, each created on first use. Their methods take a request
    and return its response."""

    def __init__(self, parts: AdminParts) -> None:
        self._parts = parts

    @cached_property
    def config_changes(self) -> ConfigChanges:
        from .config_changes import ConfigChanges

        return ConfigChanges(self._parts)

    @cached_property
    def configs(self) -> ConfigDescriptions:
        from .configs import ConfigDescriptions

        return ConfigDescriptions(self._parts, self.config_changes)

    @cached_property
    def topics(self) -> TopicAdmin:
        from .topics import TopicAdmin

        return TopicAdmin(self._parts, self.configs)

    @cached_property
    def partitions(self) -> PartitionAdmin:
        from .partitions import PartitionAdmin

        return PartitionAdmin(self._parts)

    @cached_property
    def auto_creation(self) -> AutoCreation:
        from .auto_creation import AutoCreation

        return AutoCreation(self._parts, self.topics)
