"""The contents of responses where they do not follow from single attributes."""

from __future__ import annotations

import pytest
from fakekafka.protocol import admin, control, data, groups
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.records.batch import RecordBatch, build_batch
from fakekafka.protocol.records.format import Record
from fakekafka.protocol.security import acls, authentication, delegation_tokens, quotas
from fakekafka.protocol.values import BrokerInfo, EndPoint, TopicPartition
from fakekafka.tests.support.wire_trees import decoded_response
from fakekafka.wire.kafka.api import SplitRequest
from fakekafka.wire.kafka.apis.metadata import WrongEndpointType
from fakekafka.wire.kafka.topic_names import resolved_name

NONE = ErrorCode.NONE
A_0, A_1, B_0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
NOT_ASKED = -(2**31)
BROKER = BrokerInfo(1, (EndPoint("h", 9), EndPoint("secret", 99, "SSL", "SSL")), "r")


def test_results_stand_under_their_topics_in_the_order_of_their_first_ones() -> None:
    response = groups.OffsetCommitResponse(((B_0, NONE), (A_0, NONE), (B_0, ErrorCode(5))))
    tree = decoded_response(8, 9, response)["topics"]
    assert [(topic["name"], len(topic["partitions"])) for topic in tree] == [("b", 2), ("a", 1)]


# -- records -------------------------------------------------------------------------------------


def test_produce_answers_have_a_message_only_with_an_error() -> None:
    """KIP-467 and KIP-951: message and current leader are sent only with an error."""
    failed = ErrorCode.NOT_LEADER_OR_FOLLOWER
    good, bad = (
        data.ProducePartitionResponse(A_0, error, 7, error_message="why", current_leader=(1, 4))
        for error in (NONE, failed)
    )
    told, untold = (
        decoded_response(0, 10, data.ProduceResponse((one,), 3, (BROKER,))) for one in (bad, good)
    )
    (result,) = told["responses"][0]["partitionResponses"]
    assert (result["errorMessage"], result["baseOffset"]) == ("why", 7)
    assert result["currentLeader"] == {"leaderId": 1, "leaderEpoch": 4}
    assert told["nodeEndpoints"] == [{"nodeId": 1, "host": "h", "port": 9, "rack": "r"}]
    assert told["throttleTimeMs"] == 3
    (result,) = untold["responses"][0]["partitionResponses"]
    assert result["errorMessage"] is None
    assert "currentLeader" not in result


def test_batches_of_a_fetch_follow_each_other() -> None:
    """Without a diverging epoch and a leader there are no tagged fields."""
    batches = tuple(
        RecordBatch.from_bytes(build_batch([Record(at, 5, b"k", b"v" * at)])) for at in (1, 200)
    )
    plain = data.FetchPartitionResponse(A_0, NONE, 7, 6, 5, batches)
    tree = decoded_response(1, 12, data.FetchResponse(NONE, 4, (plain,)))
    (result,) = tree["responses"][0]["partitions"]
    assert result == {
        "partitionIndex": 0, "errorCode": 0, "highWatermark": 7, "lastStableOffset": 6,
        "logStartOffset": 5, "abortedTransactions": None, "preferredReadReplica": -1,
        "records": b"".join(batch.data for batch in batches),
    }  # fmt: skip
    diverging = data.FetchPartitionResponse(
        A_0, NONE, diverging_epoch=data.EpochEndOffset(3, 40), current_leader=(2, 5),
        aborted_transactions=(data.AbortedTransaction(8, 9),),
    )  # fmt: skip
    tree = decoded_response(1, 12, data.FetchResponse(NONE, 4, (diverging,)))
    (result,) = tree["responses"][0]["partitions"]
    assert result["divergingEpoch"] == {"epoch": 3, "endOffset": 40}
    assert result["currentLeader"] == {"leaderId": 2, "leaderEpoch": 5}
    assert result["abortedTransactions"] == [{"producerId": 8, "firstOffset": 9}]
    assert result["records"] == b""


