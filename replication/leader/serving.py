"""The handlers of requests from clients and followers, for the partitions that a broker leads.

They are created with the first of these requests, as a cluster starts without them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...protocol.config import BrokerConfig
from ...protocol.host import Host
from ...protocol.values import TopicPartition
from ..partition.hosted_partitions import HostedPartitions
from .delayed_requests import DelayedRequests
from .fetch import FetchHandler
from .follower_fetch import FollowerFetchHandler
from .offsets import OffsetsHandler
from .produce import ProduceHandler
from .reading import PartitionReader
from .session_cache import FetchSessionCache
from .verified_produce import VerifiedProduce

if TYPE_CHECKING:
    from ..replication_quotas import ReplicationQuota


class Serving:
    """The handlers of these requests, connected to each other."""

    def __init__(
        self,
        hosted: HostedPartitions,
        delayed: DelayedRequests,
        host: Host,
        config: BrokerConfig,
        quota: ReplicationQuota,
        on_storage_failure: Callable[[TopicPartition, Exception], object],
    ) -> None:
        sessions_exist = hosted.behaviour.fetch_sessions
        sessions = FetchSessionCache(
            config["max.incremental.fetch.session.cache.slots"] if sessions_exist else 0, host.rng
        )
        reader = PartitionReader(hosted, config, on_storage_failure, quota)
        followers = FollowerFetchHandler(reader, delayed, host)
        self.followers: FollowerFetchHandler = followers
        self.fetch: FetchHandler = FetchHandler(reader, followers, delayed, sessions, host)
        self.produce: ProduceHandler = ProduceHandler(
            hosted, delayed, followers.complete_fetches, on_storage_failure, host
        )
        self.verified_produce: VerifiedProduce = VerifiedProduce(hosted, self.produce, host)
        self.offsets: OffsetsHandler = OffsetsHandler(hosted, delayed)
