"""Scenario files: TOML to ``ScenarioSpec``, strictly.

Unknown keys are refused with the nearest valid one; every error names the file, the key and what
would be right. ``examples/scenarios`` shows the form.
"""

from __future__ import annotations

import copy
import itertools
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...protocol.config import BrokerConfig, validate_topic_config
from ...protocol.errors import UsageError
from ...protocol.versions import DEFAULT_KAFKA_VERSION, KAFKA_VERSIONS
from .. import arguments
from .batch_table import read_batch, read_costs
from .coordinated_table import read_coordinated
from .faults import read_fault
from .library import scenario_file
from .pieces import ids_text, read_bandwidth, read_condition, read_latency, read_machine
from .spec import (
    ClusterSpec,
    ExpectSpec,
    GroupSpec,
    LatencySpec,
    LinkSpec,
    NetworkSpec,
    ScenarioSpec,
    StopSpec,
    TopicSpec,
    TransformerSpec,
    WorkloadSpec,
)
from .story.reading import read_header, read_story
from .table import ScenarioError, Table, flatten, nearest
from .verdict import METRICS
from .workload_table import read_workload

__all__ = ["ScenarioError", "expand_matrix", "load_scenario", "parse_scenario",
           "scenario_values", "with_parameters"]  # fmt: skip


TEXT_MAX = 1_000_000
"""Characters of a scenario: some ten thousand faults."""
BROKERS_MAX = 10_000
"""Brokers of a cluster."""
ZOOKEEPERS_MAX = 99
PARTITIONS_MAX = 1_000_000


