"""``ssl.principal.mapping.rules``: from the name in a certificate to a principal (KIP-371)."""

from __future__ import annotations

import pytest
from fakekafka.protocol.errors import UsageError
from fakekafka.wire.kafka.security.tls import PrincipalRules

ALICE = "CN=Alice Smith,OU=ServiceUsers,O=Acme,C=US"

CASES = [
    ("", ALICE, ALICE),
    ("DEFAULT", ALICE, ALICE),
    ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", ALICE, "Alice Smith"),
    ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L", ALICE, "alice smith"),
    ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/U", ALICE, "ALICE SMITH"),
    ("RULE:^CN=(\\w+) (\\w+),.*$/$2.$1@acme/", ALICE, "Smith.Alice@acme"),
    ("RULE:^CN=(.*?),OU=Admins.*$/$1/, DEFAULT", ALICE, ALICE),
    ("RULE:^OU=(.*)$/$1/,RULE:^.*O=(.*),C.*$/$1/", ALICE, "Acme"),
    ("RULE:^CN=(.*?),.*$/$1/,RULE:^.*O=(.*),C.*$/$1/,DEFAULT", ALICE, "Alice Smith"),
    ("RULE:CN=(.*)/$1/", "CN=a,O=b", "a,O=b"),
    ("RULE:CN=a/$1/", "CN=a", "$1"),
    ("RULE:^CN=(.*?),O=x\\/y$/$1/", "CN=a,O=x/y", "a"),
    ("RULE:O=(.*)/$1/", ALICE, None),
    ("RULE:CN=(.*?)/$1/", "x,CN=a", None),
]


@pytest.mark.parametrize(("rules", "name", "expected"), CASES)
def test_the_first_rule_that_matches_the_whole_name_decides(
    rules: str, name: str, expected: str | None
) -> None:
    """If no rule matches, the result is None and the client is refused."""
    assert PrincipalRules(rules).name(name) == expected


@pytest.mark.parametrize(
    "rules",
    ["deft", "DEFAULT,", "RULE:abc", "RULE:a/b", "RULE:a/b/X", "RULE:a/b/LU", "DEFAULT;DEFAULT"],
)
def test_an_invalid_rule_is_refused(rules: str) -> None:
    with pytest.raises(UsageError, match=r"ssl\.principal\.mapping\.rules: invalid rule"):
        PrincipalRules(rules)
