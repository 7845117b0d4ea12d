"""Describing and altering quotas (KIP-546; Kafka: ``ZkAdminManager``)."""

from __future__ import annotations

import json

import pytest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.security.quotas import (
    ANY,
    CLIENT_ID,
    DEFAULT,
    EXACT,
    IP,
    USER,
    AlterClientQuotasRequest,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    Entity,
    QuotaAlteration,
    QuotaFilterComponent,
)
from fakekafka.statemachines.security.quota_admin import QuotaAdmin
from fakekafka.tests.support.run_now import run_now
from fakekafka.tests.support.zookeeper_fixture import ZkFixture, with_top_level_paths

ALICE: Entity = ((USER, "alice"),)
ALICE_APP: Entity = ((USER, "alice"), (CLIENT_ID, "app"))
EVERY_USER: Entity = ((USER, None),)
APP: Entity = ((CLIENT_ID, "app"),)
ADDRESS: Entity = ((IP, "10.0.0.1"),)
RATE = "producer_byte_rate"


@pytest.fixture
def fixture() -> ZkFixture:
    return with_top_level_paths()


def alter(
    fixture: ZkFixture, entity: Entity, *, validate_only: bool = False, **changes: float | None
) -> tuple[ErrorCode, str | None]:
    """Return the outcome of one alteration."""
    request = AlterClientQuotasRequest(
        (QuotaAlteration(entity, tuple(changes.items())),), validate_only
    )
    ((named, error, text),) = run_now(QuotaAdmin(fixture.zk).alter(request)).results
    assert named == entity
    return error, text


def describe(
    fixture: ZkFixture, *components: QuotaFilterComponent, is_strict: bool = False
) -> DescribeClientQuotasResponse:
    request = DescribeClientQuotasRequest(components, is_strict)
    return run_now(QuotaAdmin(fixture.zk).describe(request))


def entities(response: DescribeClientQuotasResponse) -> list[Entity]:
    assert response.error is ErrorCode.NONE
    return [entity for entity, _ in response.entries]


@pytest.mark.parametrize(
    ("entity", "path"),
    [
        (ALICE, "/config/users/alice"),
        (((USER, "a b"),), "/config/users/a%20b"),
        (EVERY_USER, "/config/users/<default>"),
        (ALICE_APP, "/config/users/alice/clients/app"),
        (APP, "/config/clients/app"),
        (((CLIENT_ID, None),), "/config/clients/<default>"),
    ],
)
def test_a_quota_is_stored_under_its_entity(fixture: ZkFixture, entity: Entity, path: str) -> None:
    """A whole number is stored without decimals, and every broker is notified."""
    assert alter(fixture, entity, producer_byte_rate=1000.0) == (ErrorCode.NONE, None)
    assert json.loads(fixture.zookeeper.get(path) or b"")["config"] == {RATE: "1000"}
    (change,) = fixture.zookeeper.children("/config/changes")
    told = json.loads(fixture.zookeeper.get(f"/config/changes/{change}") or b"")
    assert told["entity_path"] == path.removeprefix("/config/")
    assert describe(fixture).entries == ((entity, ((RATE, 1000.0),)),)


def test_the_quota_of_an_address_is_one_of_connections(fixture: ZkFixture) -> None:
    """An address has no quota of bytes (KIP-612)."""
    assert alter(fixture, ADDRESS, connection_creation_rate=5.0)[0] is ErrorCode.NONE
    assert describe(fixture).entries == ((ADDRESS, (("connection_creation_rate", 5.0),)),)
    error, text = alter(fixture, ADDRESS, producer_byte_rate=5.0)
    assert (error, text) == (
        ErrorCode.INVALID_REQUEST,
        "Invalid configuration key producer_byte_rate",
    )
    assert alter(fixture, ALICE, connection_creation_rate=5.0)[0] is ErrorCode.INVALID_REQUEST


def test_a_change_leaves_the_other_quotas_of_an_entity(fixture: ZkFixture) -> None:
    """None removes a quota; it is no error if there is none."""
    alter(fixture, ALICE, producer_byte_rate=1.0, request_percentage=12.5)
    alter(fixture, ALICE, producer_byte_rate=None, consumer_byte_rate=2.0)
    assert describe(fixture).entries == (
        (ALICE, (("consumer_byte_rate", 2.0), ("request_percentage", 12.5))),
    )
    assert alter(fixture, ALICE, controller_mutation_rate=None)[0] is ErrorCode.NONE
    alter(fixture, ALICE, consumer_byte_rate=None, request_percentage=None)
    assert describe(fixture).entries == ()


def test_a_quota_that_is_only_validated_is_not_stored(fixture: ZkFixture) -> None:
    """Its errors are reported nevertheless."""
    assert alter(fixture, ALICE, validate_only=True, producer_byte_rate=1.0)[0] is ErrorCode.NONE
    assert alter(fixture, ALICE, validate_only=True, wrong=1.0)[0] is ErrorCode.INVALID_REQUEST
    assert describe(fixture).entries == ()
    assert fixture.zookeeper.children("/config/changes") == []


