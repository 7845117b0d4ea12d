"""The admin APIs as a broker serves them (Kafka's ``ZkAdminManager``).

Creating, deleting and growing topics is for the active controller's broker; configurations may be
asked of any. Refusals are answers, never exceptions.
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
    """The parts that serve admin requests: each function of theirs takes a request and answers its
    response. Each part is made when it is first asked for."""

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
