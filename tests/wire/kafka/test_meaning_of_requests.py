"""The meaning of requests where it does not follow from single fields."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol import admin, data, groups, transactions
from fakekafka.protocol.errors import ClientError, ErrorCode
from fakekafka.protocol.fetch_session_epochs import EPOCH_MAX
from fakekafka.protocol.security import acls, delegation_tokens, quotas
from fakekafka.protocol.values import ZERO_UUID, TopicPartition, uuid_text
from fakekafka.tests.support.wire_trees import body, decoded_request
from fakekafka.wire.kafka.api import CodecAnswer
from fakekafka.wire.kafka.apis.metadata import WrongEndpointType
from fakekafka.wire.kafka.codec import Codec
from fakekafka.wire.kafka.topic_names import is_stand_in

(
    PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR,
    LEAVE_GROUP, DELETE_TOPICS, DELETE_RECORDS, OFFSET_FOR_LEADER_EPOCH, ADD_PARTITIONS_TO_TXN,
) = (0, 1, 2, 3, 8, 9, 10, 13, 20, 21, 23, 24)  # fmt: skip
(
    CREATE_ACLS, DELETE_ACLS, CREATE_PARTITIONS, CREATE_DELEGATION_TOKEN, ELECT_LEADERS,
    ALTER_REASSIGNMENTS, DESCRIBE_CLIENT_QUOTAS, ALTER_CLIENT_QUOTAS, ALTER_PARTITION,
    UPDATE_FEATURES, DESCRIBE_CLUSTER, CONSUMER_GROUP_HEARTBEAT,
) = (30, 31, 37, 38, 43, 45, 48, 49, 56, 57, 60, 68)  # fmt: skip
UNEXPECTED = ErrorCode.UNKNOWN_SERVER_ERROR
A_0, A_1 = TopicPartition("a", 0), TopicPartition("a", 1)
AN_ID = bytes(range(16))


def topic_a(*partitions: dict[str, Any], name: str = "name", **more: Any) -> list[dict[str, Any]]:
    """Return topic a with some partitions, in the form that many requests have."""
    return [{name: "a", "partitions": list(partitions), **more}]


# -- records -------------------------------------------------------------------------------------


def test_a_partition_produced_twice_has_the_last_records_in_the_first_place() -> None:
    named = [{"index": n, "records": records} for n, records in ((0, b"x"), (1, None), (0, b"y"))]
    request = decoded_request(PRODUCE, 9, topicData=[{"name": "a", "partitionData": named}])
    assert [(p.topic_partition, p.records) for p in request.partitions] == [
        (A_0, b"y"),
        (A_1, None),
    ]


def fetched(version: int, entry: dict[str, Any] | None = None, **fields: Any) -> Any:
    topics = topic_a({"partition": 0, **(entry or {})}, name="topic", topicId=AN_ID)
    return decoded_request(FETCH, version, topics=topics, **fields)


@pytest.mark.parametrize("version", [0, 2, 3])
def test_a_fetch_of_an_old_version_has_no_limit_on_the_whole_answer(version: int) -> None:
    """Only version 3 limits the whole answer; none of them has sessions, epochs or isolation."""
    entry = {"fetchOffset": 40, "partitionMaxBytes": 50}
    request = fetched(version, entry, replicaId=-1, maxWaitMs=5, minBytes=6, maxBytes=7)
    limit = 7 if version == 3 else 2**31 - 1
    partition = data.FetchPartition(A_0, 40, max_bytes=50)
    assert request == data.FetchRequest(-1, 5, 6, limit, (partition,))


def test_the_replica_id_of_a_fetch_is_in_a_tagged_field_since_version_15() -> None:
    """KIP-903: a fetch without the field comes from a consumer."""
    state = {"replicaId": 5, "replicaEpoch": 70}
    told = fetched(15, replicaState=state)
    assert (told.replica_id, told.replica_epoch) == (5, 70)
    untold = fetched(15)
    assert (untold.replica_id, untold.replica_epoch) == (-1, -1)
    assert fetched(14, replicaId=5).replica_id == 5


def test_odd_epochs_of_a_fetch_mean_none_and_one_of_a_session() -> None:
    """Negative epochs: ``RequestUtils.getLeaderEpoch`` and ``FetchMetadata.isFull``."""
    request = fetched(12, {"currentLeaderEpoch": -7}, sessionEpoch=-2)
    assert request.partitions[0].current_leader_epoch == -1
    assert request.session_epoch == EPOCH_MAX


@pytest.mark.parametrize(("version", "named"), [(12, [A_0]), (13, [])])
def test_a_fetch_of_an_unknown_isolation_level_is_answered(
    version: int, named: list[TopicPartition]
) -> None:
    """The error is per partition if the answer can name topics."""
    answer = fetched(version, isolationLevel=9)
    assert isinstance(answer, CodecAnswer)
    assert answer.response.error == UNEXPECTED
    assert [p.topic_partition for p in answer.response.partitions] == named


@pytest.mark.parametrize(
    ("session", "sent_on"),
    [((0, 0), (0, -1)), ((5, 0), (5, -1)), ((5, -1), (5, -1)), ((5, 3), (0, 3))],
)
def test_a_fetch_with_an_unresolved_topic_id_stays_outside_sessions(
    session: tuple[int, ...], sent_on: tuple[int, ...]
) -> None:
    """A session would hold the stand-in name even after the id has become known (KIP-516)."""
    tree = {
        "sessionId": session[0],
        "sessionEpoch": session[1],
        "topics": [{"topicId": AN_ID, "partitions": [{"partition": 0}]}],
        "forgottenTopicsData": [{"topicId": AN_ID, "partitions": [4]}],
    }
    request = Codec("3.9").decode(FETCH, 17, memoryview(body(FETCH, 17, tree)))
    assert (request.session_id, request.session_epoch) == sent_on
    assert is_stand_in(request.partitions[0].topic_partition.topic)
    assert is_stand_in(request.forgotten[0].topic)


def test_records_are_deleted_before_the_offset_that_was_named_last() -> None:
    entries = [{"partitionIndex": 0, "offset": offset} for offset in (4, 5)]
    request = decoded_request(DELETE_RECORDS, 2, topics=topic_a(*entries), timeoutMs=9)
    assert request == data.DeleteRecordsRequest(9, ((A_0, 5),))


# -- offsets -------------------------------------------------------------------------------------


def test_version_0_of_list_offsets_requests_several_offsets_and_others_one() -> None:
    entry = {"partitionIndex": 0, "timestamp": -1, "maxNumOffsets": 7}
    for version, most in ((0, 7), (1, 1)):
        request = decoded_request(LIST_OFFSETS, version, replicaId=-1, topics=topic_a(entry))
        partition = data.ListOffsetsPartition(A_0, -1, -1, most)
        assert request == data.ListOffsetsRequest(-1, (partition,))


def test_offsets_at_an_unknown_isolation_level_are_answered() -> None:
    answer = decoded_request(
        LIST_OFFSETS, 2, isolationLevel=2, topics=topic_a({"partitionIndex": 0})
    )
    assert isinstance(answer, CodecAnswer)
    assert [(p.topic_partition, p.error) for p in answer.response.partitions] == [(A_0, UNEXPECTED)]


@pytest.mark.parametrize(("version", "replica_id"), [(2, -1), (3, 5), (4, 5)])
def test_an_epoch_request_without_a_replica_id_comes_from_a_consumer(
    version: int, replica_id: int
) -> None:
    entry = {"partition": 0, "leaderEpoch": 6}
    topics = topic_a(entry, name="topic")
    request = decoded_request(OFFSET_FOR_LEADER_EPOCH, version, replicaId=5, topics=topics)
    partition = data.OffsetForLeaderEpochPartition(A_0, 6)
    assert request == data.OffsetForLeaderEpochRequest(replica_id, (partition,))


@pytest.mark.parametrize(("version", "offsets"), [(0, [4, 5]), (2, [5])])
def test_an_offset_that_is_committed_twice_counts_once_since_version_1(
    version: int, offsets: list[int]
) -> None:
    """The last of several offsets counts since version 1; null metadata is read as empty."""
    entries = [
        {"partitionIndex": 0, "committedOffset": offset, "committedMetadata": None}
        for offset in (4, 5)
    ]
    request = decoded_request(OFFSET_COMMIT, version, groupId="g", topics=topic_a(*entries))
    assert [(p.offset, p.metadata) for p in request.partitions] == [(one, "") for one in offsets]
    assert (request.generation, request.member_id, request.retention_time_ms) == (-1, "", -1)


def test_offsets_in_zookeeper_need_a_group() -> None:
    """``PathUtils`` throws an exception for the path of an empty group."""
    entry = {"partitionIndex": 0, "committedMetadata": ""}
    committed = decoded_request(OFFSET_COMMIT, 0, topics=topic_a(entry))
    assert committed == CodecAnswer(groups.OffsetCommitResponse(((A_0, UNEXPECTED),)))
    topics = [{"name": "a", "partitionIndexes": [0]}]
    fetched = decoded_request(OFFSET_FETCH, 0, topics=topics)
    result = groups.CommittedOffset(A_0, UNEXPECTED, metadata="")
    assert fetched == CodecAnswer(groups.OffsetFetchResponse(ErrorCode.NONE, (result,)))
    assert isinstance(decoded_request(OFFSET_FETCH, 1, topics=topics), groups.OffsetFetchRequest)


def test_null_requests_all_committed_offsets_and_repetitions_are_dropped() -> None:
    topics = [{"name": "a", "partitionIndexes": [0, 1, 0]}]
    request = decoded_request(OFFSET_FETCH, 7, groupId="g", topics=topics, requireStable=True)
    assert request == groups.OffsetFetchRequest("g", (A_0, A_1), True)
    assert decoded_request(OFFSET_FETCH, 7, groupId="g", topics=None).partitions is None


def test_each_group_is_a_request_of_its_own_since_version_8() -> None:
    """KIP-709: each group is its own request; version 9 adds the member."""
    of_one = {"groupId": "g", "topics": None}
    of_other = {"groupId": "h", "topics": [], "memberId": "m", "memberEpoch": 4}
    split = decoded_request(OFFSET_FETCH, 9, groups=[of_one, of_other], requireStable=True)
    assert split.requests == (
        groups.OffsetFetchRequest("g", None, True),
        groups.OffsetFetchRequest("h", (), True, "m", 4),
    )


# -- groups and transactions ---------------------------------------------------------------------


def test_keys_of_coordinators_come_alone_before_version_4() -> None:
    """KIP-699: several keys came with version 4; version 0 has groups only."""
    assert decoded_request(FIND_COORDINATOR, 0, key="g") == data.FindCoordinatorRequest(("g",), 0)
    several = decoded_request(FIND_COORDINATOR, 4, coordinatorKeys=["t", "u"], keyType=1)
    assert several == data.FindCoordinatorRequest(("t", "u"), 1)


def test_members_leave_alone_before_version_3() -> None:
    """KIP-345: several members may leave at once since version 3."""
    assert decoded_request(LEAVE_GROUP, 2, groupId="g", memberId="m") == groups.LeaveGroupRequest(
        "g", (groups.LeavingMember("m"),)
    )
    members = [{"memberId": "m", "reason": "r"}, {"memberId": "", "groupInstanceId": "i"}]
    assert decoded_request(
        LEAVE_GROUP, 5, groupId="g", members=members
    ) == groups.LeaveGroupRequest(
        "g", (groups.LeavingMember("m", None, "r"), groups.LeavingMember("", "i"))
    )


def test_partitions_are_added_to_one_transaction_before_version_4() -> None:
    """KIP-890: version 4 adds partitions to several transactions at once."""
    topics = [{"name": "a", "partitions": [0, 1]}]
    only = decoded_request(
        ADD_PARTITIONS_TO_TXN, 3, v3AndBelowTransactionalId="t", v3AndBelowProducerId=5,
        v3AndBelowProducerEpoch=2, v3AndBelowTopics=topics,
    )  # fmt: skip
    expected = transactions.TransactionPartitions("t", 5, 2, (A_0, A_1))
    assert only == transactions.AddPartitionsToTxnRequest((expected,))
    one = {"transactionalId": "t", "producerId": 5, "producerEpoch": 2, "topics": topics}
    several = decoded_request(ADD_PARTITIONS_TO_TXN, 4, transactions=[{**one, "verifyOnly": True}])
    expected = transactions.TransactionPartitions("t", 5, 2, (A_0, A_1), True)
    assert several == transactions.AddPartitionsToTxnRequest((expected,))


# -- administration ------------------------------------------------------------------------------


def test_an_empty_list_requests_metadata_of_all_topics_in_version_0() -> None:
    """DP-124: from version 1 on null asks for all topics, and an empty list for none."""
    assert decoded_request(METADATA, 0, topics=[]).topics is None
    assert decoded_request(METADATA, 1, topics=[]).topics == ()
    assert decoded_request(METADATA, 1, topics=None).topics is None
    assert decoded_request(METADATA, 3, topics=[{"name": "a"}]).allow_auto_topic_creation


def test_metadata_are_requested_by_ids_or_by_names() -> None:
    """Topics may be named by ids since version 12; before, ids and null names are errors."""
    by_id: dict[str, Any] = {"topicId": AN_ID, "name": None}
    by_name: dict[str, Any] = {"topicId": ZERO_UUID, "name": "a"}
    both = decoded_request(METADATA, 12, topics=[by_name, by_id])
    assert (both.topics, both.topic_ids) == ((), (uuid_text(AN_ID),))
    assert decoded_request(METADATA, 12, topics=[by_name]).topics == ("a",)
    for version, topics, error in (
        (12, [by_name, {"topicId": ZERO_UUID, "name": None}], UNEXPECTED),
        (11, [by_name, by_id], ErrorCode.INVALID_REQUEST),
        (10, [by_name, {"topicId": ZERO_UUID, "name": None}], ErrorCode.INVALID_REQUEST),
    ):
        answer = decoded_request(METADATA, version, topics=topics)
        assert isinstance(answer, CodecAnswer)
        assert [topic.error for topic in answer.response.topics] == [error, error]
        ids = [uuid_text(t["topicId"]) if t["topicId"] != ZERO_UUID else "" for t in topics]
        assert [topic.topic_id for topic in answer.response.topics] == ids


def test_topics_are_deleted_by_name_or_by_id() -> None:
    """KIP-516: topics with neither name nor id are counted."""
    assert decoded_request(DELETE_TOPICS, 5, topicNames=["a", "b"], timeoutMs=5) == (
        admin.DeleteTopicsRequest(("a", "b"), 5)
    )
    named = [("a", ZERO_UUID), (None, AN_ID), (None, ZERO_UUID), ("b", AN_ID)]
    topics = [{"name": name, "topicId": topic_id} for name, topic_id in named]
    an_id = uuid_text(AN_ID)
    assert decoded_request(
        DELETE_TOPICS, 6, topics=topics, timeoutMs=5
    ) == admin.DeleteTopicsRequest(("a",), 5, (an_id,), 1, (("b", an_id),))


@pytest.mark.parametrize(
    ("given", "expected"), [(None, None), ([], ()), ([[1], [2]], ((1,), (2,)))]
)
def test_new_partitions_are_placed_by_the_broker_or_as_assigned(given: Any, expected: Any) -> None:
    assignments = None if given is None else [{"brokerIds": ids} for ids in given]
    topics = [{"name": "a", "count": 4, "assignments": assignments}]
    (topic,) = decoded_request(CREATE_PARTITIONS, 3, topics=topics).topics
    assert topic == admin.NewPartitions("a", 4, expected)


def test_version_0_of_elect_leaders_elects_the_preferred_ones() -> None:
    """KIP-460: version 0 has no election type; null asks for all partitions."""
    request = decoded_request(ELECT_LEADERS, 0, electionType=1, topicPartitions=None, timeoutMs=5)
    assert request == admin.ElectLeadersRequest(admin.PREFERRED, None, 5)


def test_an_unknown_election_is_answered() -> None:
    """``ElectionType.valueOf`` throws an exception, which is answered as an error."""
    topics = [{"topic": "a", "partitions": [0]}]
    answer = decoded_request(ELECT_LEADERS, 2, electionType=2, topicPartitions=topics)
    results = ((A_0, UNEXPECTED, None),)
    assert answer == CodecAnswer(admin.ElectLeadersResponse(UNEXPECTED, results))


def test_null_replicas_cancel_a_reassignment() -> None:
    """KIP-455: null replicas cancel, and a list of replicas reassigns."""
    entries = ({"partitionIndex": 0, "replicas": None}, {"partitionIndex": 1, "replicas": [2, 1]})
    request = decoded_request(ALTER_REASSIGNMENTS, 0, topics=topic_a(*entries), timeoutMs=5)
    assert request.reassignments == ((A_0, None), (A_1, (2, 1)))


@pytest.mark.parametrize(
    ("key", "field", "attribute"),
    [(35, "topics", "partitions"), (41, "owners", "owners"), (46, "topics", "partitions"),
     (50, "users", "users")],
)  # fmt: skip
def test_null_requests_all_and_an_empty_array_none(key: int, field: str, attribute: str) -> None:
    """Null log directories, tokens, reassignments or SCRAM credentials stand for all of them."""
    assert getattr(decoded_request(key, 0, **{field: None}), attribute) is None
    assert getattr(decoded_request(key, 0, **{field: []}), attribute) == ()


def test_only_one_api_of_two_alters_configurations_step_by_step() -> None:
    for key, operation in ((33, admin.SET), (44, admin.APPEND)):
        told = {} if key == 33 else {"configOperation": operation}
        configs = [{"name": "x", "value": "1", **told}]
        resources = [{"resourceType": 2, "resourceName": "a", "configs": configs}]
        request = decoded_request(key, 1, resources=resources, validateOnly=True)
        named = ((admin.ConfigResource(2, "a"), (("x", operation, "1"),)),)
        assert request == admin.AlterConfigsRequest(named, key == 44, True)


@pytest.mark.parametrize(
    ("version", "fields", "kind"),
    [
        (0, {"allowDowngrade": True}, admin.SAFE_DOWNGRADE),
        (0, {"allowDowngrade": False}, admin.UPGRADE),
        (1, {"upgradeType": admin.UNSAFE_DOWNGRADE}, admin.UNSAFE_DOWNGRADE),
    ],
)
def test_features_may_fall_in_different_ways(version: int, fields: Any, kind: int) -> None:
    updates = [{"feature": "f", "maxVersionLevel": 3, **fields}]
    request = decoded_request(UPDATE_FEATURES, version, featureUpdates=updates)
    assert request.updates == (admin.FeatureUpdate("f", 3, kind),)


def test_describing_controllers_at_a_broker_is_the_wrong_endpoint_type() -> None:
    """KIP-919: a broker answers that it is the wrong endpoint type."""
    assert decoded_request(DESCRIBE_CLUSTER, 1, endpointType=2) == CodecAnswer(WrongEndpointType(2))
    request = decoded_request(DESCRIBE_CLUSTER, 1, includeClusterAuthorizedOperations=True)
    assert request == data.MetadataRequest((), False, (), True)


@pytest.mark.parametrize("version", range(4))
def test_an_isr_is_proposed_by_name_or_id_with_or_without_epochs(version: int) -> None:
    members = [{"brokerId": 1, "brokerEpoch": 9}, {"brokerId": 2}]
    entry = {"partitionIndex": 0, "newIsr": [1, 2], "newIsrWithEpochs": members}
    topics = [{"topicName": "a", "topicId": AN_ID, "partitions": [entry]}]
    (partition,) = decoded_request(ALTER_PARTITION, version, topics=topics).partitions
    assert partition.new_isr == (1, 2)
    assert partition.topic_partition.topic == ("a" if version < 2 else AN_ID.hex())


# -- security ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "array"), [(CREATE_ACLS, "creations"), (DELETE_ACLS, "filters")])
@pytest.mark.parametrize("field", ["resourceType", "patternType", "operation", "permissionType"])
def test_an_acl_of_the_unknown_kind_is_refused_and_of_no_kind_is_unknown(
    key: int, array: str, field: str
) -> None:
    """The number 0 is refused, even in the last of several; other unknown numbers are UNKNOWN."""
    name = {
        (CREATE_ACLS, "patternType"): "resourcePatternType",
        (DELETE_ACLS, "resourceType"): "resourceTypeFilter",
        (DELETE_ACLS, "patternType"): "patternTypeFilter",
    }.get((key, field), field)
    kind = "resourceType" if key == CREATE_ACLS else "resourceTypeFilter"
    good = {kind: 2, "operation": 3, "permissionType": 3}
    with pytest.raises(ClientError, match="kind UNKNOWN"):
        decoded_request(key, 1, **{array: [good, {**good, name: 0}]})
    request = decoded_request(key, 1, **{array: [{**good, name: 99}]})
    (found,) = request.acls if key == CREATE_ACLS else request.filters
    numbers = (
        (found.resource.type, found.resource.pattern, found.entry.operation, found.entry.permission)
        if isinstance(found, acls.Acl)
        else (found.resource_type, found.pattern, found.operation, found.permission)
    )
    assert [int(number) for number in numbers].count(0) == 1


@pytest.mark.parametrize(
    ("kind", "name", "owner"),
    [("User", "a", "User:a"), (None, "a", ":a"), ("User", "", None), ("User", None, None)],
)
def test_a_token_belongs_to_the_named_owner_or_to_the_requester(
    kind: str | None, name: str | None, owner: str | None
) -> None:
    """KIP-373: without an owner in the request, the token belongs to the requester."""
    renewers = [{"principalType": "User", "principalName": "b"}]
    request = decoded_request(
        CREATE_DELEGATION_TOKEN, 3, ownerPrincipalType=kind, ownerPrincipalName=name,
        renewers=renewers, maxLifetimeMs=5,
    )  # fmt: skip
    expected = delegation_tokens.CreateDelegationTokenRequest(("User:b",), 5, owner)
    assert request == expected


@pytest.mark.parametrize("match_type", [-1, 3, quotas.EXACT])
def test_a_filter_of_quotas_that_means_nothing_is_answered(match_type: int) -> None:
    """A filter with exact match but no value to match is answered with an error, too."""
    component = {"entityType": "user", "matchType": match_type, "match": None}
    answer = decoded_request(DESCRIBE_CLIENT_QUOTAS, 1, components=[component])
    assert answer == CodecAnswer(quotas.DescribeClientQuotasResponse(UNEXPECTED, None, ()))


def test_of_quotas_of_an_entity_the_last_mention_counts() -> None:
    """The value of a quota that is to be removed is None."""
    entity = [{"entityType": "user", "entityName": None}]
    ops = [{"key": "x", "value": 2.5, "remove": removed} for removed in (False, True)]
    entries = [{"entity": entity, "ops": [op]} for op in ops]
    request = decoded_request(ALTER_CLIENT_QUOTAS, 1, entries=entries, validateOnly=True)
    alteration = quotas.QuotaAlteration((("user", None),), (("x", None),))
    assert request == quotas.AlterClientQuotasRequest((alteration,), True)
    (first,) = decoded_request(ALTER_CLIENT_QUOTAS, 1, entries=entries[:1]).alterations
    assert first.changes == (("x", 2.5),)


def test_null_in_a_heartbeat_keeps_the_former_value() -> None:
    """KIP-848: null stands for the value that the member sent before."""
    request = decoded_request(CONSUMER_GROUP_HEARTBEAT, 1, groupId="g", memberId="m", memberEpoch=3)
    assert request == groups.ConsumerGroupHeartbeatRequest("g", "m", 3)
    owned = [{"topicId": AN_ID, "partitions": [1, 2]}]
    request = decoded_request(
        CONSUMER_GROUP_HEARTBEAT, 1, subscribedTopicNames=["a"], topicPartitions=owned
    )
    assert (request.topics, request.owned) == (("a",), ((uuid_text(AN_ID), (1, 2)),))
