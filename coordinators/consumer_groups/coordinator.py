"""The coordinator's part for groups of the consumer protocol (KIP-848), and the way of each request
to the protocol that its group speaks.

Kafka has this in its KRaft brokers; here ``group.coordinator.rebalance.protocols`` switches it on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ...protocol.config import BrokerConfig
from ...protocol.errors import ErrorCode
from ...protocol.groups import (
    NO_MEMBER,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
)
from ..groups.gate import GroupGate
from ..groups.joining import Joining, JoiningClient
from ..groups.membership import Membership
from ..groups.offsets_log import OffsetsLog
from ..groups.rebalances import Rebalances
from ..groups.store import GroupStore
from .administration import ConsumerGroupAdministration
from .classic_members import ClassicMembers
from .departures import Departures
from .group import ConsumerGroup
from .heartbeats import ConsumerGroupHeartbeats
from .log import ConsumerGroupLog
from .member import MemberState
from .member_updates import SESSION, MemberUpdates
from .migration import Migration
from .subscribed_topics import TopicCatalogue

if TYPE_CHECKING:
    from ...protocol.host import Host
    from ...replication.replica_manager import ReplicaManager
    from ..groups.member import JoinAnswer, SyncAnswer


class ConsumerGroupCoordinator:
    """Makes the parts, and sends requests of the classic protocol where they belong."""

    __slots__ = (
        "_classic_members",
        "_gate",
        "_joining",
        "_membership",
        "_migration",
        "_store",
        "_updates",
        "administration",
        "beat",
    )

    def __init__(
        self,
        host: Host,
        config: BrokerConfig,
        store: GroupStore,
        gate: GroupGate,
        replica_manager: ReplicaManager,
        classic: tuple[Joining, Membership, Rebalances],
        out: Callable[[str, str], object],
    ) -> None:
        """``classic`` are the parts that answer for classic groups; ``out`` takes a level and a
        line."""
        self._joining, self._membership, rebalances = classic
        self._store = store
        self._gate = gate
        topics = TopicCatalogue(replica_manager.metadata_cache)
        log = ConsumerGroupLog(host, OffsetsLog(host, config, replica_manager), store)
        self._updates = updates = MemberUpdates(host, config, topics, log, out)
        self._migration = Migration(host, config, store, topics, log, updates, rebalances)
        departures = Departures(topics, log, self._migration)
        updates.fence_by(departures.fence)
        heartbeats = ConsumerGroupHeartbeats(
            host, config, store, gate, log, updates, departures, self._migration
        )
        self.beat = heartbeats.heartbeat
        self._classic_members = ClassicMembers(
            host, config, log, updates, departures, self._migration
        )
        self.administration = ConsumerGroupAdministration(config, store, gate, topics)
        store.on_consumer_group_loaded = self._loaded

    def _loaded(self, group: ConsumerGroup) -> None:
        """A group was loaded: its members are to be heard of within a session."""
        for member in group.members.values():
            self._updates.expect(group, SESSION, member.member_id)
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                self._updates.expect_revocation(group, member)

    def topics_changed(self, topics: Iterable[str]) -> None:
        """Groups that read these look at their topics when a member is next heard of."""
        groups = self._store.consumer_groups
        if groups:
            changed = list(topics)
            for group in groups.values():
                if any(group.is_subscribed_to(topic) for topic in changed):
                    group.request_refresh()

    def _find(self, group_id: str) -> ConsumerGroup | None:
        """The group, if requests of the classic protocol to it are answered here."""
        group = self._store.consumer_groups.get(group_id)
        if group is None or self._gate.refusal(group_id) is not ErrorCode.NONE:
            return None
        return group

    # -- requests of the classic protocol ------------------------------------------------------

    def join(self, request: JoinGroupRequest, client: JoiningClient, respond: JoinAnswer) -> None:
        """A group without members becomes one of the classic protocol."""
        group = self._find(request.group_id)
        if group is not None and not group.is_empty and self._joining.takes_session(request):
            self._classic_members.join(group, request, client, respond)
            return
        if group is not None and group.is_empty and request.member_id == NO_MEMBER:
            self._migration.replace_empty(group)
        self._joining.join(request, client, respond)

    def sync(self, request: SyncGroupRequest, respond: SyncAnswer) -> None:
        group = self._find(request.group_id)
        if group is None or group.is_empty:
            self._membership.sync(request, respond)
        else:
            self._classic_members.sync(group, request, respond)

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        group = self._find(request.group_id)
        if group is None:
            return self._membership.heartbeat(request)
        return self._classic_members.heartbeat(group, request)

    def leave(
        self, request: LeaveGroupRequest, respond: Callable[[LeaveGroupResponse], object]
    ) -> None:
        group = self._find(request.group_id)
        if group is None:
            self._membership.leave(request, respond)
        else:
            self._classic_members.leave(group, request, respond)
