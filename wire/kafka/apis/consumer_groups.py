"""Groups of the consumer protocol (KIP-848).

A broker with ZooKeeper advertises these APIs, but answers UNSUPPORTED_VERSION unless the protocol
is enabled. Clients then fall back to the classic protocol.
"""

from __future__ import annotations

from ....protocol.groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)
from ....protocol.values import uuid_bytes, uuid_text
from ..api import Api, reads, writes
from .metadata import NOT_ASKED

CONSUMER_GROUP_HEARTBEAT = Api(
    68,
    reads(
        ConsumerGroupHeartbeatRequest,
        "groupId memberId memberEpoch instanceId rackId rebalanceTimeoutMs subscribedTopicNames "
        "subscribedTopicRegex serverAssignor topicPartitions(topicId partitions)",
        topicId=uuid_text,
    ),
    writes(
        "errorCode=error errorMessage memberId memberEpoch heartbeatIntervalMs "
        "assignment[topicPartitions[topicId partitions]]",
        assignment=lambda topics: None if topics is None else (topics,),
        topicId=uuid_bytes,
    ),
)
"""Keep a member of a group alive, and exchange its assignment.

Version 1 adds a regular expression for topics, and ids made by members (KIP-1082). Kafka has it
since 4.0; here it is offered only if the protocol is enabled.
"""


CONSUMER_GROUP_DESCRIBE = Api(
    69,
    reads(ConsumerGroupDescribeRequest, "groupIds includeAuthorizedOperations"),
    writes(
        "groups(errorCode=error errorMessage groupId groupState=state groupEpoch assignmentEpoch "
        "assignorName=assignor members(memberId instanceId=group_instance_id rackId=rack "
        "memberEpoch clientId clientHost subscribedTopicNames=topics "
        "subscribedTopicRegex=topic_regex "
        "assignment[topicPartitions(topicId topicName=topic partitions)] "
        "targetAssignment[topicPartitions(topicId topicName=topic partitions)]) "
        "authorizedOperations)",
        assignment=lambda topics: (topics,),
        targetAssignment=lambda topics: (topics,),
        topicId=uuid_bytes,
        authorizedOperations=lambda allowed: NOT_ASKED if allowed is None else allowed,
    ),
)
"""Describe groups with their members and assignments."""
