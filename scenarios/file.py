"""Strict reading of scenario files: TOML to ``ScenarioSpec``.

Unknown keys are refused with a hint at the nearest valid key; every error names the file, the key
and what would be valid. ``examples/scenarios`` has examples.
"""

from __future__ import annotations

import copy
import itertools
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

from ..actors.network.costs import PUBLISHED_2018, Costs
from ..protocol.config import BrokerConfig
from ..protocol.errors import UsageError
from ..protocol.versions import DEFAULT_KAFKA_VERSION, behaviour
from ..testing.parameters.kinds import MILLISECONDS, BadArgument, choice, number
from ..testing.parameters.parameter import inside, nearest, optional, parameters_of, read
from ..testing.parameters.toml_values import flatten
from .context import FileContext, ScenarioError
from .library import scenario_file
from .spec import BatchSpec, ClusterSpec, ExpectSpec, NetworkSpec, ScenarioSpec, StopSpec, TopicSpec
from .story.reading import read_header, read_story
from .tables import read_fault, read_group, read_transformer, read_workload, reject_duplicates
from .verdict import METRICS

__all__ = ["ScenarioError", "expand_matrix", "load_scenario", "parse_scenario",
           "scenario_values", "with_parameters"]  # fmt: skip


TEXT_MAX = 1_000_000
"""Maximum number of characters in a scenario, enough for about ten thousand faults."""

SECTIONS = ("cluster", "network", "costs", "workload", "groups", "transformers", "faults",
            "stop", "expect", "batch", "story", "step", "outcome")  # fmt: skip
"""Tables of a file besides the keys of ``ScenarioSpec``."""
_NOT_IN_STORIES = ("workload", "groups", "transformers", "stop", "expect", "metrics", "matrix",
                   "batch")  # fmt: skip
_PROFILES = {"free": Costs(), "published-2018": PUBLISHED_2018}
COSTS = (
    optional("profile", choice(*_PROFILES), default="free"),
    *(
        optional(field.name, MILLISECONDS if field.name.endswith("_ms") else number())
        for field in fields(Costs)
    ),
)

T = TypeVar("T")


def load_scenario(path: str | Path, parameters: Mapping[str, Any] | None = None) -> ScenarioSpec:
    """Read a scenario from a file, or by name if it comes with the package.

    ``parameters`` (dotted key to value) override values of the file.

    Raises ``ScenarioError``, even if the file cannot be read.
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
    """Read a scenario from its TOML text; ``source`` is its name in messages."""
    values = scenario_values(text, source, parameters)
    try:
        return _read_scenario(values, text, source, dict(parameters or {}))
    except BadArgument as error:
        raise ScenarioError(source, error.path, error.problem) from None


def scenario_values(
    text: str, source: str = "<scenario>", parameters: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the values of a scenario's TOML with its parameters set, unchecked."""
    if len(text) > TEXT_MAX:
        raise ScenarioError(source, None, f"is longer than {TEXT_MAX:,} characters")
    try:
        values = tomllib.loads(text)
    except RecursionError:
        raise ScenarioError(source, None, "is not valid TOML: it is nested too deeply") from None
    except ValueError as error:  # a TOMLDecodeError, or a number with thousands of digits
        raise ScenarioError(source, None, f"is not valid TOML: {error}") from None
    for key, value in (parameters or {}).items():
        _set(values, key, value, source)
    return values


def with_parameters(spec: ScenarioSpec, parameters: Mapping[str, Any]) -> ScenarioSpec:
    """Return the scenario with other values for some dotted keys, such as ``cluster.brokers``."""
    return parse_scenario(spec.text, spec.source, {**spec.parameters, **parameters})