def test_an_unresolved_topic_id_is_answered_with_itself_and_unknown_topic_id() -> None:
    """Fetch 13 and later has ids only (KIP-516); the backend does not know the stand-in name."""

    class NoNames:
        def topic_id(self, topic: str) -> bytes | None:
            return None

        def topic_name(self, topic_id: bytes) -> str | None:
            return None

    topic_id = bytes(range(16))
    stand_in = TopicPartition(resolved_name(NoNames(), topic_id), 0)
    unknown = data.FetchPartitionResponse(stand_in, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    (topic,) = decoded_response(1, 13, data.FetchResponse(NONE, 0, (unknown,)))["responses"]
    assert topic["topicId"] == topic_id
    assert topic["partitions"][0]["errorCode"] == 100


# -- offsets -------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1])
def test_a_group_error_reaches_clients_of_old_offset_fetches_in_every_partition(
    version: int,
) -> None:
    """Old versions have no field for the error of the group."""
    request = groups.OffsetFetchRequest("g", (A_0, A_1))
    response = groups.OffsetFetchResponse(ErrorCode.NOT_COORDINATOR, ())
    (topic,) = decoded_response(9, version, response, request)["topics"]
    assert [result["errorCode"] for result in topic["partitions"]] == [16, 16]
    assert decoded_response(9, 2, response, request)["topics"] == []


def test_each_group_is_answered_under_its_name_since_version_8() -> None:
    found = groups.OffsetFetchResponse(NONE, (groups.CommittedOffset(A_0, NONE, 5),))
    refused = groups.OffsetFetchResponse(ErrorCode.NOT_COORDINATOR, ())
    asked = tuple(groups.OffsetFetchRequest(name, None) for name in "gh")
    tree = decoded_response(9, 8, (found, refused), SplitRequest(asked))["groups"]
    assert [(one["groupId"], len(one["topics"]), one["errorCode"]) for one in tree] == [
        ("g", 1, 0),
        ("h", 0, 16),
    ]


# -- groups --------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [NONE, ErrorCode.INVALID_REQUEST])
@pytest.mark.parametrize("message", [None, "", "said"])
def test_a_coordinator_without_a_message_has_null_before_version_4_and_none_after(
    error: ErrorCode, message: str | None
) -> None:
    found = data.Coordinator("g", error, 1, "h", 9, message)
    response = data.FindCoordinatorResponse((found,))
    assert decoded_response(10, 3, response)["errorMessage"] == (message or None)
    (tree,) = decoded_response(10, 4, response)["coordinators"]
    assert tree["errorMessage"] == (message or "")
    assert (tree["key"], tree["nodeId"], tree["host"], tree["port"]) == ("g", 1, "h", 9)


def test_the_missing_protocol_of_a_group_is_empty_before_version_7() -> None:
    """KIP-559: the protocol may be null since version 7."""
    response = groups.JoinGroupResponse(NONE, "m")
    assert decoded_response(11, 6, response)["protocolName"] == ""
    assert decoded_response(11, 7, response)["protocolName"] is None


def test_the_error_of_the_only_member_is_that_of_leaving_before_version_3() -> None:
    left = groups.LeftMember("m", None, ErrorCode.UNKNOWN_MEMBER_ID)
    for error, told in ((NONE, 25), (ErrorCode.NOT_COORDINATOR, 16)):
        response = groups.LeaveGroupResponse(error, (left,))
        assert decoded_response(13, 2, response)["errorCode"] == told
        assert decoded_response(13, 3, response)["errorCode"] == error


@pytest.mark.parametrize(
    ("error", "asked", "allowed", "told"),
    [
        (NONE, True, None, 328),
        (NONE, True, 4, 4),
        (NONE, False, 4, NOT_ASKED),
        (ErrorCode.NOT_COORDINATOR, True, 4, NOT_ASKED),
    ],
)
def test_operations_on_a_group_are_sent_if_requested(
    error: ErrorCode, asked: bool, allowed: int | None, told: int
) -> None:
    """KIP-430: without an authorizer all operations are allowed; with an error none are sent."""
    described = groups.DescribedGroup(error, "g", authorized_operations=allowed)
    request = groups.DescribeGroupsRequest(("g",), asked)
    (tree,) = decoded_response(15, 5, groups.DescribeGroupsResponse((described,)), request)[
        "groups"
    ]
    assert tree["authorizedOperations"] == told


def test_members_of_the_consumer_protocol_may_have_no_assignment() -> None:
    """KIP-848: a missing assignment is null, and operations on a group are sent unchanged."""
    response = groups.ConsumerGroupHeartbeatResponse(NONE)
    assert decoded_response(68, 0, response)["assignment"] is None
    empty = groups.ConsumerGroupHeartbeatResponse(NONE, assignment=())
    assert decoded_response(68, 0, empty)["assignment"] == {"topicPartitions": []}
    for allowed, told in ((None, NOT_ASKED), (4, 4)):
        group = groups.ConsumerGroupDescription(NONE, "g", authorized_operations=allowed)
        tree = decoded_response(69, 0, groups.ConsumerGroupDescribeResponse((group,)))
        assert tree["groups"][0]["authorizedOperations"] == told


# -- administration ------------------------------------------------------------------------------


def test_the_missing_id_of_a_cluster_is_null() -> None:
    """In DescribeCluster the id is empty instead, and a client sees only its own listener."""
    response = data.MetadataResponse((BROKER,), "", 7, ())
    tree = decoded_response(3, 12, response)
    assert (tree["clusterId"], tree["controllerId"]) == (None, 7)
    assert tree["brokers"] == [{"nodeId": 1, "host": "h", "port": 9, "rack": "r"}]
    tree = decoded_response(60, 1, response)
    assert (tree["clusterId"], tree["errorCode"], tree["errorMessage"]) == ("", 0, None)
    assert (tree["endpointType"], tree["brokers"][0]["brokerId"]) == (1, 1)
    nowhere = data.MetadataResponse((BrokerInfo(2, (), None),), "c", 2, ())
    (broker,) = decoded_response(3, 12, nowhere)["brokers"]
    assert broker == {"nodeId": 2, "host": "", "port": -1, "rack": None}


@pytest.mark.parametrize("version", [8, 10, 11])
def test_without_an_authorizer_all_operations_are_authorized_if_requested(version: int) -> None:
    """DP 15.4: Int.Min when not asked; without an authorizer every operation is allowed."""
    topic = data.MetadataTopic(NONE, "orders", False, ())
    decided = data.MetadataTopic(NONE, "decided", False, (), authorized_operations=8)
    response = data.MetadataResponse((), "c", -1, (topic, decided))
    request = data.MetadataRequest(
        (), include_cluster_authorized_operations=True, include_topic_authorized_operations=True
    )
    tree = decoded_response(3, version, response, request)
    assert [one["topicAuthorizedOperations"] for one in tree["topics"]] == [3576, 8]
    assert tree.get("clusterAuthorizedOperations") == (8096 if version <= 10 else None)
    assert decoded_response(60, 0, response, request)["clusterAuthorizedOperations"] == 8096
    tree = decoded_response(3, version, response)
    assert {one["topicAuthorizedOperations"] for one in tree["topics"]} == {NOT_ASKED}


def test_a_topic_known_by_its_id_only_has_no_name() -> None:
    """The name is null since version 12, and empty before."""
    topic = data.MetadataTopic(ErrorCode.UNKNOWN_TOPIC_ID, None, False, ())
    response = data.MetadataResponse((), "c", -1, (topic,))
    assert [decoded_response(3, v, response)["topics"][0]["name"] for v in (11, 12)] == ["", None]


def test_describe_cluster_of_controllers_is_refused() -> None:
    """KIP-919: a broker that is asked for controllers answers MISMATCHED_ENDPOINT_TYPE."""
    refused = decoded_response(60, 1, WrongEndpointType(2))
    assert (refused["errorCode"], refused["controllerId"], refused["brokers"]) == (114, -1, [])
    assert "CONTROLLER" in refused["errorMessage"]
    unknown = decoded_response(60, 1, WrongEndpointType(9))
    assert (unknown["errorCode"], unknown["errorMessage"]) == (115, "Unsupported endpoint type 9")


@pytest.mark.parametrize("version", [5, 9, 12])
def test_a_partition_with_hundreds_of_replicas_is_written_too(version: int) -> None:
    """Counts that need two bytes of a varint are written correctly."""
    many = list(range(300))
    partition = data.MetadataPartition(NONE, 0, 1, 2, tuple(many), tuple(many[:150]), ())
    topic = data.MetadataTopic(NONE, "wide", False, (partition,))
    tree = decoded_response(3, version, data.MetadataResponse((), "c", -1, (topic,)))
    (read,) = tree["topics"][0]["partitions"]
    assert (read["replicaNodes"], read["isrNodes"]) == (many, many[:150])
    assert read["offlineReplicas"] == []


def test_a_created_topic_is_answered_with_its_configuration() -> None:
    """The entries are the broker's, or else those of the request; the list is never null."""
    entry = admin.ConfigEntry("x", "1", 5, read_only=True, is_sensitive=True)
    for topic, told in (
        (admin.TopicResult("a", NONE, config=(("y", "2"),), config_entries=(entry,)), (5, "x")),
        (admin.TopicResult("a", NONE, config=(("y", "2"),)), (1, "y")),
    ):
        (tree,) = decoded_response(19, 7, admin.CreateTopicsResponse((topic,)))["topics"]
        assert [(one["configSource"], one["name"]) for one in tree["configs"]] == [told]
    (tree,) = decoded_response(19, 7, admin.CreateTopicsResponse((admin.TopicResult("a", NONE),)))[
        "topics"
    ]
    assert tree["configs"] == []


@pytest.mark.parametrize(
    ("name", "topic_id", "asked", "told"),
    [
        ("a", "", ("a",), "a"),
        ("", "AAECAwQFBgcICQoLDA0ODw", ("",), None),
        ("", "", ("",), ""),
        ("", "", ("a",), None),
    ],
)
def test_a_topic_deleted_by_its_id_has_no_name_unless_it_is_the_empty_one(
    name: str, topic_id: str, asked: tuple[str, ...], told: str | None
) -> None:
    result = admin.TopicResult(name, ErrorCode.UNKNOWN_TOPIC_ID, topic_id=topic_id)
    response = admin.DeleteTopicsResponse((result,))
    request = admin.DeleteTopicsRequest(asked)
    (tree,) = decoded_response(20, 6, response, request)["responses"]
    assert tree["name"] == told
    (tree,) = decoded_response(20, 5, response, request)["responses"]
    assert tree["name"] == name


def test_an_election_error_reaches_clients_of_version_0_in_every_partition() -> None:
    """Version 0 of ElectLeaders has no field for an error of the whole request."""
    request = admin.ElectLeadersRequest(0, (A_0, B_0))
    response = admin.ElectLeadersResponse(ErrorCode.NOT_CONTROLLER)
    results = decoded_response(43, 0, response, request)["replicaElectionResults"]
    assert [one["partitionResult"][0]["errorCode"] for one in results] == [41, 41]
    assert decoded_response(43, 1, response, request)["replicaElectionResults"] == []


def test_sensitive_values_are_not_sent() -> None:
    """Neither the value of a sensitive configuration nor its synonyms' values are sent."""
    synonyms = (("password", "default", 5),)
    entry = admin.ConfigEntry("password", "secret", 1, True, synonyms=synonyms)
    result = admin.DescribeConfigsResult(admin.ConfigResource(4, "1"), NONE, None, (entry,))
    tree = decoded_response(32, 4, admin.DescribeConfigsResponse((result,)))["results"][0][
        "configs"
    ][0]
    assert (tree["value"], tree["isSensitive"]) == (None, True)
    assert tree["synonyms"] == [{"name": "password", "value": None, "source": 5}]


def test_topics_without_replicas_in_a_directory_may_be_named_too() -> None:
    replica = admin.StoredReplica(B_0, 5, -1, False)
    described = admin.DescribedLogDir(NONE, "/d", (replica,), ("a",))
    tree = decoded_response(35, 4, admin.DescribeLogDirsResponse(NONE, (described,)))
    (directory,) = tree["results"]
    assert [(t["name"], len(t["partitions"])) for t in directory["topics"]] == [("a", 0), ("b", 1)]


def test_an_isr_that_is_not_stored_is_empty() -> None:
    """An ISR that was not stored is empty, and without KRaft the state is "recovered"."""
    results = (control.AlterIsrPartitionResponse(A_0, ErrorCode.FENCED_LEADER_EPOCH),)
    (topic,) = decoded_response(56, 1, control.AlterIsrResponse(NONE, results))["topics"]
    (tree,) = topic["partitions"]
    assert topic["topicName"] == "a"
    assert tree == {
        "partitionIndex": 0, "errorCode": 74, "leaderId": 0, "leaderEpoch": 0, "isr": [],
        "leaderRecoveryState": 0, "partitionEpoch": 0,
    }  # fmt: skip


# -- security ------------------------------------------------------------------------------------


def test_acls_stand_under_their_resources() -> None:
    """Deleted ACLs are listed one by one, each with an error of its own."""
    one, other = (acls.Resource(acls.ResourceType.TOPIC, name) for name in "ab")
    read, write = (
        acls.AclEntry("User:a", "*", operation, acls.Permission.ALLOW)
        for operation in (acls.AclOperation.READ, acls.AclOperation.WRITE)
    )
    found = (acls.Acl(one, read), acls.Acl(other, read), acls.Acl(one, write))
    tree = decoded_response(29, 3, acls.DescribeAclsResponse(NONE, None, found))["resources"]
    assert [(r["resourceName"], len(r["acls"])) for r in tree] == [("a", 2), ("b", 1)]
    assert tree[0]["acls"][1]["operation"] == acls.AclOperation.WRITE
    deleted = acls.DeleteAclsResponse((acls.DeletedAcls(NONE, None, found[:1]),))
    (tree,) = decoded_response(31, 3, deleted)["filterResults"][0]["matchingAcls"]
    assert tree == {
        "errorCode": 0, "errorMessage": None, "resourceType": 2, "resourceName": "a",
        "patternType": 3, "principal": "User:a", "host": "*", "operation": 3, "permissionType": 3,
    }  # fmt: skip


def test_a_principal_is_sent_as_type_and_name() -> None:
    """The name of a principal may contain a colon."""
    token = delegation_tokens.DelegationToken("id", "User:a:b", "", ("User:c",), 1, 2, 3, b"h")
    created = decoded_response(38, 3, delegation_tokens.CreateDelegationTokenResponse(NONE, token))
    assert (created["principalType"], created["principalName"]) == ("User", "a:b")
    assert (created["tokenRequesterPrincipalType"], created["hmac"]) == ("", b"h")
    (tree,) = decoded_response(
        41, 3, delegation_tokens.DescribeDelegationTokenResponse(NONE, (token,))
    )["tokens"]
    assert tree["renewers"] == [{"principalType": "User", "principalName": "c"}]


@pytest.mark.parametrize(
    ("error", "message", "told"),
    [(NONE, None, ""), (NONE, "said", "said"), (ErrorCode.INVALID_REQUEST, None, None)],
)
def test_without_an_error_the_message_is_empty(
    error: ErrorCode, message: str | None, told: str | None
) -> None:
    """Without an error the message is empty; with one the entries of quotas are null."""
    entries = (((("user", None),), (("x", 2.5),)),)
    tree = decoded_response(48, 1, quotas.DescribeClientQuotasResponse(error, message, entries))
    assert tree["errorMessage"] == told
    assert (tree["entries"] is None) == (error is not NONE)
    tree = decoded_response(
        50, 0, authentication.DescribeUserScramCredentialsResponse(error, message)
    )
    assert tree["errorMessage"] == told
