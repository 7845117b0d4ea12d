"""Which quota applies to a client, and how long the client is throttled."""

from __future__ import annotations

import pytest
from fakekafka.protocol.config import BrokerConfig
from fakekafka.protocol.security.quotas import PRODUCER_BYTE_RATE
from fakekafka.statemachines.security.client_quotas import ClientQuotas, ClientRate, TokenBucket

ORDER = (
    ("users", "u/clients/c"),
    ("users", "u/clients/<default>"),
    ("users", "u"),
    ("users", "<default>/clients/c"),
    ("users", "<default>/clients/<default>"),
    ("users", "<default>"),
    ("clients", "c"),
    ("clients", "<default>"),
)
"""Quotas from the most specific to the most general."""


def with_quotas(entities: tuple[tuple[str, str], ...]) -> ClientQuotas:
    quotas = ClientQuotas(BrokerConfig())
    for number, (kind, entity) in enumerate(entities):
        change = quotas.user_changed if kind == "users" else quotas.client_changed
        change(entity, {PRODUCER_BYTE_RATE: str(number + 1)})
    return quotas


@pytest.mark.parametrize("left_out", range(len(ORDER)))
def test_the_most_particular_quota_holds(left_out: int) -> None:
    """A user's client takes precedence over the user, a name over the default, users over
    clients."""
    found = with_quotas(ORDER[left_out:]).quota(PRODUCER_BYTE_RATE, "u", "c")
    assert found is not None
    assert found[1] == 1


def test_without_a_quota_no_client_is_throttled() -> None:
    """Usage is not counted either."""
    quotas = ClientQuotas(BrokerConfig())
    assert quotas.quota(PRODUCER_BYTE_RATE, "u", "c") is None
    assert quotas.use_bytes(PRODUCER_BYTE_RATE, "u", "c", 10**9, 0) == 0


def test_a_rate_is_that_of_eleven_seconds() -> None:
    """Windows that have not begun count as empty (Kafka: ``Rate``)."""
    rate = ClientRate(11, 1000)
    rate.record(11000, 0)
    assert rate.measure(0) == (1100.0, 10000)
    assert rate.throttle_ms(1000, 0) == 1000
    assert rate.throttle_ms(1100, 0) == 0


def test_usage_is_forgotten_after_eleven_seconds() -> None:
    """The oldest window is dropped."""
    rate = ClientRate(11, 1000)
    rate.record(11000, 0)
    assert rate.measure(11000)[0] == 0


def test_a_window_ends_after_its_time() -> None:
    """Usage at that moment belongs to the next window, and stays when the previous one is
    dropped."""
    rate = ClientRate(11, 1000)
    rate.record(5000, 0)
    rate.record(1000, 1000)
    assert rate.measure(10_999)[0] > 500
    assert rate.measure(11_000)[0] == 100


def test_the_callback_reports_when_the_last_quota_is_removed() -> None:
    """While any quota is left, usage is counted."""
    told: list[bool] = []
    quotas = ClientQuotas(BrokerConfig())
    quotas.on_change = told.append
    for entity in ("c", "d"):
        quotas.client_changed(entity, {PRODUCER_BYTE_RATE: "1"})
    for entity in ("c", "d"):
        quotas.client_changed(entity, {})
    assert told == [True, True, True, False]


def test_users_with_the_default_quota_do_not_share_it() -> None:
    """Each user has the whole quota."""
    quotas = with_quotas((("users", "<default>"),))
    assert quotas.use_bytes(PRODUCER_BYTE_RATE, "u", "c", 1000, 0) > 0
    assert quotas.use_bytes(PRODUCER_BYTE_RATE, "v", "c", 1, 0) == 0


