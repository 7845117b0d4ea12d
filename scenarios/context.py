"""The cluster of a scenario file, against which the names in the file are checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..protocol.config import validate_topic_config
from ..protocol.errors import UsageError
from ..protocol.names import ADMIN, broker_name, zookeeper_name
from ..testing.defaults import log_dirs
from ..testing.handles.roles import BrokerReference
from ..testing.parameters.kinds import ANYWHERE, BadArgument, Context, as_problem
from ..testing.parameters.parameter import nearest
from ..testing.parameters.toml_values import toml_value
from .spec import ClusterSpec, TopicSpec

OTHER_MACHINES = ("clients", ADMIN)
"""Machines besides those of brokers, ZooKeeper servers and the workloads' clients."""


class ScenarioError(UsageError):
    """Raised for an invalid scenario; names the file, the key, and what would be valid."""

    def __init__(self, source: str, key: str | None, problem: str) -> None:
        """``key`` is None if the problem is the file itself."""
        if key is None:
            super().__init__(f"{source} {problem}")
        else:
            super().__init__(f"{source}: {key}: {problem}" if key else f"{source}: {problem}")
        self.source = source
        self.key: str = key or ""


class FileContext(Context):
    """Checks the brokers, machines, topics and partitions that a file names."""

    has_text_keys = True

    def __init__(self, cluster: ClusterSpec) -> None:
        self.cluster = cluster
        self.topics: Mapping[str, TopicSpec] = {topic.name: topic for topic in cluster.topics}

    def write(self, value: Any) -> str:
        return toml_value(value)

    def write_shortened(self, value: Any) -> str:
        return ANYWHERE.write_shortened(value)

    def broker(self, broker: int | str) -> int | str:
        with as_problem():
            reference = BrokerReference(broker)
        if reference.value is not None and reference.value not in self.cluster.broker_ids:
            raise BadArgument(f"no broker {broker}; {ids_text(self.cluster.broker_ids)}")
        if reference.topic:
            self.partition(reference.topic, reference.partition)
        return broker

    def machine(self, machine: int | str) -> int | str:
        cluster = self.cluster
        if not isinstance(machine, str):
            return self.broker(machine)
        if machine == "controller" or (":" in machine and machine not in cluster.clients):
            return self.broker(machine)
        servers = tuple(range(1, cluster.zookeepers + 1))
        role, _, _ = machine.partition("-")
        known = {"broker": cluster.broker_ids, "zk": servers}.get(role)
        if known is not None and machine not in [f"{role}-{one}" for one in known]:
            there = ids_text(known, f"{role}-", "there are")
            raise BadArgument(f"no machine {machine!r}; {there}")
        if known is None and machine not in (*OTHER_MACHINES, *cluster.clients):
            machines = [broker_name(one) for one in cluster.broker_ids]
            machines += [zookeeper_name(one) for one in servers]
            hint = nearest(machine, [*machines, *OTHER_MACHINES, *cluster.clients])
            raise BadArgument(f"no machine {machine!r}{hint}")
        return machine

    def topic(self, name: str) -> str:
        if name not in self.topics:
            raise BadArgument(f"{name!r} is not in cluster.topics{nearest(name, self.topics)}")
        return name

    def partition(self, topic: str, number: int) -> tuple[str, int]:
        self.topic(topic)
        count = self.topics[topic].partitions
        if number >= count:
            raise BadArgument(f"{topic} has partitions 0 to {count - 1}, not {number}")
        return topic, number

    def replicas(self, broker_ids: list[int]) -> list[int]:
        if not broker_ids or len(set(broker_ids)) != len(broker_ids):
            raise BadArgument(f"must be a list of different broker ids, not {broker_ids!r}")
        for broker_id in broker_ids:
            self.broker(broker_id)
        return broker_ids

    def server(self, server_id: int) -> int:
        if server_id > self.cluster.zookeepers:
            ids = ids_text(range(1, self.cluster.zookeepers + 1))
            raise BadArgument(f"no ZooKeeper {server_id}; {ids}")
        return server_id

    def log_dir(self, number: int) -> int:
        last = max(len(log_dirs(self.cluster.config.get("log.dirs"))) - 1, 0)
        if number > last:
            raise BadArgument(f"no log directory {number}; log.dirs has those from 0 to {last}")
        return number

    def topic_config(self, config: Mapping[str, str]) -> dict[str, str]:
        try:
            validate_topic_config(dict(config), self.cluster.release)
        except ValueError as error:
            raise BadArgument(str(error)) from None
        return dict(config)


def ids_text(ids: Sequence[int], prefix: str = "", begin: str = "ids are") -> str:
    """Describe ids: ``ids are 1 to 5``; ids that are not consecutive are listed."""
    names = [f"{prefix}{one}" for one in ids]
    if tuple(ids) == tuple(range(ids[0], ids[0] + len(ids))):
        return f"{begin} {names[0]} to {names[-1]}"
    return f"{begin} {', '.join(names)}"