def expand_matrix(spec: ScenarioSpec) -> list[ScenarioSpec]:
    """Return one scenario per combination of the matrix; the last key changes fastest.

    Each scenario has its combination in ``parameters`` and no matrix. A scenario without a matrix
    is returned unchanged.
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
    """Set a dotted key; the part after ``config`` is a dotted name of Kafka's."""
    parts = key.split(".")
    if "config" in parts[:-1]:
        cut = parts.index("config") + 1
        parts = [*parts[:cut], ".".join(parts[cut:])]
    place: Any = values
    for depth, part in enumerate(parts[:-1]):
        if isinstance(place, list) or part.isdigit():
            if not isinstance(place, list) or not part.isdigit() or int(part) >= len(place):
                where = ".".join(parts[:depth])
                raise ScenarioError(source, key, f"{where} has no entry {part!r}")
            place = place[int(part)]
        else:
            place = place.setdefault(part, {})
        if not isinstance(place, (dict, list)):
            raise ScenarioError(source, key, f"{'.'.join(parts[: depth + 1])} is not a table")
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
    """Read a scenario from its tables; raise ``BadArgument`` with the invalid key."""
    tables = {name: value for name, value in values.items() if name in SECTIONS}
    own = {name: value for name, value in values.items() if name not in SECTIONS}
    given = read(parameters_of(ScenarioSpec), own, FileContext(ClusterSpec()), other_names=SECTIONS)
    header = _section(tables, "story", read_header) if "story" in tables else None
    versions = None if header is None else header.versions
    cluster = _section(tables, "cluster", lambda table: _read_cluster(table, versions))
    context = FileContext(cluster)
    workloads = _entries(tables, "workload", lambda t, n: read_workload(t, n, context))
    groups = _entries(tables, "groups", lambda t, n: read_group(t, n, context))
    transformers = _entries(tables, "transformers", lambda t, n: read_transformer(t, n, context))
    reject_duplicates("groups", "group_id", [group.group_id for group in groups])
    reject_duplicates(
        "transformers", "transactional_id", [t.transactional_id for t in transformers]
    )
    if transformers and not cluster.behaviour().transactions:
        problem = f"need transactions, which Kafka {cluster.kafka_version} does not have"
        raise BadArgument(problem, "transformers")
    names = [name for one in workloads for name in one.producer_names + one.consumer_names]
    names += [name for group in groups for name in group.member_names]
    names += [transformer.name for transformer in transformers]
    duplicates = [name for name in names if names.count(name) > 1]
    if duplicates:
        raise BadArgument(f"two clients have the name {duplicates[0]!r}")
    cluster = replace(cluster, clients=tuple(names))
    context = FileContext(cluster)
    stop = _section(tables, "stop", lambda table: _read_dataclass(StopSpec, table, context))
    end = stop if header is None else StopSpec(at_ms=math.inf)
    faults = _entries(tables, "faults", lambda table, _: read_fault(table, context, end))
    for metric in given.get("metrics", ()):
        if metric not in METRICS:
            raise BadArgument(f"unknown metric {metric!r}{nearest(metric, METRICS)}", "metrics")
    spec = ScenarioSpec(
        name=given.get("name", Path(source).stem),
        description=given.get("description", ""),
        seed=given.get("seed", 0),
        cluster=cluster,
        network=_section(
            tables, "network", lambda table: _read_dataclass(NetworkSpec, table, context)
        ),
        costs=_section(tables, "costs", _read_costs) if "costs" in tables else None,
        workloads=workloads,
        groups=groups,
        transformers=transformers,
        faults=faults,
        stop=stop,
        expect=_entries(tables, "expect", lambda table, _: _read_expect(table, context, stop)),
        metrics=given.get("metrics", ()),
        matrix=_read_matrix(given.get("matrix", {}), text, source, parameters),
        batch=_section(tables, "batch", lambda table: _read_dataclass(BatchSpec, table, context)),
        parameters={key: value for key, value in parameters.items() if key != "matrix"},
        text=text,
        source=source,
    )
    if header is None:
        for name in ("step", "outcome"):
            if name in tables:
                raise BadArgument("needs the table story", name)
        return spec
    for name in _NOT_IN_STORIES:
        if name in values:
            raise BadArgument("is not allowed in a story; its steps replace it", name)
    if any(fault.when is not None for fault in faults):
        raise BadArgument("a fault in a story needs at_ms, not when; steps can wait", "faults")
    return replace(spec, story=read_story(tables, header, cluster))


def _section(tables: Mapping[str, Any], name: str, read_table: Callable[[Any], T]) -> T:
    with inside(name):
        return read_table(tables.get(name, {}))


def _entries(
    tables: Mapping[str, Any], name: str, read_table: Callable[[Any, int], T]
) -> tuple[T, ...]:
    """Read an array of tables; a single table counts as an array of one."""
    value = tables.get(name, [])
    if isinstance(value, Mapping):
        with inside(name):
            return (read_table(value, 0),)
    if not isinstance(value, list):
        raise BadArgument(f"must be an array of tables ([[{name}]]), not {value!r}", name)
    found = []
    for place, entry in enumerate(value):
        with inside(f"{name}[{place}]"):
            found.append(read_table(entry, place))
    return tuple(found)