@pytest.mark.parametrize("value", [1.5, 1.00001])
def test_a_rate_of_bytes_is_whole(fixture: ZkFixture, value: float) -> None:
    """A value that differs from a whole number by less than a millionth is accepted."""
    assert alter(fixture, ALICE, producer_byte_rate=value) == (
        ErrorCode.INVALID_REQUEST,
        "Configuration producer_byte_rate must be a LONG value",
    )
    assert alter(fixture, ALICE, producer_byte_rate=1.9999999)[0] is ErrorCode.NONE
    assert describe(fixture).entries == ((ALICE, ((RATE, 2.0),)),)


@pytest.mark.parametrize(
    ("entity", "text"),
    [
        ((), "Invalid empty client quota entity"),
        ((("group", "g"),), "Unhandled client quota entity type: group"),
        (((USER, ""),), "Empty user not supported"),
        (
            ((IP, "10.0.0.1"), (USER, "alice")),
            "Invalid quota entity combination, IP entity should not be used with user/client ID "
            "entity.",
        ),
    ],
)
def test_an_invalid_entity_is_refused(fixture: ZkFixture, entity: Entity, text: str) -> None:
    """Other alterations of the request succeed."""
    alterations = (QuotaAlteration(entity, ((RATE, 1.0),)), QuotaAlteration(APP, ((RATE, 1.0),)))
    response = run_now(QuotaAdmin(fixture.zk).alter(AlterClientQuotasRequest(alterations)))
    assert response.results == (
        (entity, ErrorCode.INVALID_REQUEST, text),
        (APP, ErrorCode.NONE, None),
    )
    assert entities(describe(fixture)) == [APP]


@pytest.fixture
def many(fixture: ZkFixture) -> ZkFixture:
    """Store quotas of five entities."""
    for entity in (ALICE, ALICE_APP, EVERY_USER, APP):
        alter(fixture, entity, producer_byte_rate=1.0)
    alter(fixture, ADDRESS, connection_creation_rate=1.0)
    return fixture


@pytest.mark.parametrize(
    ("components", "is_strict", "expected"),
    [
        ((), False, {ALICE, ALICE_APP, EVERY_USER, APP, ADDRESS}),
        ((), True, set()),
        ((QuotaFilterComponent(USER, EXACT, "alice"),), False, {ALICE, ALICE_APP}),
        ((QuotaFilterComponent(USER, EXACT, "alice"),), True, {ALICE}),
        ((QuotaFilterComponent(USER, EXACT, "bob"),), False, set()),
        ((QuotaFilterComponent(USER, DEFAULT),), False, {EVERY_USER}),
        ((QuotaFilterComponent(USER, ANY),), False, {ALICE, ALICE_APP, EVERY_USER}),
        ((QuotaFilterComponent(CLIENT_ID, ANY),), False, {ALICE_APP, APP}),
        ((QuotaFilterComponent(CLIENT_ID, ANY),), True, {APP}),
        (
            (QuotaFilterComponent(USER, ANY), QuotaFilterComponent(CLIENT_ID, EXACT, "app")),
            True,
            {ALICE_APP},
        ),
        ((QuotaFilterComponent(IP, ANY),), False, {ADDRESS}),
    ],
)
def test_a_filter_says_which_entities_are_described(
    many: ZkFixture,
    components: tuple[QuotaFilterComponent, ...],
    is_strict: bool,
    expected: set[Entity],
) -> None:
    """A strict filter leaves out entities that have other types than its own."""
    assert set(entities(describe(many, *components, is_strict=is_strict))) == expected


@pytest.mark.parametrize(
    ("kinds", "error", "text"),
    [
        (("",), ErrorCode.INVALID_REQUEST, "Unexpected empty filter component entity type"),
        (("group",), ErrorCode.UNSUPPORTED_VERSION, "Custom entity type 'group' not supported"),
        ((USER, USER), ErrorCode.INVALID_REQUEST, "Duplicate user filter component entity type"),
        (
            (CLIENT_ID, CLIENT_ID),
            ErrorCode.INVALID_REQUEST,
            "Duplicate client filter component entity type",
        ),
        (
            (IP, USER),
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination, IP filter component should not be used "
            "with user or clientId filter component.",
        ),
    ],
)
def test_an_invalid_filter_is_refused(
    many: ZkFixture, kinds: tuple[str, ...], error: ErrorCode, text: str
) -> None:
    """The messages are Kafka's."""
    response = describe(many, *(QuotaFilterComponent(kind, ANY) for kind in kinds))
    assert (response.error, response.error_message, response.entries) == (error, text, ())