def test_users_and_clients_share_the_quota_that_names_them() -> None:
    """A user's quota is shared by all the user's clients, that of a client id by all its users."""
    quotas = with_quotas((("users", "u"),))
    assert quotas.use_bytes(PRODUCER_BYTE_RATE, "u", "c", 1000, 0) > 0
    assert quotas.use_bytes(PRODUCER_BYTE_RATE, "u", "d", 1, 0) > 0
    quotas = with_quotas((("clients", "c"),))
    assert quotas.use_bytes(PRODUCER_BYTE_RATE, "u", "c", 1000, 0) > 0
    assert quotas.use_bytes(PRODUCER_BYTE_RATE, "v", "c", 1, 0) > 0
    quotas = with_quotas((("clients", "<default>"),))
    assert quotas.use_bytes(PRODUCER_BYTE_RATE, "u", "c", 1000, 0) > 0
    assert quotas.use_bytes(PRODUCER_BYTE_RATE, "u", "d", 1, 0) == 0


def test_a_changed_quota_resets_usage() -> None:
    """Earlier usage does not throttle clients (Kafka: ``updateQuotaMetricConfigs``)."""
    quotas = with_quotas((("clients", "c"),))
    assert quotas.use_bytes(PRODUCER_BYTE_RATE, "u", "c", 1000, 0) > 0
    quotas.client_changed("c", {PRODUCER_BYTE_RATE: "100"})
    assert quotas.use_bytes(PRODUCER_BYTE_RATE, "u", "c", 1000, 0) == 0
    assert quotas.use_bytes(PRODUCER_BYTE_RATE, "u", "c", 1, 0) > 0


def test_using_exactly_the_quota_throttles_no_client() -> None:
    """This is the quota of ten seconds used at once; one more byte throttles the client."""
    quotas = with_quotas((("clients", "c"),))
    assert quotas.use_bytes(PRODUCER_BYTE_RATE, "u", "c", 10, 0) == 0
    assert quotas.use_bytes(PRODUCER_BYTE_RATE, "u", "c", 1, 0) == 1000


def test_a_bucket_fills_up_to_its_burst() -> None:
    """Tokens beyond the burst are lost."""
    bucket = TokenBucket(11)
    assert bucket.take(11, 1.0, 0) == 0
    assert bucket.take(5, 1.0, 5000) == 0
    assert bucket.take(12, 1.0, 100_000) == 1000
    assert bucket.take(0, 1.0, 100_400) == 600


def test_a_bucket_may_be_overdrawn_once() -> None:
    """Then clients wait until the deficit is refilled (Kafka: ``TokenBucket``)."""
    bucket = TokenBucket(11)
    assert bucket.take(20, 1.0, 0) == 9000
    assert bucket.is_empty(1.0, 8999)
    assert not bucket.is_empty(1.0, 9000)


def test_a_bucket_that_was_emptied_owes_nothing() -> None:
    """The next request may overdraw it; with a deficit, requests are refused (Kafka:
    ``TokenBucket``)."""
    bucket = TokenBucket(11)
    assert bucket.take(11, 1.0, 0) == 0
    assert not bucket.is_empty(1.0, 0)
    assert bucket.take(1, 1.0, 0) == 1000
    assert bucket.is_empty(1.0, 0)


def test_the_names_of_a_quota_are_sanitized_in_zookeeper_alone() -> None:
    """In ZooKeeper a blank is ``%20`` and a slash ``%2F`` (Kafka: ``Sanitizer``)."""
    quotas = ClientQuotas(BrokerConfig())
    quotas.client_changed("my%20app%2F1", {PRODUCER_BYTE_RATE: "1"})
    quotas.user_changed("CN%3Da%2COU%3Db/clients/my%20app", {PRODUCER_BYTE_RATE: "2"})
    assert quotas.quota(PRODUCER_BYTE_RATE, "u", "my app/1") == ((False, "my app/1"), 1)
    named = ("CN=a,OU=b", "my app")
    assert quotas.quota(PRODUCER_BYTE_RATE, *named) == (named, 2)


def test_an_address_waits_for_a_window_at_most() -> None:
    """However far one connection exceeds its rate (KIP-612, ``ConnectionQuotas``)."""
    quotas = ClientQuotas(BrokerConfig())
    quotas.ip_changed("a", {"connection_creation_rate": "0.01"})
    assert quotas.connect("a", 0) == 1000


