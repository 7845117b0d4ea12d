"""ElectLeaders, AlterPartitionReassignments and ListPartitionReassignments.

The controller decides (``elections``, ``reassignment``). This module turns a request into an event
for the controller and its outcome into a response; an election is answered once this broker's
metadata shows the leader (docs/kafka/election.md#elections-on-request). As in Kafka's
``KafkaController``, a request waits for the controller without a timeout, so that an event that
fails is never answered. For releases without these APIs, the request is written to a znode, as
Kafka's tools did.
"""

from __future__ import annotations

from ...protocol.admin import (
    PREFERRED,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingReassignment,
)
from ...protocol.awaiting import Pending
from ...protocol.errors import ErrorCode
from ...protocol.values import TopicPartition
from ...zkfake.messages import ZkCode, ZooKeeperError
from ..controller.events import (
    NOT_CONTROLLER_MESSAGE,
    ApiPartitionReassignment,
    ElectionOutcomes,
    ElectionTrigger,
    ListPartitionReassignments,
    ReassignmentOutcome,
    ReplicaLeaderElection,
)
from .parts import AdminParts

_Rows = list[tuple[TopicPartition, ErrorCode, "str | None"]]


class PartitionAdmin:
    """Serves clients' requests for elections and reassignments."""

    def __init__(self, parts: AdminParts) -> None:
        self._parts = parts

    # --- ElectLeaders

    async def elect_leaders(self, request: ElectLeadersRequest) -> ElectLeadersResponse:
        """Elect leaders, then wait until the local metadata shows them.

        A request without partitions means all partitions in the local metadata; since 2.4 the
        response then leaves out those that need no election.
        """
        parts = self._parts
        partitions = request.partitions
        if partitions is None:
            partitions = tuple(s.topic_partition for s in parts.metadata.partition_states())
        if request.election_type != PREFERRED and not parts.behaviour.unclean_elections_api:
            return ElectLeadersResponse(ErrorCode.UNSUPPORTED_VERSION)
        if not parts.behaviour.elect_leaders_api:
            return await self._elect_by_znode(partitions)
        pending: Pending[ElectionOutcomes] = Pending()
        requested = tuple(dict.fromkeys(partitions))
        from_api = ElectionTrigger.ADMIN_CLIENT_TRIGGERED
        parts.controller.put(
            ReplicaLeaderElection(requested, request.election_type, from_api, pending.set_result)
        )
        outcomes = await pending
        leaders = {
            tp: value
            for tp, (error, value) in outcomes.items()
            if error == ErrorCode.NONE and isinstance(value, int)
        }
        await self._wait_for_leaders(leaders, request.timeout_ms)
        rows: _Rows = []
        for tp in dict.fromkeys((*partitions, *outcomes)):
            if tp in leaders:
                is_known = self._shows_leader(tp, leaders[tp])
                error = ErrorCode.NONE if is_known else ErrorCode.REQUEST_TIMED_OUT
                rows.append((tp, error, None))
            elif tp in outcomes:
                error, text = outcomes[tp]
                if request.partitions is None and error == ErrorCode.ELECTION_NOT_NEEDED:
                    continue
                rows.append((tp, error, None if text is None else str(text)))
        return ElectLeadersResponse(ErrorCode.NONE, tuple(rows))

    async def _wait_for_leaders(self, leaders: dict[TopicPartition, int], timeout_ms: int) -> None:
        waiting = list(leaders.items())

        def all_shown() -> bool:
            while waiting and self._shows_leader(*waiting[-1]):
                waiting.pop()
            return not waiting

        if waiting:
            await self._parts.wait(all_shown, timeout_ms)

    def _shows_leader(self, topic_partition: TopicPartition, leader: int) -> bool:
        state = self._parts.metadata.partition_state(topic_partition)
        return state is not None and state.leader == leader

    async def _elect_by_znode(self, partitions: tuple[TopicPartition, ...]) -> ElectLeadersResponse:
        """Request elections through a znode, as ``kafka-preferred-replica-election.sh`` did."""
        state_of = self._parts.metadata.partition_state
        known = tuple(tp for tp in partitions if state_of(tp) is not None)
        try:
            if known:
                await self._parts.zk.admin.create_preferred_replica_election(known)
        except ZooKeeperError as error:
            if error.code != ZkCode.NODEEXISTS:
                raise
            # Another election is in progress; the tool then told its user to try again later.
            return ElectLeadersResponse(ErrorCode.REQUEST_TIMED_OUT)
        return ElectLeadersResponse(
            ErrorCode.NONE,
            tuple(
                (tp, ErrorCode.NONE, None)
                if tp in known
                else (tp, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
                for tp in partitions
            ),
        )

    # --- reassignment

    async def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        """Start, redirect or cancel reassignments; returns before they are complete."""
        parts = self._parts
        reassignments = dict(request.reassignments)
        if not parts.behaviour.reassignment_api:
            return await self._reassign_by_znode(reassignments)
        pending: Pending[ReassignmentOutcome] = Pending()
        requested = tuple(reassignments.items())
        parts.controller.put(ApiPartitionReassignment(requested, pending.set_result))
        outcome = await pending
        if isinstance(outcome, ErrorCode):
            return AlterPartitionReassignmentsResponse(
                outcome, error_message=NOT_CONTROLLER_MESSAGE
            )
        return AlterPartitionReassignmentsResponse(
            ErrorCode.NONE, tuple((tp, *outcome[tp]) for tp in reassignments if tp in outcome)
        )

    async def _reassign_by_znode(
        self, reassignments: dict[TopicPartition, tuple[int, ...] | None]
    ) -> AlterPartitionReassignmentsResponse:
        """Request reassignments through a znode, as ``kafka-reassign-partitions.sh`` did, which
        could not cancel them."""
        wanted = {tp: target for tp, target in reassignments.items() if target is not None}
        if len(wanted) < len(reassignments):
            return AlterPartitionReassignmentsResponse(ErrorCode.UNSUPPORTED_VERSION)
        try:
            await self._parts.zk.admin.create_partition_reassignment(wanted)
        except ZooKeeperError as error:
            if error.code != ZkCode.NODEEXISTS:
                raise
            return AlterPartitionReassignmentsResponse(ErrorCode.REASSIGNMENT_IN_PROGRESS)
        return AlterPartitionReassignmentsResponse(
            ErrorCode.NONE, tuple((tp, ErrorCode.NONE, None) for tp in wanted)
        )

    async def list_partition_reassignments(
        self, request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        """Return the ongoing reassignments of the requested partitions, or of all."""
        pending: Pending[ErrorCode | tuple[OngoingReassignment, ...]] = Pending()
        requested = None if request.partitions is None else tuple(dict.fromkeys(request.partitions))
        self._parts.controller.put(ListPartitionReassignments(requested, pending.set_result))
        outcome = await pending
        if isinstance(outcome, ErrorCode):
            return ListPartitionReassignmentsResponse(outcome, error_message=NOT_CONTROLLER_MESSAGE)
        return ListPartitionReassignmentsResponse(ErrorCode.NONE, outcome)
