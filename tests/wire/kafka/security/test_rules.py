"""Rights that each request needs: without them the answer is an error, and no broker sees it."""

from __future__ import annotations

import dataclasses

import pytest
from fakekafka.protocol import admin, data, groups, transactions
from fakekafka.protocol.data import RequestContext
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.records.batch import build_batch
from fakekafka.protocol.records.format import Record
from fakekafka.protocol.security.acls import CLUSTER_NAME, OPERATIONS, AclOperation
from fakekafka.protocol.values import TopicPartition, uuid_bytes, uuid_text
from fakekafka.protocol.versions import behaviour
from fakekafka.tests.support.guarded_requests import (
    CLUSTER,
    GROUP,
    NEEDS,
    RECORDS,
    TOPIC,
    TXN,
    A,
    B,
    Guarded,
    errors_in,
    fetch,
)
from fakekafka.tests.support.request_shapes import shapes
from fakekafka.tests.support.wire_trees import body
from fakekafka.wire.kafka.api import CodecAnswer, SplitRequest
from fakekafka.wire.kafka.codec import Codec
from fakekafka.wire.kafka.security.guard import GuardedBackend
from fakekafka.wire.kafka.security.rules import RULES, UNRESTRICTED

A1 = TopicPartition("a", 1)
IMPLYING = {
    AclOperation.DESCRIBE: (
        AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER,
    ),
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.ALTER_CONFIGS,),
}  # fmt: skip

REFUSALS = [
    (name, missing, error)
    for name, (_, rights, errors) in NEEDS.items()
    for missing, error in zip(range(len(rights)), errors.split(), strict=True)
]


@pytest.mark.parametrize("name", NEEDS)
def test_a_request_with_all_rights_reaches_the_broker(name: str) -> None:
    """A request with all its rights reaches the broker."""
    request, rights, _ = NEEDS[name]
    guarded = Guarded(*rights)
    assert guarded.ask(request) is None
    (seen,) = guarded.backend.requests
    assert type(seen) is type(request)


@pytest.mark.parametrize(("name", "missing", "error"), REFUSALS)
def test_a_request_without_a_right_is_refused(name: str, missing: int, error: str) -> None:
    """The answer is Kafka's error for the resource, and the request does not reach the broker."""
    request, rights, _ = NEEDS[name]
    guarded = Guarded(*rights[:missing], *rights[missing + 1 :])
    empty = data.MetadataResponse((), "c", 1, ()) if name == "Metadata" else None
    answer = guarded.ask(request, empty)
    expected = ErrorCode[f"{error}_AUTHORIZATION_FAILED"]
    assert errors_in(answer) == {expected}
    if name != "Metadata":
        assert guarded.backend.requests == []


@pytest.mark.parametrize(("name", "missing", "error"), REFUSALS)
def test_no_other_right_takes_the_place_of_a_missing_one(
    name: str, missing: int, error: str
) -> None:
    """Other rights to the same resource do not suffice unless they imply the missing right."""
    request, rights, _ = NEEDS[name]
    kind, resource, needed = rights[missing]
    others = tuple(
        (kind, resource, operation)
        for operation in OPERATIONS[kind]
        if operation is not needed and operation not in IMPLYING.get(needed, ())
    )
    guarded = Guarded(*rights[:missing], *rights[missing + 1 :], *others)
    answer = guarded.ask(request, data.MetadataResponse((), "c", 1, ()))
    assert ErrorCode[f"{error}_AUTHORIZATION_FAILED"] in errors_in(answer)


def test_topics_are_deleted_by_id_only_with_the_right_to_delete() -> None:
    """A topic's name is told only to a client that may describe it, and unknown ids are passed on
    (``KafkaApis.handleDeleteTopicsRequest``).
    """
    names = {"hidden": "b", "seen": "a", "own": "c"}
    guarded = Guarded((TOPIC, "a", AclOperation.DESCRIBE), (TOPIC, "c", AclOperation.DELETE))
    guarded.backend.ids = {name: uuid_bytes(text_of(key)) for key, name in names.items()}
    request = admin.DeleteTopicsRequest(
        ("b",), 1000, tuple(text_of(key) for key in (*names, "unknown"))
    )
    answer = guarded.ask(request, admin.DeleteTopicsResponse(()))
    (seen,) = guarded.backend.requests
    assert (seen.topics, seen.topic_ids) == ((), (text_of("own"), text_of("unknown")))
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert [(r.name, r.topic_id, r.error) for r in answer.topics] == [
        ("b", "", refused),
        ("", text_of("hidden"), refused),
        ("a", text_of("seen"), refused),
    ]
    alone = admin.DeleteTopicsRequest((), 1000, (text_of("hidden"),))
    (result,) = guarded.ask(alone).topics
    assert (result.name, result.error) == ("", refused)


