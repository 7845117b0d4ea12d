"""Real clients on listeners with TLS and SASL: each mechanism with each client that supports it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

import pytest
from fakekafka import Cluster, UsageError
from fakekafka.protocol.data import MetadataRequest
from fakekafka.tests.support.secure_clients import TOPICS, Login, Refused
from fakekafka.tests.support.signing import signing_keys
from fakekafka.wire.kafka.security.tokens import unsecured_token

pytestmark = [pytest.mark.clients, pytest.mark.slow]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


def make_cluster(runtime: str) -> Cluster:
    return Cluster(
        2,
        runtime=runtime,
        topics={"orders": 1},
        security={
            "listeners": [
                "PLAINTEXT",
                "SSL",
                {"name": "MUTUAL", "protocol": "SSL", "client_auth": "required"},
                "SASL_PLAINTEXT",
                "SASL_SSL",
            ],
            "users": {"alice": "secret"},
            "client_auth": "requested",
        },
    )


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with make_cluster("live") as cluster:
        yield cluster
        assert cluster.failures == []


def test_the_threaded_runtime_has_the_same_listeners() -> None:
    """Its sockets use an event loop of their own."""
    with make_cluster("threaded") as cluster:
        for login in (Login("SSL"), Login("SASL_SSL", "SCRAM-SHA-256")):
            assert "orders" in TOPICS["confluent-kafka"](cluster, login)
        with pytest.raises(Refused):
            TOPICS["confluent-kafka"](cluster, Login("SASL_SSL", "PLAIN", password="wrong"))
        assert cluster.failures == []


def principals_that_asked(cluster: Cluster, client: str, login: Login) -> set[str]:
    """Return the principals of metadata requests while a client lists topics."""
    seen: set[str] = set()

    def look(delivery: object) -> None:
        if isinstance(getattr(delivery, "message", None), MetadataRequest):
            context = delivery.context  # type: ignore[attr-defined]
            if context is not None:
                seen.add(context.principal)

    cluster.runtime.network.observe(look)
    try:
        assert "orders" in TOPICS[client](cluster, login)
    finally:
        cluster.runtime.network.stop_observing(look)
    return seen


@pytest.mark.parametrize("client", TOPICS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_a_client_comes_in_by_sasl(
    cluster: Cluster, client: str, mechanism: str, protocol: str
) -> None:
    """The principal of its requests is the user."""
    token = cluster.security.token("alice") if mechanism == "OAUTHBEARER" else None
    login = Login(protocol, mechanism, token=token)
    assert principals_that_asked(cluster, client, login) == {"User:alice"}


@pytest.mark.parametrize("client", TOPICS)
def test_metadata_contain_the_addresses_of_the_listener_that_a_client_uses(
    cluster: Cluster, client: str
) -> None:
    """With other addresses the client would use the wrong protocol."""
    for login in (Login(), Login("SSL")):
        assert "orders" in TOPICS[client](cluster, login)


@pytest.mark.parametrize("client", TOPICS)
def test_the_certificate_names_the_client(cluster: Cluster, client: str) -> None:
    """By default the principal is the whole distinguished name."""
    certificate = cluster.security.client_certificate("alice", organization="Acme")
    login = Login("SSL", certificate=certificate, listener="MUTUAL")
    assert principals_that_asked(cluster, client, login) == {"User:CN=alice,O=Acme"}


@pytest.mark.parametrize("client", TOPICS)
def test_without_a_certificate_a_client_is_anonymous_where_none_is_required(
    cluster: Cluster, client: str
) -> None:
    """The listener requests a certificate without requiring one."""
    assert principals_that_asked(cluster, client, Login("SSL")) == {"User:ANONYMOUS"}


@pytest.mark.parametrize("client", TOPICS)
@pytest.mark.parametrize("kind", ["none", "expired", "foreign"])
def test_a_bad_certificate_is_refused(
    cluster: Cluster, client: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The handshake fails, and a line of the broker's log has the reason."""
    certificate = None
    if kind != "none":
        certificate = cluster.security.client_certificate(
            "alice", expired=kind == "expired", foreign=kind == "foreign"
        )
    login = Login("SSL", certificate=certificate, listener="MUTUAL")
    with caplog.at_level(logging.WARNING, "fakekafka.wire"), pytest.raises(Refused):
        TOPICS[client](cluster, login)
    assert "the TLS handshake failed" in caplog.text


@pytest.mark.parametrize("client", TOPICS)
def test_a_client_that_does_not_trust_the_authority_does_not_connect(
    cluster: Cluster, client: str
) -> None:
    """The brokers' certificates are signed by an authority unknown to the client."""
    with pytest.raises(Refused):
        TOPICS[client](cluster, Login("SSL", trusts=False))


