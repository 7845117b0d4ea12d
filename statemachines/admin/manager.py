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
    """Serves admin requests: each of its functions takes a request and answers its response."""

    def __init__(self, parts: AdminParts) -> None:
        config_changes = ConfigChanges(parts)
        configs = ConfigDescriptions(parts, config_changes)
        topics = TopicAdmin(parts, configs)
        partitions = PartitionAdmin(parts)
        self.create_topics = topics.create_topics
        self.delete_topics = topics.delete_topics
        self.create_partitions = topics.create_partitions
        self.elect_leaders = partitions.elect_leaders
        self.alter_partition_reassignments = partitions.alter_partition_reassignments
        self.list_partition_reassignments = partitions.list_partition_reassignments
        self.describe_configs = configs.describe_configs
        self.alter_configs = config_changes.alter_configs
        self.auto_creation = AutoCreation(parts, topics)