def test_an_address_that_connects_too_often_is_turned_away() -> None:
    """KIP-612: it is throttled for one window at most; a connection that is not accepted does not
    count."""
    quotas = ClientQuotas(BrokerConfig())
    assert [quotas.connect("a", 0) for _ in range(100)] == [0] * 100
    quotas.ip_changed("<default>", {"connection_creation_rate": "1"})
    quotas.ip_changed("b", {"connection_creation_rate": "2"})
    assert [quotas.connect("a", 0) for _ in range(12)] == [0] * 10 + [1000] * 2
    assert [quotas.connect("b", 0) for _ in range(21)] == [0] * 20 + [500]
    assert quotas.connect("a", 2000) == 1000
    assert quotas.connect("a", 9999) == 1  # those that were turned away do not count
    assert quotas.connect("a", 11_000) == 0
    quotas.ip_changed("b", {})
    assert quotas.connect("b", 0) > 0
    quotas.ip_changed("<default>", {})
    assert quotas.connect("a", 0) == 0
    assert not quotas.limits_connections


def test_bytes_that_a_client_did_not_get_do_not_count() -> None:
    quotas = with_quotas((("clients", "c"),))
    assert quotas.bytes_in_window(PRODUCER_BYTE_RATE, "u", "c") == 10
    assert quotas.bytes_in_window(PRODUCER_BYTE_RATE, "u", "d") is None
    assert quotas.use_bytes(PRODUCER_BYTE_RATE, "u", "c", 11, 0) == 1000
    quotas.unrecord_bytes(PRODUCER_BYTE_RATE, "u", "c", 11, 0)
    quotas.unrecord_bytes(PRODUCER_BYTE_RATE, "u", "d", 11, 0)
    assert quotas.use_bytes(PRODUCER_BYTE_RATE, "u", "c", 10, 0) == 0


def test_the_time_of_requests_is_limited_as_per_cent_of_a_second() -> None:
    """KIP-124: a client is throttled for one window at most."""
    quotas = ClientQuotas(BrokerConfig())
    quotas.client_changed("c", {"request_percentage": "1"})
    assert quotas.limits_request_time
    quotas.use_request_time("u", "c", 100_000_000, 0)
    assert quotas.request_throttle_ms("u", "c", 0) == 0
    quotas.use_request_time("u", "c", 1_000_000, 0)
    assert quotas.request_throttle_ms("u", "c", 0) == 100
    quotas.use_request_time("u", "c", 900_000_000, 0)
    assert quotas.request_throttle_ms("u", "c", 0) == 1000
    quotas.use_request_time("u", "d", 900_000_000, 0)
    assert quotas.request_throttle_ms("u", "d", 0) == 0
    assert quotas.request_throttle_ms("u", "c", 11_000) == 0


def test_a_user_whose_requests_take_too_long_waits_at_every_client() -> None:
    """A user's quota is shared by all the user's clients."""
    quotas = ClientQuotas(BrokerConfig())
    quotas.user_changed("u", {"request_percentage": "1"})
    quotas.use_request_time("u", "c", 101_000_000, 0)
    assert quotas.request_throttle_ms("u", "d", 0) == 100
    assert quotas.request_throttle_ms("v", "c", 0) == 0


def test_a_quota_of_an_address_is_reported_and_can_be_read() -> None:
    """The callback is called when the quota is set, changed and removed, but not if there was
    none."""
    quotas = ClientQuotas(BrokerConfig())
    told: list[bool] = []
    quotas.on_change = told.append
    rate = "connection_creation_rate"
    quotas.ip_changed("a", {})
    assert told == []
    for count, value in enumerate((1.0, 2.0, None), 1):
        quotas.ip_changed("a", {} if value is None else {rate: str(value)})
        assert (len(told), quotas.limits_connections) == (count, value is not None)
        assert quotas.has_quota({"ip": "a"}, rate, value)
        assert not quotas.has_quota({"ip": "a"}, rate, 3.0)
    assert not quotas.has_quota({"ip": "a"}, rate, 2.0)


def test_forgetting_usage_resets_the_connection_counts() -> None:
    quotas = ClientQuotas(BrokerConfig())
    quotas.ip_changed("a", {"connection_creation_rate": "1"})
    assert [quotas.connect("a", 0) for _ in range(11)] == [0] * 10 + [1000]
    quotas.forget_usage()
    assert quotas.connect("a", 0) == 0
