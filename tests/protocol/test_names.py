"""Names of machines and nodes, which are built and parsed in one place."""

from __future__ import annotations

import pytest
from fakekafka.protocol import names


def test_names_are_those_that_traces_and_rules_use() -> None:
    """The names stay as they are, because recorded traces and scenario files contain them."""
    assert names.broker_name(12) == "broker-12"
    assert names.controller_name(12) == "controller-12"
    assert names.zookeeper_name(1) == "zk-1"
    assert names.zookeeper_client_name(3) == "zkclient-3"
    assert names.fetcher_name(2, 1, 0) == "fetcher-2-from-1"
    assert names.fetcher_name(2, 1, 3) == "fetcher-2-from-1-3"


@pytest.mark.parametrize(
    ("name", "broker_id"),
    [
        ("broker-2", 2),
        ("controller-1001", 1001),
        ("fetcher-2-from-1", None),
        ("zk-1", None),
        ("broker-", None),
        ("broker-2-x", None),
        ("admin", None),
        ("", None),
    ],
)
def test_a_name_tells_which_broker_it_belongs_to(name: str, broker_id: int | None) -> None:
    """Only the names of brokers and of their controllers belong to a broker."""
    assert names.broker_id_of(name) == broker_id


def test_only_controllers_are_controllers() -> None:
    """The node of a broker's controller is a controller, and the broker is not."""
    assert names.is_controller_name(names.controller_name(1))
    assert not names.is_controller_name(names.broker_name(1))