def text_of(name: str) -> str:
    """Return a topic id."""
    return uuid_text(name.encode().ljust(16, b"."))


def test_partitions_of_each_topic_are_authorized_separately() -> None:
    """The broker gets the allowed partitions, and the client gets an answer for each."""
    request = data.ListOffsetsRequest(
        -1, (data.ListOffsetsPartition(B, -1), data.ListOffsetsPartition(A, -1))
    )
    guarded = Guarded((TOPIC, "a", AclOperation.DESCRIBE))
    good = data.ListOffsetsPartitionResponse(A, ErrorCode.NONE, -1, 7)
    answer = guarded.ask(request, data.ListOffsetsResponse((good,)))
    (seen,) = guarded.backend.requests
    assert [p.topic_partition for p in seen.partitions] == [A]
    assert {p.topic_partition: p.error for p in answer.partitions} == {
        A: ErrorCode.NONE,
        B: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }


def test_one_refused_topic_keeps_a_transaction_from_the_others() -> None:
    """Beside a refused topic, allowed partitions are answered with OPERATION_NOT_ATTEMPTED."""
    request = transactions.AddPartitionsToTxnRequest(
        (transactions.TransactionPartitions("t", 1, 0, (A, B)),)
    )
    guarded = Guarded((TXN, "t", AclOperation.WRITE), (TOPIC, "a", AclOperation.WRITE))
    (result,) = guarded.ask(request).results
    assert dict(result.partitions) == {
        A: ErrorCode.OPERATION_NOT_ATTEMPTED,
        B: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }


def test_metadata_of_all_topics_omit_topics_without_the_right_to_describe() -> None:
    """Topics that the client may not describe are left out."""
    guarded = Guarded((TOPIC, "a", AclOperation.READ))
    topics = tuple(data.MetadataTopic(ErrorCode.NONE, name, False, ()) for name in "ab")
    answer = guarded.ask(
        data.MetadataRequest(None, include_topic_authorized_operations=True),
        data.MetadataResponse((), "c", 1, topics),
    )
    (topic,) = answer.topics
    assert topic.name == "a"
    assert topic.authorized_operations == 1 << AclOperation.READ | 1 << AclOperation.DESCRIBE


def test_a_topic_by_id_that_may_not_be_described_is_unknown() -> None:
    """A client does not get the name of a topic that it may not describe."""
    topic = data.MetadataTopic(ErrorCode.NONE, "b", False, (), "id")
    answer = Guarded().ask(
        data.MetadataRequest((), topic_ids=("id",)), data.MetadataResponse((), "c", 1, (topic,))
    )
    assert [(t.error, t.name) for t in answer.topics] == [(ErrorCode.UNKNOWN_TOPIC_ID, None)]


def test_a_missing_topic_is_not_created_without_the_right_to_create() -> None:
    """The answer is TOPIC_AUTHORIZATION_FAILED although the client may describe the topic."""
    request, nothing = data.MetadataRequest(("new",)), data.MetadataResponse((), "c", 1, ())
    answer = Guarded((TOPIC, "new", AclOperation.DESCRIBE)).ask(request, nothing)
    assert errors_in(answer) == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    creator = Guarded((TOPIC, "new", AclOperation.DESCRIBE), (TOPIC, "new", AclOperation.CREATE))
    creator.ask(request, nothing)
    assert creator.backend.requests[0].topics == ("new",)


def test_an_existing_topic_is_described_without_the_right_to_create() -> None:
    """An existing topic is described even if the request, as a producer's does, allows creation."""
    reader = Guarded((TOPIC, "a", AclOperation.DESCRIBE))
    found = data.MetadataResponse((), "c", 1, (data.MetadataTopic(ErrorCode.NONE, "a", False, ()),))
    answer = reader.ask(data.MetadataRequest(("a",), allow_auto_topic_creation=True), found)
    assert [(topic.name, topic.error) for topic in answer.topics] == [("a", ErrorCode.NONE)]
    assert reader.backend.requests[0].topics == ("a",)