@pytest.mark.parametrize(
    ("client", "mechanism", "told"),
    [
        ("confluent-kafka", "PLAIN", "Authentication failed: Invalid username or password"),
        ("confluent-kafka", "SCRAM-SHA-256", "invalid credentials with SASL mechanism SCRAM"),
        *(("kafka-python", mechanism, "") for mechanism in ("PLAIN", "SCRAM-SHA-512")),
        *(("aiokafka", mechanism, "") for mechanism in ("PLAIN", "SCRAM-SHA-256")),
    ],
)
def test_a_client_reports_why_it_was_refused(
    cluster: Cluster, client: str, mechanism: str, told: str
) -> None:
    """librdkafka passes Kafka's message on to its user; the other clients log it."""
    with pytest.raises(Refused) as refused:
        TOPICS[client](cluster, Login("SASL_PLAINTEXT", mechanism, password="wrong"))
    assert told in str(refused.value)


@pytest.mark.parametrize("client", TOPICS)
def test_an_expired_token_is_refused(cluster: Cluster, client: str) -> None:
    """The broker answers with the error of RFC 7628."""
    token = unsecured_token("alice", time.time() - 100, 50)
    with pytest.raises(Refused):
        TOPICS[client](cluster, Login("SASL_PLAINTEXT", "OAUTHBEARER", token=token))


def test_users_come_and_go_while_the_cluster_runs(cluster: Cluster) -> None:
    """Every broker knows a change when ``add_user`` and ``remove_user`` return."""
    login = Login("SASL_PLAINTEXT", "SCRAM-SHA-256", user="dora", password="new")
    with pytest.raises(Refused):
        TOPICS["kafka-python"](cluster, login)
    cluster.security.add_user("dora", "new")
    assert "orders" in TOPICS["kafka-python"](cluster, login)
    cluster.security.remove_user("dora")
    with pytest.raises(Refused):
        TOPICS["kafka-python"](cluster, login)


def test_credentials_outlive_the_brokers(cluster: Cluster) -> None:
    """They are in ZooKeeper, from where a restarted broker reads them."""
    for broker_id in (1, 2):
        cluster.broker(broker_id).restart()
    cluster.wait_until(lambda: cluster.controller.id is not None)
    login = Login("SASL_PLAINTEXT", "SCRAM-SHA-512")
    assert "orders" in TOPICS["aiokafka"](cluster, login)


def test_a_cluster_that_other_machines_can_reach_logs_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The brokers are made for tests, and by default listen on this machine only."""
    Cluster(1)
    assert caplog.text == ""
    Cluster(1, host="0.0.0.0", advertised_host="127.0.0.1")
    assert "others can reach them" in caplog.text


def test_a_listener_is_found_by_name_or_protocol(cluster: Cluster) -> None:
    """Two listeners use SSL, and one of them has that name."""
    assert cluster.bootstrap_servers == cluster.bootstrap_servers_of("PLAINTEXT")
    assert cluster.bootstrap_servers_of("SSL") != cluster.bootstrap_servers_of("MUTUAL")
    names = ["PLAINTEXT", "SSL", "MUTUAL", "SASL_PLAINTEXT", "SASL_SSL"]
    assert list(cluster.broker(1).ports) == names
    with pytest.raises(UsageError, match="there are PLAINTEXT"):
        cluster.bootstrap_servers_of("CLIENTS")


@pytest.mark.parametrize("client", TOPICS)
def test_rules_map_the_name_in_a_certificate(client: str) -> None:
    """``ssl.principal.mapping.rules`` are applied to the name."""
    security = {
        "listeners": "SSL",
        "client_auth": "required",
        "principal_mapping_rules": "RULE:^CN=(.*?),O=Acme$/$1@acme/U",
    }
    with Cluster(1, topics={"orders": 1}, security=security) as cluster:
        certificate = cluster.security.client_certificate("alice", organization="Acme")
        login = Login("SSL", certificate=certificate)
        assert principals_that_asked(cluster, client, login) == {"User:ALICE@ACME"}
        stranger = cluster.security.client_certificate("alice", organization="Other")
        with pytest.raises(Refused):
            TOPICS[client](cluster, Login("SSL", certificate=stranger))


@pytest.mark.parametrize("client", TOPICS)
def test_a_token_signed_with_a_configured_key_names_the_client(client: str) -> None:
    """OAUTHBEARER with a key set (KIP-768) no longer accepts unsecured tokens."""
    keys, sign = signing_keys()
    security = {"listeners": "SASL_PLAINTEXT", "mechanisms": "OAUTHBEARER", "token_keys": keys}
    with Cluster(1, topics={"orders": 1}, security=security) as cluster:
        login = Login("SASL_PLAINTEXT", "OAUTHBEARER", token=sign("alice"))
        assert principals_that_asked(cluster, client, login) == {"User:alice"}
        unsecured = unsecured_token("alice", time.time())
        with pytest.raises(Refused):
            TOPICS[client](cluster, Login("SASL_PLAINTEXT", "OAUTHBEARER", token=unsecured))
