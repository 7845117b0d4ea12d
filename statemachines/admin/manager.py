"""The admin APIs as a broker serves them (Kafka's ``ZkAdminManager``).

Creating, deleting and growing topics is for the active controller's broker; configurations may be
asked of any. Refusals are answers, never exceptions.
"""

from __future__ import annotations

from .auto_creation import AutoCreation
from .config_changes import ConfigChanges
from .configs import ConfigDescriptions
from .partitions import PartitionAdmin
from .parts import AdminParts
from .topics import TopicAdmin


class AdminManager:
    """The parts that serve admin requests: each function of theirs takes a request and answers its
    response."""

    def __init__(self, parts: AdminParts) -> None:
        self.config_changes: ConfigChanges = ConfigChanges(parts)
        self.configs: ConfigDescriptions = ConfigDescriptions(parts, self.config_changes)
        self.topics: TopicAdmin = TopicAdmin(parts, self.configs)
        self.partitions: PartitionAdmin = PartitionAdmin(parts)
        self.auto_creation: AutoCreation = AutoCreation(parts, self.topics)