def test_operations_on_the_cluster_are_sent_only_with_the_right_to_describe() -> None:
    """Clients that may not describe the cluster get an empty set of operations (KIP-430)."""
    request = data.MetadataRequest((), False, include_cluster_authorized_operations=True)
    nothing = data.MetadataResponse((), "c", 1, ())
    assert Guarded().ask(request, nothing).authorized_operations == 0
    guarded = Guarded((CLUSTER, CLUSTER_NAME, AclOperation.ALTER))
    bits = guarded.ask(request, nothing).authorized_operations
    assert bits == 1 << AclOperation.ALTER | 1 << AclOperation.DESCRIBE


def test_all_committed_offsets_omit_topics_without_the_right_to_describe() -> None:
    """Offsets of topics that the client may not describe are left out."""
    guarded = Guarded((GROUP, "g", AclOperation.DESCRIBE), (TOPIC, "a", AclOperation.READ))
    stored = tuple(groups.CommittedOffset(each, ErrorCode.NONE, 7) for each in (A, B))
    answer = guarded.ask(
        groups.OffsetFetchRequest("g", None), groups.OffsetFetchResponse(ErrorCode.NONE, stored)
    )
    assert answer.partitions == stored[:1]


def test_offsets_are_deleted_of_topics_that_may_be_read() -> None:
    """Offsets of topics that the client may not read are answered with an error (KIP-496)."""
    guarded = Guarded(
        (GROUP, "g", AclOperation.DELETE),
        (TOPIC, "a", AclOperation.READ),
        (TOPIC, "b", AclOperation.DELETE),
    )
    response = groups.OffsetDeleteResponse(ErrorCode.NONE, ((A, ErrorCode.NONE),))
    answer = guarded.ask(groups.OffsetDeleteRequest("g", (A, B)), response)
    assert guarded.backend.requests == [groups.OffsetDeleteRequest("g", (A,))]
    assert dict(answer.partitions) == {A: ErrorCode.NONE, B: ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def test_each_described_group_is_authorized_separately() -> None:
    """A refused group does not affect an allowed group, whose operations are sent."""
    guarded = Guarded((GROUP, "g", AclOperation.READ))
    found = groups.DescribedGroup(ErrorCode.NONE, "g")
    answer = guarded.ask(
        groups.DescribeGroupsRequest(("h", "g"), include_authorized_operations=True),
        groups.DescribeGroupsResponse((found,)),
    )
    (seen,) = guarded.backend.requests
    assert seen.group_ids == ("g",)
    bits = 1 << AclOperation.READ | 1 << AclOperation.DESCRIBE
    told = {each.group_id: (each.error, each.authorized_operations) for each in answer.groups}
    assert told["g"] == (ErrorCode.NONE, bits)
    assert told["h"][0] is ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_groups_are_listed_that_may_be_described() -> None:
    """Before 2.1 a client could list all groups or none (KIP-231)."""
    listed = tuple(groups.ListedGroup(name, "consumer", "Stable") for name in "gh")
    response = groups.ListGroupsResponse(ErrorCode.NONE, listed)
    right = (GROUP, "g", AclOperation.DESCRIBE)
    answer = Guarded(right).ask(groups.ListGroupsRequest(), response)
    assert [group.group_id for group in answer.groups] == ["g"]
    old = Guarded(right, kafka_version="1.1").ask(groups.ListGroupsRequest(), response)
    assert old.error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_an_idempotent_producer_needed_a_right_of_its_own_before_2_8() -> None:
    """IDEMPOTENT_WRITE on the cluster (KIP-679) is needed wherever the batch is in the request."""
    batch = build_batch(
        [Record(0, 0, None, b"x")], producer_id=5, producer_epoch=0, base_sequence=0
    )
    right = (TOPIC, "a", AclOperation.WRITE)
    plain, idempotent = data.ProducePartition(A, RECORDS), data.ProducePartition(A1, batch)
    for partitions in ((idempotent,), (plain, idempotent)):
        request = data.ProduceRequest(1, 9, partitions)
        assert Guarded(right).ask(request) is None
        answer = Guarded(right, kafka_version="1.1").ask(request)
        assert errors_in(answer) == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}


