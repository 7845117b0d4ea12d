"""Groups of the classic protocol: their coordinators, membership and administration."""

from __future__ import annotations

from dataclasses import replace

from ....protocol.data import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ....protocol.errors import ErrorCode
from ....protocol.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    ListGroupsRequest,
    SyncGroupRequest,
)
from ..api import Api, ApiCall, each, reads, writes
from .metadata import operations

ALL_GROUP_OPERATIONS = 328
"""Bit set of all operations on a group, which a broker without an authorizer answers."""


def _find_coordinator(
    call: ApiCall, key: str, key_type: int, keys: tuple[str, ...]
) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(keys if call.version >= 4 else (key,), key_type)


def _coordinators(
    response: FindCoordinatorResponse, call: ApiCall
) -> FindCoordinatorResponse | Coordinator:
    """Return the response; without an error its message is empty since version 4, null before."""
    no_message = "" if call.version >= 4 else None
    found = [
        one
        if one.error_message
        else Coordinator(one.key, one.error, one.node_id, one.host, one.port, no_message)
        for one in response.coordinators
    ]
    return FindCoordinatorResponse(tuple(found)) if call.version >= 4 else found[0]


FIND_COORDINATOR = Api(
    10,
    reads(_find_coordinator, "call key keyType coordinatorKeys"),
    writes(
        "errorCode=error errorMessage nodeId host port "
        "coordinators(key nodeId host port errorCode=error errorMessage)",
        convert=_coordinators,
    ),
)
"""Find the broker that coordinates a group or a transactional id.

Version 4 adds several keys at once (KIP-699). 5 and 6 only add errors and key types of later
releases.
"""


def _joined(response: JoinGroupResponse, call: ApiCall) -> JoinGroupResponse:
    if call.version < 7 and response.protocol is None:
        return replace(response, protocol="")
    return response


JOIN_GROUP = Api(
    11,
    reads(
        JoinGroupRequest,
        "groupId sessionTimeoutMs rebalanceTimeoutMs memberId groupInstanceId protocolType "
        "protocols(name metadata) reason",
    ),
    writes(
        "errorCode=error generationId=generation protocolType protocolName=protocol leader "
        "skipAssignment memberId members(memberId groupInstanceId metadata)",
        convert=_joined,
    ),
)
"""Join a group as a member.

Version 1 adds the rebalance timeout, 4 a first answer with the member id (KIP-394), 5 static
members (KIP-345), 7 the protocol type in the response (KIP-559), 8 a reason (KIP-800), 9 a flag
that lets the leader skip the assignment (KIP-814).
"""

HEARTBEAT = Api(
    12,
    reads(HeartbeatRequest, "groupId generationId memberId groupInstanceId"),
    writes("errorCode=error"),
)
"""Keep a member alive, and notify it of rebalances. Version 3 adds static members (KIP-345)."""


def _leave_group(
    call: ApiCall, group_id: str, member_id: str, members: tuple[LeavingMember, ...]
) -> LeaveGroupRequest:
    return LeaveGroupRequest(
        group_id, members if call.version >= 3 else (LeavingMember(member_id),)
    )


def _left(response: LeaveGroupResponse, call: ApiCall) -> LeaveGroupResponse:
    """Return the response; below version 3 its error is that of the only member."""
    if call.version < 3 and response.error is ErrorCode.NONE and response.members:
        return replace(response, error=response.members[0].error)
    return response


LEAVE_GROUP = Api(
    13,
    reads(
        _leave_group,
        "call groupId memberId members(memberId groupInstanceId reason)",
        members=each(LeavingMember),
    ),
    writes("errorCode=error members(memberId groupInstanceId errorCode=error)", convert=_left),
)
"""Remove members from their group.

Version 3 adds several members at once, also by their instance id (KIP-345), 5 a reason (KIP-800).
"""

SYNC_GROUP = Api(
    14,
    reads(
        SyncGroupRequest,
        "groupId generationId memberId groupInstanceId protocolType protocolName "
        "assignments(memberId assignment)",
    ),
    writes("errorCode=error protocolType protocolName=protocol assignment"),
)
"""Distribute the assignments, which the leader of a group sends, to all members.

Version 3 adds static members (KIP-345), 5 protocol type and name, which are checked and returned
(KIP-559).
"""


def _described(response: DescribeGroupsResponse, call: ApiCall) -> DescribeGroupsResponse:
    is_requested = call.request is not None and call.request.include_authorized_operations
    described = (
        replace(
            group,
            authorized_operations=operations(
                group.authorized_operations, is_requested and not group.error, ALL_GROUP_OPERATIONS
            ),
        )
        for group in response.groups
    )
    return DescribeGroupsResponse(tuple(described))


DESCRIBE_GROUPS = Api(
    15,
    reads(DescribeGroupsRequest, "groups includeAuthorizedOperations"),
    writes(
        "groups(errorCode=error groupId groupState=state protocolType protocolData=protocol "
        "members(memberId groupInstanceId clientId clientHost memberMetadata=metadata "
        "memberAssignment=assignment) authorizedOperations)",
        convert=_described,
    ),
)
"""Describe state and members of groups that this broker coordinates.

Version 3 adds authorized operations (KIP-430), 4 static members (KIP-345).
"""

LIST_GROUPS = Api(
    16,
    reads(ListGroupsRequest, "statesFilter typesFilter"),
    writes("errorCode=error groups(groupId protocolType groupState=state groupType)"),
)
"""List the groups that this broker coordinates.

Version 4 adds a filter by state, and each group's state (KIP-518), 5 the same for types of groups
(KIP-848).
"""

DELETE_GROUPS = Api(
    42,
    reads(DeleteGroupsRequest, "groupsNames"),
    writes("results=groups[groupId errorCode]"),
)
"""Delete groups without members, with their offsets (KIP-229)."""