def load_scenario(path: str | Path, parameters: Mapping[str, Any] | None = None) -> ScenarioSpec:
    """Read a scenario's file, or one that comes with the package by its name.

    ``parameters`` (dotted key to value) are set over it.

    Raises ``ScenarioError``, also when the file cannot be read.
    """
    try:
        text = scenario_file(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ScenarioError(str(path), None, f"cannot be read: {reason}") from None
    return parse_scenario(text, str(path), parameters)


def parse_scenario(
    text: str, source: str = "<scenario>", parameters: Mapping[str, Any] | None = None
) -> ScenarioSpec:
    """A scenario from its TOML text; ``source`` names it in messages."""
    values = scenario_values(text, source, parameters)
    return _read_scenario(values, text, source, dict(parameters or {}))


def scenario_values(
    text: str, source: str = "<scenario>", parameters: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What a scenario's TOML says with its parameters set, not checked yet."""
    if len(text) > TEXT_MAX:
        raise ScenarioError(source, None, f"is longer than {TEXT_MAX:,} characters")
    try:
        values = tomllib.loads(text)
    except RecursionError:
        raise ScenarioError(source, None, "is not valid TOML: it is nested too deeply") from None
    except ValueError as error:  # a TOMLDecodeError, or a number of thousands of digits
        raise ScenarioError(source, None, f"is not valid TOML: {error}") from None
    for key, value in (parameters or {}).items():
        _set(values, key, value, source)
    return values


def with_parameters(spec: ScenarioSpec, parameters: Mapping[str, Any]) -> ScenarioSpec:
    """The same scenario with other values for some dotted keys, such as ``cluster.brokers``."""
    return parse_scenario(spec.text, spec.source, {**spec.parameters, **parameters})


def expand_matrix(spec: ScenarioSpec) -> list[ScenarioSpec]:
    """One scenario per combination of the matrix, the last key changing fastest.

    Each has its combination in ``parameters`` and no matrix of its own; a scenario without a
    matrix gives itself.
    """
    if not spec.matrix:
        return [spec]
    names = list(spec.matrix)
    combinations = itertools.product(*spec.matrix.values())
    expanded = []
    for values in combinations:
        parameters = {**spec.parameters, **dict(zip(names, values, strict=True))}
        expanded.append(parse_scenario(spec.text, spec.source, {**parameters, "matrix": {}}))
    return expanded


def _set(values: dict[str, Any], key: str, value: Any, source: str) -> None:
    """Set a dotted key; what follows ``config`` is one of Kafka's own dotted names."""
    parts = key.split(".")
    if "config" in parts[:-1]:
        cut = parts.index("config") + 1
        parts = [*parts[:cut], ".".join(parts[cut:])]
    place: Any = values
    for number, part in enumerate(parts[:-1]):
        if isinstance(place, list) or part.isdigit():
            if not isinstance(place, list) or not part.isdigit() or int(part) >= len(place):
                where = ".".join(parts[:number])
                raise ScenarioError(source, key, f"{where} has no entry {part!r}")
            place = place[int(part)]
        else:
            place = place.setdefault(part, {})
        if not isinstance(place, (dict, list)):
            raise ScenarioError(source, key, f"{'.'.join(parts[: number + 1])} is not a table")
    if isinstance(place, list):
        raise ScenarioError(source, key, "name a key inside an entry, such as faults.0.at_ms")
    if parts[-2:-1] == ["config"]:
        place.update({**flatten(place), parts[-1]: value})
        for name in [n for n, v in place.items() if isinstance(v, Mapping)]:
            del place[name]
        return
    place[parts[-1]] = copy.deepcopy(value)


def _read_scenario(
    values: dict[str, Any], text: str, source: str, parameters: dict[str, Any]
) -> ScenarioSpec:
    root = Table(source, "", values)
    name = root.text("name", Path(source).stem)
    description = root.text("description")
    seed = root.integer("seed", 0)
    header = read_header(root.table("story")) if root.has("story") else None
    versions = (DEFAULT_KAFKA_VERSION, *KAFKA_VERSIONS) if header is None else header.versions
    cluster = _read_cluster(root.table("cluster"), versions)
    workloads = tuple(
        read_workload(table, number, cluster)
        for number, table in enumerate(root.tables("workload"))
    )
    groups, transformers = read_coordinated(root, cluster)
    cluster = replace(cluster, clients=_client_names(root, workloads, groups, transformers))
    network = _read_network(root.table("network"), cluster)
    costs = read_costs(root.table("costs")) if root.has("costs") else None
    stop = _read_stop(root.table("stop"))
    end = stop if header is None else StopSpec(at_ms=math.inf)
    faults = tuple(read_fault(table, cluster, end) for table in root.tables("faults"))
    expect = tuple(_read_expect(table, stop) for table in root.tables("expect"))
    metrics = root.items("metrics")
    for metric in metrics:
        if metric not in METRICS:
            raise root.error("metrics", f"unknown metric {metric!r}{nearest(str(metric), METRICS)}")
    batch = read_batch(root.table("batch"))
    matrix = _read_matrix(root, text, source, parameters)
    story = None
    if header is not None:
        for other in (
            "workload",
            "groups",
            "transformers",
            "stop",
            "expect",
            "metrics",
            "matrix",
            "batch",
        ):
            if root.has(other):
                raise root.error(other, "does not go with a story; steps say what happens")
        if any(fault.when is not None for fault in faults):
            raise root.error("faults", "a fault in a story needs at_ms; a step can wait instead")
        story = read_story(root, header, cluster)
    root.finish()
    return ScenarioSpec(
        name=name,
        description=description,
        seed=seed,
        cluster=cluster,
        network=network,
        costs=costs,
        workloads=workloads,
        groups=groups,
        transformers=transformers,
        faults=faults,
        stop=stop,
        expect=expect,
        story=story,
        metrics=tuple(metrics),
        matrix=matrix,
        batch=batch,
        parameters={key: value for key, value in parameters.items() if key != "matrix"},
        text=text,
        source=source,
    )


def _client_names(
    root: Table,
    workloads: Sequence[WorkloadSpec],
    groups: Sequence[GroupSpec],
    transformers: Sequence[TransformerSpec],
) -> tuple[str, ...]:
    """Names of all modelled clients, which are those of their machines."""
    names = [name for one in workloads for name in one.producer_names + one.consumer_names]
    names += [name for group in groups for name in group.member_names]
    names += [transformer.name for transformer in transformers]
    taken = [name for name in names if names.count(name) > 1]
    if taken:
        raise root.error("", f"two clients have the name {taken[0]!r}")
    return tuple(names)


# -- cluster -----------------------------------------------------------------------------------


def _read_cluster(table: Table, versions: Sequence[str]) -> ClusterSpec:
    brokers = _read_brokers(table)
    version = table.text("kafka_version", versions[0], dict.fromkeys(versions))
    config = flatten(table.table("config").rest())
    try:
        BrokerConfig(config, ClusterSpec(kafka_version=version).release)
    except ValueError as error:
        raise table.error("config", str(error)) from None
    if "broker.id" in config:
        raise table.error("config", "broker.id must be left out: name the ids with brokers = [...]")
    ids = ClusterSpec(brokers).broker_ids
    racks = table.items("racks")
    if racks and len(racks) != len(ids):
        raise table.error("racks", f"names {len(racks)} racks for {len(ids)} brokers")
    topics_table = table.table("topics")
    topics = tuple(
        _read_topic(Table(table.source, topics_table.path(name), value), name, ids)
        for name, value in topics_table.rest().items()
    )
    restart_delay_ms = None
    if table.has("restart_delay_ms"):
        restart_delay_ms = table.number("restart_delay_ms", 0.0, minimum=1)
    spec = ClusterSpec(
        brokers=brokers,
        racks=tuple(None if rack == "" else str(rack) for rack in racks) or None,
        topics=topics,
        config=config,
        kafka_version=version,
        zookeepers=table.integer("zookeepers", 1, 1, ZOOKEEPERS_MAX),
        restart_delay_ms=restart_delay_ms,
    )
    table.finish()
    return spec


def _read_brokers(table: Table) -> int | tuple[int, ...]:
    """How many, or a list of their ids."""
    if not isinstance(table.raw("brokers"), list):
        return table.integer("brokers", 3, 1, BROKERS_MAX)
    try:
        return arguments.broker_ids(table.items("brokers"))
    except UsageError as error:
        raise table.error("brokers", str(error)) from None


def _read_topic(table: Table, name: str, ids: tuple[int, ...]) -> TopicSpec:
    config = flatten(table.table("config").rest())
    try:
        validate_topic_config({key: _config_text(value) for key, value in config.items()})
    except ValueError as error:
        raise table.error("config", str(error)) from None
    assignment = table.items("assignment")
    for number, replicas in enumerate(assignment):
        if not isinstance(replicas, list) or not replicas or len(set(replicas)) != len(replicas):
            raise table.error("assignment", f"partition {number}: {replicas!r} is no replica list")
        for broker in replicas:
            if isinstance(broker, bool) or broker not in ids:
                raise table.error(
                    "assignment", f"partition {number}: no broker {broker!r}; {ids_text(ids)}"
                )
    if assignment and (table.has("partitions") or table.has("replication_factor")):
        raise table.error("assignment", "stands instead of partitions and replication_factor")
    factor = table.integer("replication_factor", min(3, len(ids)), minimum=1)
    if factor > len(ids):
        raise table.error(
            "replication_factor", f"{factor} replicas need {factor} brokers, not {len(ids)}"
        )
    partitions = table.integer("partitions", 1, 1, PARTITIONS_MAX)
    table.finish()
    return TopicSpec(
        name,
        len(assignment) or partitions,
        len(assignment[0]) if assignment else factor,
        tuple(tuple(replicas) for replicas in assignment),
        {key: _config_text(value) for key, value in config.items()},
    )


def _config_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# -- network -----------------------------------------------------------------------------------


def _read_network(table: Table, cluster: ClusterSpec) -> NetworkSpec:
    latency = read_latency(table.table("latency")) if table.has("latency") else LatencySpec()
    links = []
    for link in table.tables("links"):
        links.append(
            LinkSpec(
                read_machine(link, "source", cluster),
                read_machine(link, "target", cluster),
                read_latency(link.table("latency")) if link.has("latency") else None,
                link.number("loss", 0.0, 0.0, 1.0) if link.has("loss") else None,
                read_bandwidth(link, "bandwidth_mb_per_s"),
            )
        )
        link.finish()
    loss = table.number("loss", 0.0, 0.0, 1.0)
    spec = NetworkSpec(latency, loss, tuple(links), read_bandwidth(table, "bandwidth_mb_per_s"))
    table.finish()
    return spec


# -- stop, expectations, matrix ----------------------------------------------------------------


def _read_stop(table: Table) -> StopSpec:
    spec = StopSpec(
        at_ms=table.number("at_ms", 60_000.0),
        when=read_condition(table, "when"),
        max_handled=table.integer("max_handled", 0, 1) if table.has("max_handled") else None,
        settle=table.flag("settle", True),
        settle_timeout_ms=table.number("settle_timeout_ms", 120_000.0),
    )
    table.finish()
    return spec


def _read_expect(table: Table, stop: StopSpec) -> ExpectSpec:
    that = read_condition(table, "that")
    if that is None:
        raise table.error("that", "is missing; write what must hold, such as 'alive(1)'")
    at_ms = None
    if table.raw("at_ms", "end") != "end":
        at_ms = table.number("at_ms", 0.0, 0.0, stop.at_ms)
    spec = ExpectSpec(that, at_ms, table.number("within_ms", 0.0), table.text("message"))
    table.finish()
    return spec


def _read_matrix(
    root: Table, text: str, source: str, parameters: dict[str, Any]
) -> dict[str, tuple[Any, ...]]:
    matrix: dict[str, tuple[Any, ...]] = {}
    for key, values in flatten(root.table("matrix").rest()).items():
        if not isinstance(values, list) or not values:
            raise root.error(f"matrix.{key}", f"must be a list of values, not {values!r}")
        if key.partition(".")[0] == "matrix":
            raise root.error(f"matrix.{key}", "a matrix cannot vary itself")
        for value in values:
            # What is wrong with the value itself is said here; what only does not go together
            # with the rest of the file may go together in the matrix.
            try:
                parse_scenario(text, source, {**parameters, key: value, "matrix": {}})
            except ScenarioError as error:
                place = error.key.replace("[", ".").replace("]", "")
                if key == place or key.startswith(place + "."):
                    raise root.error(f"matrix.{key}", f"value {value!r}: {error}") from None
        matrix[key] = tuple(values)
    return matrix
