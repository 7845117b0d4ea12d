"""The rules of the authorizer, one by one (Kafka: ``AclAuthorizer``)."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.config import BrokerConfig
from fakekafka.protocol.security.acls import (
    AclEntry,
    AclFilter,
    AclOperation,
    PatternType,
    Permission,
    Resource,
    ResourceType,
)
from fakekafka.protocol.versions import behaviour
from fakekafka.statemachines.security.authorizer import Authorizer

ALICE, BOB, HERE, THERE = "User:alice", "User:bob", "10.0.0.1", "10.0.0.2"
TOPIC = ResourceType.TOPIC
SUPERS = {"super.users": "User:root; User:alice"}


def authorizer(
    *acls: tuple[str, str, str, str], kafka_version: str = "3.9", host: str = "*", config: Any = ()
) -> Authorizer:
    """Return an authorizer with ACLs (pattern, principal, permission, operation); a pattern that
    ends in ``...`` is a prefix."""
    made = Authorizer(BrokerConfig(dict(config), kafka_version), behaviour(kafka_version))
    by_resource: dict[Resource, list[AclEntry]] = {}
    for pattern, principal, permission, operation in acls:
        is_prefix = pattern.endswith("...")
        kind = PatternType.PREFIXED if is_prefix else PatternType.LITERAL
        resource = Resource(TOPIC, pattern.removesuffix("..."), kind)
        entry = AclEntry(principal, host, AclOperation[operation], Permission[permission])
        by_resource.setdefault(resource, []).append(entry)
    for resource, entries in by_resource.items():
        made.set_acls(resource, entries)
    return made


def may(
    made: Authorizer, operation: str, topic: str = "orders", who: str = ALICE, host: str = HERE
) -> bool:
    return made.is_allowed(who, host, AclOperation[operation], TOPIC, topic)


CASES: dict[str, tuple[tuple[tuple[str, str, str, str], ...], str, bool]] = {
    "nothing is said": ((), "READ", False),
    "allowed": ((("orders", ALICE, "ALLOW", "READ"),), "READ", True),
    "another operation": ((("orders", ALICE, "ALLOW", "READ"),), "WRITE", False),
    "another user": ((("orders", BOB, "ALLOW", "READ"),), "READ", False),
    "another topic": ((("payments", ALICE, "ALLOW", "READ"),), "READ", False),
    "everybody": ((("orders", "User:*", "ALLOW", "READ"),), "READ", True),
    "all operations": ((("orders", ALICE, "ALLOW", "ALL"),), "ALTER_CONFIGS", True),
    "all topics": ((("*", ALICE, "ALLOW", "READ"),), "READ", True),
    "a prefix": ((("ord...", ALICE, "ALLOW", "READ"),), "READ", True),
    "another prefix": ((("pay...", ALICE, "ALLOW", "READ"),), "READ", False),
    "a prefix that is longer": ((("orders-eu...", ALICE, "ALLOW", "READ"),), "READ", False),
    "denied": ((("orders", ALICE, "DENY", "READ"),), "READ", False),
    "denied and allowed": (
        (("orders", ALICE, "ALLOW", "READ"), ("orders", ALICE, "DENY", "READ")),
        "READ",
        False,
    ),
    "allowed, all denied to everybody": (
        (("orders", ALICE, "ALLOW", "READ"), ("*", "User:*", "DENY", "ALL")),
        "READ",
        False,
    ),
    "allowed, denied to others": (
        (("orders", ALICE, "ALLOW", "READ"), ("orders", BOB, "DENY", "READ")),
        "READ",
        True,
    ),
    "allowed, another denied": (
        (("orders", ALICE, "ALLOW", "READ"), ("orders", ALICE, "DENY", "WRITE")),
        "READ",
        True,
    ),
    "allowed, denied by prefix": (
        (("orders", ALICE, "ALLOW", "READ"), ("o...", ALICE, "DENY", "READ")),
        "READ",
        False,
    ),
    **{
        f"{implying} implies DESCRIBE": ((("orders", ALICE, "ALLOW", implying),), "DESCRIBE", True)
        for implying in ("READ", "WRITE", "DELETE", "ALTER", "ALL")
    },
    "CREATE implies nothing": ((("orders", ALICE, "ALLOW", "CREATE"),), "DESCRIBE", False),
    "DESCRIBE implies nothing": ((("orders", ALICE, "ALLOW", "DESCRIBE"),), "READ", False),
    "ALTER_CONFIGS implies DESCRIBE_CONFIGS": (
        (("orders", ALICE, "ALLOW", "ALTER_CONFIGS"),),
        "DESCRIBE_CONFIGS",
        True,
    ),
    "a denied READ denies no DESCRIBE": (
        (("orders", ALICE, "ALLOW", "WRITE"), ("orders", ALICE, "DENY", "READ")),
        "DESCRIBE",
        True,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_operation_is_decided(name: str) -> None:
    """Deny takes precedence over allow; an operation without an ACL that allows it is refused."""
    acls, operation, expected = CASES[name]
    assert may(authorizer(*acls), operation) is expected


def test_an_acl_holds_for_its_host() -> None:
    """``*`` is any host."""
    made = authorizer(("orders", ALICE, "ALLOW", "READ"), host=HERE)
    assert may(made, "READ")
    assert not may(made, "READ", host=THERE)


def test_super_users_may_do_everything() -> None:
    """This includes operations that are denied to everyone."""
    made = authorizer(
        ("*", "User:*", "DENY", "ALL"), config={"super.users": "User:root; User:alice"}
    )
    assert may(made, "READ")
    assert not may(made, "READ", who=BOB)


def test_a_super_user_may_have_commas_in_its_name() -> None:
    """Names in certificates contain commas; super users are separated by semicolons."""
    carol = "User:CN=carol,OU=ops"
    made = authorizer(config={"super.users": f"User:root;{carol}"})
    assert may(made, "READ", who=carol)
    assert not may(made, "READ", who="User:CN=carol")


def test_resources_without_acls_may_be_open() -> None:
    """``allow.everyone.if.no.acl.found`` no longer applies once the resource has an ACL."""
    made = authorizer(
        ("payments", BOB, "ALLOW", "READ"), config={"allow.everyone.if.no.acl.found": True}
    )
    assert may(made, "READ")
    assert not may(made, "READ", "payments")


def test_altering_implied_no_describing_before_0_11() -> None:
    """Permission to delete did (Kafka: ``SimpleAclAuthorizer`` at 0.10.1)."""
    altering, deleting = ("orders", ALICE, "ALLOW", "ALTER"), ("orders", ALICE, "ALLOW", "DELETE")
    assert not may(authorizer(altering, kafka_version="0.10"), "DESCRIBE")
    assert may(authorizer(deleting, kafka_version="0.10"), "DESCRIBE")


@pytest.mark.parametrize(
    ("acls", "expected"),
    [
        ((), False),
        ((("orders", ALICE, "ALLOW", "WRITE"),), True),
        ((("ord...", ALICE, "ALLOW", "ALL"),), True),
        ((("orders", BOB, "ALLOW", "WRITE"),), False),
        ((("orders", ALICE, "ALLOW", "WRITE"), ("orders", ALICE, "DENY", "WRITE")), False),
        ((("orders", ALICE, "ALLOW", "WRITE"), ("o...", ALICE, "DENY", "WRITE")), False),
        ((("*", ALICE, "ALLOW", "WRITE"), ("*", ALICE, "DENY", "WRITE")), False),
        ((("o...", ALICE, "ALLOW", "WRITE"), ("orders", ALICE, "DENY", "WRITE")), True),
        ((("orders", ALICE, "ALLOW", "WRITE"), ("*", ALICE, "DENY", "READ")), True),
        ((("orders", ALICE, "ALLOW", "WRITE"), ("*", ALICE, "DENY", "WRITE")), False),
        ((("orders", ALICE, "ALLOW", "WRITE"), ("pay...", ALICE, "DENY", "WRITE")), True),
        ((("orders", ALICE, "ALLOW", "WRITE"), ("ord", ALICE, "DENY", "WRITE")), True),
        ((("orders", ALICE, "ALLOW", "READ"),), False),
        ((("orders", ALICE, "ALLOW", "WRITE"), ("*...", ALICE, "DENY", "WRITE")), True),
        ((("orders", BOB, "ALLOW", "WRITE"), ("payments", ALICE, "ALLOW", "WRITE")), True),
        (
            (
                ("orders", ALICE, "ALLOW", "WRITE"),
                ("orders", ALICE, "DENY", "WRITE"),
                ("payments", ALICE, "ALLOW", "WRITE"),
            ),
            True,
        ),
    ],
)
def test_a_right_to_any_topic_is_found(
    acls: tuple[tuple[str, str, str, str], ...], expected: bool
) -> None:
    """A principal that may write to any topic may have a producer id (KIP-679)."""
    made = authorizer(*acls)
    assert made.is_allowed_for_any(ALICE, HERE, AclOperation.WRITE, TOPIC) is expected


def test_an_acl_of_another_type_says_nothing() -> None:
    """An ACL of a group with the topic's name, of a group prefix, or of all groups does not
    count."""
    made = authorizer(("orders", ALICE, "ALLOW", "WRITE"))
    entry = AclEntry(ALICE, "*", AclOperation.ALL, Permission.DENY)
    for resource in (
        Resource(ResourceType.GROUP, "orders"),
        Resource(ResourceType.GROUP, "ord", PatternType.PREFIXED),
        Resource(ResourceType.GROUP, "*"),
    ):
        made.set_acls(resource, (entry,))
    assert may(made, "WRITE")
    assert made.is_allowed_for_any(ALICE, HERE, AclOperation.WRITE, TOPIC)
    assert not made.is_allowed_for_any(ALICE, HERE, AclOperation.READ, ResourceType.GROUP)


def test_a_super_user_has_a_right_to_any_topic() -> None:
    """This holds without an ACL, and even if an ACL denies it."""
    made = authorizer(("*", "User:*", "DENY", "ALL"), config=SUPERS)
    assert made.is_allowed_for_any(ALICE, HERE, AclOperation.WRITE, TOPIC)
    assert not made.is_allowed_for_any(BOB, HERE, AclOperation.WRITE, TOPIC)


def test_if_resources_without_acls_are_open_everyone_has_a_right_to_any_topic() -> None:
    """An ACL that denies it for all topics takes precedence
    (``AclAuthorizer.authorizeByResourceType``)."""
    is_open = {"allow.everyone.if.no.acl.found": True}
    made = authorizer(("payments", BOB, "ALLOW", "READ"), config=is_open)
    assert made.is_allowed_for_any(ALICE, HERE, AclOperation.WRITE, TOPIC)
    made = authorizer(("*", ALICE, "DENY", "WRITE"), config=is_open)
    assert not made.is_allowed_for_any(ALICE, HERE, AclOperation.WRITE, TOPIC)


def test_new_acls_of_a_resource_replace_the_former_ones() -> None:
    """If there are none, the resource counts as one that never had ACLs."""
    made = authorizer(("orders", ALICE, "ALLOW", "READ"), ("ord...", ALICE, "ALLOW", "WRITE"))
    orders = Resource(TOPIC, "orders")
    entry = AclEntry(ALICE, "*", AclOperation.CREATE, Permission.ALLOW)
    made.set_acls(orders, (entry,))
    assert [may(made, operation) for operation in ("READ", "WRITE", "CREATE")] == [
        False, True, True,
    ]  # fmt: skip
    made.set_acls(orders, ())
    made.set_acls(Resource(TOPIC, "ord", PatternType.PREFIXED), ())
    assert made.resources() == ()
    assert not may(made, "WRITE")


def test_the_operations_are_a_bit_set() -> None:
    """Metadata and DescribeGroups return this bit set (KIP-430)."""
    made = authorizer(("orders", ALICE, "ALLOW", "READ"))
    bits = made.operations(ALICE, HERE, TOPIC, "orders")
    assert bits == 1 << AclOperation.READ | 1 << AclOperation.DESCRIBE


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (AclFilter(), ["orders", "ord", "*"]),
        (AclFilter(resource_name="orders"), ["orders"]),
        (AclFilter(TOPIC, "orders", PatternType.MATCH), ["orders", "ord", "*"]),
        (AclFilter(TOPIC, "ord", PatternType.MATCH), ["ord", "*"]),
        (AclFilter(TOPIC, "ord", PatternType.PREFIXED), ["ord"]),
        (AclFilter(TOPIC, "ord", PatternType.LITERAL), []),
        (AclFilter(pattern=PatternType.LITERAL), ["orders", "*"]),
        (AclFilter(ResourceType.GROUP), []),
        (AclFilter(principal=BOB), ["ord"]),
        (AclFilter(host=THERE), []),
        (AclFilter(operation=AclOperation.WRITE), ["ord"]),
        (AclFilter(permission=Permission.DENY), ["*"]),
    ],
)
def test_a_filter_finds_acls(wanted: AclFilter, names: list[str]) -> None:
    """Each field of it narrows what is found."""
    made = authorizer(
        ("orders", ALICE, "ALLOW", "READ"),
        ("ord...", BOB, "ALLOW", "WRITE"),
        ("*", ALICE, "DENY", "READ"),
    )
    assert [acl.resource.name for acl in made.acls(wanted)] == names
