"""Pieces that several tables of a scenario have: latencies, machines, brokers, conditions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ...protocol.errors import UsageError
from ...protocol.names import ADMIN, broker_name, zookeeper_name
from ..handles.roles import BrokerReference
from .conditions import Condition
from .spec import ClusterSpec, LatencySpec
from .table import Table, nearest

PARTITION_NAME = re.compile(r"(.+)-(\d+)")

OTHER_MACHINES = ("clients", ADMIN)
"""Beside those of brokers, of ZooKeeper servers, and of the workloads' clients."""


def read_bandwidth(table: Table, name: str) -> float | None:
    """Megabytes per second; None where the key is missing, which is without a limit."""
    if not table.has(name):
        return None
    rate = table.number(name, 0.0, 0.0)
    if not rate:
        raise table.error(name, "must be more than 0; leave it out for no limit")
    return rate


def read_latency(table: Table) -> LatencySpec:
    """``{constant_ms = 1}``, ``{uniform_ms = [0.1, 1]}``, ``{lognormal_ms = [0.5, 0.4]}``."""
    models = [name for name in ("constant_ms", "uniform_ms", "lognormal_ms") if table.has(name)]
    table.finish()
    if len(models) != 1:
        raise table.error("", "give exactly one of constant_ms, uniform_ms and lognormal_ms")
    name = models[0]
    if name == "constant_ms":
        return LatencySpec("constant", table.number(name, 0.0))
    values = table.items(name)
    if len(values) != 2 or not all(
        isinstance(v, (int, float)) and not isinstance(v, bool) and v >= 0 for v in values
    ):
        right = "[low, high]" if name == "uniform_ms" else "[median, sigma]"
        raise table.error(name, f"must be {right}, not {values!r}")
    if name == "uniform_ms":
        if values[0] > values[1]:
            raise table.error(name, f"the lower bound {values[0]} is above the upper {values[1]}")
        return LatencySpec("uniform", float(values[0]), float(values[1]))
    return LatencySpec("lognormal", float(values[0]), float(values[1]))


def ids_text(ids: Sequence[int], prefix: str = "", begin: str = "ids are") -> str:
    """``ids are 1 to 5``; those that do not follow each other are listed."""
    names = [f"{prefix}{one}" for one in ids]
    if ids == tuple(range(ids[0], ids[0] + len(ids))):
        return f"{begin} {names[0]} to {names[-1]}"
    return f"{begin} {', '.join(names)}"


def read_machine(table: Table, name: str, cluster: ClusterSpec) -> int | str:
    """A machine of the network: a broker id, or a name such as ``zk-1`` or ``clients``."""
    if not table.has(name):
        raise table.error(name, "is missing; write a broker id or a name such as 'zk-1'")
    return check_machine(table, name, table.raw(name), cluster)


def check_machine(table: Table, name: str, value: Any, cluster: ClusterSpec) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool):
        if value not in cluster.broker_ids:
            raise table.error(name, f"no broker {value}; {ids_text(cluster.broker_ids)}")
        return value
    if not isinstance(value, str):
        raise table.error(name, f"must be a broker id or a machine's name, not {value!r}")
    servers = tuple(range(1, cluster.zookeepers + 1))
    if value == "controller" or (":" in value and value not in cluster.clients):
        return _check_role(table, name, value, cluster).text
    role, _, _ = value.partition("-")
    known = {"broker": cluster.broker_ids, "zk": servers}.get(role)
    if known is not None and value not in [f"{role}-{one}" for one in known]:
        raise table.error(name, f"no machine {value!r}; {ids_text(known, f'{role}-', 'there are')}")
    if known is None and value not in (*OTHER_MACHINES, *cluster.clients):
        machines = [broker_name(one) for one in cluster.broker_ids]
        machines += [zookeeper_name(one) for one in servers]
        hint = nearest(value, [*machines, *OTHER_MACHINES, *cluster.clients])
        raise table.error(name, f"no machine {value!r}{hint}")
    return value


def read_condition(table: Table, name: str) -> Condition | None:
    """An expression over the cluster; None when the key is missing."""
    if not table.has(name):
        return None
    return make_condition(table, name, table.text(name))


def make_condition(table: Table, name: str, text: Any) -> Condition:
    if not isinstance(text, str):
        raise table.error(name, f"must be an expression as text, not {text!r}")
    try:
        return Condition(text)
    except UsageError as error:
        raise table.error(name, str(error)) from None


def check_broker(table: Table, name: str, cluster: ClusterSpec) -> BrokerReference:
    """A broker a fault is about; checked as far as the file tells."""
    if not table.has(name):
        raise table.error(name, "is missing; write an id, 'controller' or 'leader:orders-0'")
    value = table.raw(name)
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise table.error(name, f"must be a broker id or a role, not {value!r}")
    return _check_role(table, name, value, cluster)


def _check_role(table: Table, name: str, value: int | str, cluster: ClusterSpec) -> BrokerReference:
    try:
        reference = BrokerReference(value)
    except UsageError as error:
        raise table.error(name, str(error)) from None
    if reference.value is not None and reference.value not in cluster.broker_ids:
        raise table.error(name, f"no broker {value}; {ids_text(cluster.broker_ids)}")
    if reference.topic:
        check_partition(table, name, reference.topic, reference.partition, cluster)
    return reference


def check_partition(table: Table, name: str, topic: str, number: int, cluster: ClusterSpec) -> None:
    topics = {spec.name: spec for spec in cluster.topics}
    if topic not in topics:
        raise table.error(name, f"topic {topic!r} is not in cluster.topics{nearest(topic, topics)}")
    if number >= topics[topic].partitions:
        last = topics[topic].partitions - 1
        raise table.error(name, f"{topic} has partitions 0 to {last}, not {number}")
