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
"""Bit set of all operations on a group: what a broker without an authorizer answers."""


def _find_coordinator(
    call: ApiCall, key: str, key_type: int, keys: tuple[str, ...]
) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(keys if call.version >= 4 else (key,), key_type)


def _coordinators(
    response: FindCoordinatorResponse, call: ApiCall
) -> FindCoordinatorResponse | Coordinator:
    """Without an error the message is empty from version 4 on, and null before."""
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
        of=_coordinators,
    ),
)
"""The broker that coordinates a group or a transactional id.

4: several keys at once (KIP-699). 5 and 6 only add errors and key types of later releases.
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
        of=_joined,
    ),
)
"""A consumer wants to be a member of its group.

1: rebalance timeout. 4: a first answer with the member id (KIP-394). 5: static members (KIP-345).
7: the protocol type comes back (KIP-559). 8: a reason (KIP-800). 9: the leader may be told to keep
the assignment (KIP-814).
"""

HEARTBEAT = Api(
    12,
    reads(HeartbeatRequest, "groupId generationId memberId groupInstanceId"),
    writes("errorCode=error"),
)
"""A member of a group is alive, and learns of rebalances. 3: static members (KIP-345)."""


def _leave_group(
    call: ApiCall, group_id: str, member_id: str, members: tuple[LeavingMember, ...]
) -> LeaveGroupRequest:
    return LeaveGroupRequest(
        group_id, members if call.version >= 3 else (LeavingMember(member_id),)
    )


def _left(response: LeaveGroupResponse, call: ApiCall) -> LeaveGroupResponse:
    """Before version 3 the answer has the error of the only member."""
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
    writes("errorCode=error members(memberId groupInstanceId errorCode=error)", of=_left),
)
"""Members leave their group.

3: several members at once, also by their instance id (KIP-345). 5: a reason (KIP-800).
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
"""The leader of a group hands out the assignments, the others ask for theirs.

3: static members (KIP-345). 5: protocol type and name are checked and come back (KIP-559).
"""


def _described(response: DescribeGroupsResponse, call: ApiCall) -> DescribeGroupsResponse:
    asked = call.request is not None and call.request.include_authorized_operations
    described = (
        replace(
            group,
            authorized_operations=operations(
                group.authorized_operations, asked and not group.error, ALL_GROUP_OPERATIONS
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
        of=_described,
    ),
)
"""State and members of groups that this broker coordinates.

3: authorized operations (KIP-430). 4: static members (KIP-345).
"""

LIST_GROUPS = Api(
    16,
    reads(ListGroupsRequest, "statesFilter typesFilter"),
    writes("errorCode=error groups(groupId protocolType groupState=state groupType)"),
)
"""The groups that this broker coordinates.

4: the states wanted, and each group's state (KIP-518). 5: the same for types of groups (KIP-848).
"""

DELETE_GROUPS = Api(
    42,
    reads(DeleteGroupsRequest, "groupsNames"),
    writes("results=groups[groupId errorCode]"),
)
"""Delete groups without members, with their offsets (KIP-229)."""