def _read_dataclass(table: Callable[..., T], values: Any, context: FileContext) -> T:
    """Read a table whose keys are exactly the declared fields of a dataclass."""
    return table(**read(parameters_of(table), values, context))


# -- cluster -----------------------------------------------------------------------------------


def _read_cluster(values: Any, versions: Sequence[str] | None) -> ClusterSpec:
    """Read the table ``cluster``; ``versions`` are those that a story supports."""
    context = FileContext(ClusterSpec())
    given = read(parameters_of(ClusterSpec), values, context)
    version = given.setdefault("kafka_version", (versions or (DEFAULT_KAFKA_VERSION,))[0])
    if versions is not None:
        choice(*versions).read_at("kafka_version", version, context)
    else:
        _check_emulated(version)
    config = given["config"] = flatten(given.get("config", {}))
    spec = ClusterSpec(given.get("brokers", 3), kafka_version=version)
    try:
        BrokerConfig(config, spec.release)
    except ValueError as error:
        raise BadArgument(str(error), "config") from None
    if "broker.id" in config:
        raise BadArgument("broker.id must be left out: name the ids with brokers = [...]", "config")
    racks = given.get("racks")
    if racks and len(racks) != len(spec.broker_ids):
        count = len(spec.broker_ids)
        raise BadArgument(f"names {len(racks)} racks for {count} brokers", "racks")
    given["racks"] = tuple(rack or None for rack in racks or ()) or None
    topics = given.get("topics", {}).items()
    given["topics"] = tuple(_read_topic(value, name, spec) for name, value in topics)
    return ClusterSpec(**given)


def _check_emulated(version: str) -> None:
    try:
        behaviour(version)
    except UsageError as error:
        raise BadArgument(str(error).removeprefix("kafka_version "), "kafka_version") from None


def _read_topic(values: Any, name: str, cluster: ClusterSpec) -> TopicSpec:
    with inside(f"topics.{name}"):
        given = read(parameters_of(TopicSpec), values, FileContext(cluster))
        count = len(cluster.broker_ids)
        assignment = given.get("assignment")
        if not assignment:
            factor = given.setdefault("replication_factor", min(3, count))
            if factor > count:
                problem = f"{factor} replicas need {factor} brokers, not {count}"
                raise BadArgument(problem, "replication_factor")
            given.pop("assignment", None)
            return TopicSpec(name, **given)
        if "partitions" in given or "replication_factor" in given:
            problem = "cannot be combined with partitions or replication_factor"
            raise BadArgument(problem, "assignment")
        given["assignment"] = tuple(map(tuple, assignment))
        return TopicSpec(name, len(assignment), len(assignment[0]), **given)


# -- costs, expectations, matrix ---------------------------------------------------------------


def _read_costs(values: Any) -> Costs:
    """Read ``Costs``, such as ``{profile = "published-2018", disk_append_ms = 0.2}``."""
    given = read(COSTS, values)
    profile = _PROFILES[given.pop("profile", "free")]
    return replace(profile, **given)


def _read_expect(values: Any, context: FileContext, stop: StopSpec) -> ExpectSpec:
    spec = _read_dataclass(ExpectSpec, values, context)
    if spec.at_ms is not None:
        number("milliseconds", most=stop.at_ms).read_at("at_ms", values["at_ms"], context)
    return spec


def _read_matrix(
    given: Mapping[str, Any], text: str, source: str, parameters: dict[str, Any]
) -> dict[str, tuple[Any, ...]]:
    matrix: dict[str, tuple[Any, ...]] = {}
    for key, values in flatten(given).items():
        with inside(f"matrix.{key}"):
            if not isinstance(values, list) or not values:
                raise BadArgument(f"must be a list of values, not {values!r}")
            if key.partition(".")[0] == "matrix":
                raise BadArgument("a matrix cannot vary itself")
            for value in values:
                # Only errors of the key itself are reported here: a value that conflicts with
                # another key of the file may be valid in combination with other values.
                try:
                    parse_scenario(text, source, {**parameters, key: value, "matrix": {}})
                except ScenarioError as error:
                    place = error.key.replace("[", ".").replace("]", "")
                    if key == place or key.startswith(place + "."):
                        raise BadArgument(f"value {value!r}: {error}") from None
        matrix[key] = tuple(values)
    return matrix