def test_a_transactional_batch_in_a_request_without_an_id_is_refused() -> None:
    """No right permits a transaction without an id (``handleProduceRequest``)."""
    batch = build_batch(
        [Record(0, 0, None, b"x")],
        producer_id=5,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    rights = ((TOPIC, "a", AclOperation.WRITE), (TXN, "x", AclOperation.WRITE))
    plain, transactional = data.ProducePartition(A, RECORDS), data.ProducePartition(A1, batch)
    for partitions in ((transactional,), (plain, transactional)):
        request = data.ProduceRequest(-1, 9, partitions, "x")
        assert Guarded(*rights).ask(request) is None
        guarded = Guarded(*rights)
        answer = guarded.ask(dataclasses.replace(request, transactional_id=None))
        assert errors_in(answer) == {ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
        assert guarded.backend.requests == []


def test_a_topic_was_created_by_a_right_to_the_cluster_alone_before_2_0() -> None:
    """Before 2.0 the error of each topic is CLUSTER_AUTHORIZATION_FAILED (KIP-277)."""
    request = admin.CreateTopicsRequest((admin.NewTopic("a"),))
    answer = Guarded((TOPIC, "a", AclOperation.CREATE), kafka_version="1.1").ask(request)
    assert errors_in(answer) == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}


def test_a_reader_gets_no_fetch_session() -> None:
    """A consumer gets no fetch session, so its rights are checked at each fetch."""
    guarded = Guarded((TOPIC, "a", AclOperation.READ))
    request = dataclasses.replace(fetch(), session_id=0, session_epoch=0)
    guarded.ask(request)
    (seen,) = guarded.backend.requests
    assert (seen.session_id, seen.session_epoch) == (0, -1)


def test_a_follower_at_broker_0_is_a_follower() -> None:
    """A follower keeps its fetch session, and needs a right to the cluster and to no topic."""
    guarded = Guarded((CLUSTER, CLUSTER_NAME, AclOperation.CLUSTER_ACTION))
    request = dataclasses.replace(fetch(0), session_id=7, session_epoch=3)
    assert guarded.ask(request) is None
    assert guarded.backend.requests == [request]


def test_requests_without_a_rule_are_refused() -> None:
    """Requests without a rule are refused, and so are all requests without an authorizer."""
    guarded = Guarded((TOPIC, "a", AclOperation.ALL))
    unknown = RULES.pop(data.ListOffsetsRequest)
    try:
        answer = guarded.ask(NEEDS["ListOffsets"][0])
    finally:
        RULES[data.ListOffsetsRequest] = unknown
    assert errors_in(answer) == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    guard = GuardedBackend(guarded.backend, behaviour("3.9"), lambda _: None, lambda _, __: True)
    answers: list[object] = []
    guard.submit(1, "c", fetch(), RequestContext(principal="User:alice"), answers.append)
    assert errors_in(answers) == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    assert guarded.backend.requests == []


def test_every_request_has_a_rule() -> None:
    """Every request has a rule, as a request without one would be refused unexpectedly."""
    codec = Codec("3.9")
    missing = set()
    for shape in shapes():
        data = body(shape.key, shape.version, shape.fields(2))
        request = codec.decode(shape.key, shape.version, memoryview(data))
        if isinstance(request, CodecAnswer):
            continue
        parts = request.requests if isinstance(request, SplitRequest) else (request,)
        missing |= {
            type(part).__name__ for part in parts if type(part) not in (*RULES, *UNRESTRICTED)
        }
    assert missing == set()


@pytest.mark.parametrize(
    ("version", "api_version", "text"),
    [
        ("3.9", 3, "Group authorization failed."),
        ("3.9", 1, "Group authorization failed."),
        ("3.9", 4, None),
        ("1.1", 1, None),
    ],
)
def test_a_refused_find_coordinator_has_an_error_message_since_2_4(
    version: str, api_version: int, text: str | None
) -> None:
    """``FindCoordinatorRequest.getErrorResponse``: version 4 leaves the message to the client."""
    guarded = Guarded(kafka_version=version)
    answer = guarded.ask(data.FindCoordinatorRequest(("g",)), api_version=api_version)
    assert answer is not None
    assert [found.error_message for found in answer.coordinators] == [text]


@pytest.mark.parametrize(
    ("version", "api_version", "error"),
    [
        ("3.9", 1, ErrorCode.NONE),
        ("3.9", 2, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ("2.8", 1, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ],
)
def test_a_refused_client_of_offset_fetch_1_gets_no_error_since_3_5(
    version: str, api_version: int, error: ErrorCode
) -> None:
    """Version 1 has no field for the error; before 3.5 the codec put it into each partition."""
    answer = Guarded(kafka_version=version).ask(
        groups.OffsetFetchRequest("g", (A,)), api_version=api_version
    )
    assert answer == groups.OffsetFetchResponse(error, ())
