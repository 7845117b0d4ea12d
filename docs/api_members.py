"""Writes the tables of members in docs/reference/api.md from signatures and docstrings.

A table is between two comments. The first names a class, a module, or the package itself:

    <!-- members: fakekafka.testing.handles.broker.BrokerHandle -->
    <!-- members: fakekafka.actors.clients.client.SimulatedClient: name, halt -->

Names after a colon restrict the table to these members. The table of a class includes the members
of its bases, except for bases with a table of their own.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import griffe

PAGE = "docs/reference/api.md"
ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "fakekafka"
END = "<!-- end of members -->"
_MARKER = re.compile(
    rf"<!-- members: (?P<path>[\w.]+)(?:: (?P<names>[\w, ]+))? -->\n.*?{END}", re.DOTALL
)
_HEADING = re.compile(r"^##+ (.+)$", re.MULTILINE)

INTERNAL: dict[str, frozenset[str]] = {
    owner: frozenset(names.split())
    for owner, names in {
        "Cluster": "running",
        "ClusterSecurity": "attach authority create_users guard listener_security remove_files "
        "restore",
        "EmulatedCluster": "behaviour call create_initial_topics create_shaped_topic processes "
        "running runtime usual_latency zookeepers",
        "ListenerSpec": "uses_sasl uses_tls",
        "MemoryBound": "close look on_deleted start",
        "Note": "has",
        "SecurityConfig": "broker_config of uses_tls",
        "Simulation": "running runtime",
        "SimulatedConsumer": "on_metadata",
        "SimulatedGroupConsumer": "group_settings membership partition_counts "
        "partitions_assigned partitions_revoked read_positions topic_id topic_name",
        "SimulatedTransactionalProducer": "ask_coordinator",
        "SimulatedTransformer": "on_start settings",
        "Trace": "stored",
        "ZooKeeperHandle": "end_session require_server",
        "checks": "describe_lost_and_duplicated lost_and_duplicated",
    }.items()
}
"""Names that are public only for the package's own modules, by class."""

MORE = {
    "Cluster.bootstrap_servers_of": "../guides/security.md",
    "Cluster.memory": "#a-bound-for-memory",
    "Cluster.reset": "#reset",
    "Cluster.security": "../guides/security.md",
    "BrokerHandle.metrics": "#metrics",
    "ControllerHandle.metrics": "#metrics",
    "EmulatedCluster.broker": "#roles",
    "EmulatedCluster.broker_ids": "#generated-broker-ids",
    "EmulatedCluster.inject": "../guides/faults.md#answers",
    "EmulatedCluster.observe": "#waiting",
    "EmulatedCluster.save": "../guides/traces.md",
    "EmulatedCluster.wait_until": "#waiting",
    "GroupConsumerSettings.group_protocol": "../guides/consumer-groups.md#the-consumer-protocol",
    "Simulation.break_on": "../guides/traces.md#breakpoints",
    "Simulation.costs": "../guides/benchmarks.md#how-long-does-the-control-plane-take",
    "Simulation.run_until": "#waiting",
    "Trace.filter": "../guides/traces.md#ask-questions",
    "fakekafka.NotThereYet": "#waiting",
    "fakekafka.SecurityConfig": "../guides/security.md",
    "fakekafka.simulate": "#simulate",
}
"""Links to further documentation, by member."""

_RECEIVERS = ("self", "cls")
_CONSTRUCTED = ("Settings", "Config", "Spec", "Costs")
"""Endings of the names of classes that users construct, whose fields are shown with defaults."""


@dataclass(frozen=True)
class Member:
    """A public name of a documented class or module."""

    owner: str
    name: str
    node: griffe.Object
    module: str

    @property
    def docstring(self) -> str:
        return self.node.docstring.value if self.node.docstring else ""

    @property
    def annotations(self) -> dict[str, str]:
        """Annotations by parameter. The key of a function's result is ``return``, that of an
        attribute's type is empty."""
        node = self.node
        if isinstance(node, griffe.Function):
            found = {
                p.name: str(p.annotation or "") for p in node.parameters if p.name not in _RECEIVERS
            }
            return {**found, "return": str(node.returns or "")}
        return {"": str(getattr(node, "annotation", None) or "")}


@dataclass(frozen=True)
class Table:
    """A table of the page: the class or module, the anchor of its heading, and the members."""

    path: str
    anchor: str
    members: tuple[Member, ...]

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]


def tables(page: str) -> dict[str, Table]:
    """Return the tables that a page asks for, by path."""
    marked = {match["path"]: match for match in _MARKER.finditer(page)}
    classes = {path: kind for path in marked if inspect.isclass(kind := documented(path))}
    return {
        path: Table(path, _anchor(page, match.start()), tuple(_members(path, match, classes)))
        for path, match in marked.items()
    }


def renewed(page: str) -> str:
    """Return the page with its tables renewed from the source."""
    found = tables(page)
    anchors = {name: table.anchor for table in found.values() if (name := table.name)[0].isupper()}

    def table_text(match: re.Match[str]) -> str:
        first, _, _ = match[0].partition("\n")
        table = found[match["path"]]
        introduction = "" if match["names"] else _introduction(table, anchors)
        rows = [_row(member, table, anchors) for member in table.members]
        lines = [first, "", *introduction, "| name | what it is |", "|---|---|", *rows, "", END]
        return "\n".join(lines)

    return _MARKER.sub(table_text, page)


def _introduction(table: Table, anchors: dict[str, str]) -> list[str]:
    """Return the first paragraph of a class's docstring, and its import unless it is exported."""
    source = _source(table.path)
    if not isinstance(source, griffe.Class) or source.docstring is None:
        return []
    summary = source.docstring.value.split("\n\n")[0]
    is_exported = table.name in importlib.import_module(PACKAGE).__all__
    module = table.path.rpartition(".")[0]
    where = [] if is_exported else [f"`from {module} import {table.name}`", ""]
    return [_text(summary, {**anchors, table.name: ""}), "", *where]


# -- members of a table --------------------------------------------------------------------------


def _members(path: str, match: re.Match[str], classes: dict[str, type]) -> Iterator[Member]:
    if path == PACKAGE:
        package = importlib.import_module(PACKAGE)
        for name in package.__all__:
            if not name.startswith("_"):
                module = f"{PACKAGE}.{package._PUBLIC[name]}"
                yield Member(PACKAGE, name, _visited(module)[name], module)
    elif path not in classes:
        owner = path.rpartition(".")[2]
        for name, node in _visited(path).members.items():
            if isinstance(node, griffe.Function) and _is_public(owner, name):
                yield Member(owner, name, node, path)
    elif match["names"]:
        for name in match["names"].split(", "):
            yield next(
                Member(kind.__name__, name, declared(kind)[name], kind.__module__)
                for kind in classes[path].__mro__
                if name in declared(kind)
            )
    else:
        yield from _members_of_class(classes[path], set(classes.values()))


def _members_of_class(wanted: type, with_tables: set[type]) -> Iterator[Member]:
    elsewhere = {
        base for kind in wanted.__mro__[1:] if kind in with_tables for base in kind.__mro__
    }
    seen = {name for kind in elsewhere for name in declared(kind)}
    for kind in wanted.__mro__:
        if kind in elsewhere:
            continue
        for name, node in declared(kind).items():
            if name not in seen and _is_public(wanted.__name__, name):
                seen.add(name)
                yield Member(kind.__name__, name, node, kind.__module__)


def declared(kind: type) -> dict[str, griffe.Object]:
    """Return the members that a class of the package declares itself."""
    if not kind.__module__.startswith(f"{PACKAGE}."):
        return {}
    source = _visited(kind.__module__)[kind.__qualname__]
    return {
        name: node
        for name, node in source.members.items()
        if isinstance(node, griffe.Function | griffe.Attribute)
    }


def _is_public(owner: str, name: str) -> bool:
    return not name.startswith("_") and name not in INTERNAL.get(owner, ())


# -- the source ----------------------------------------------------------------------------------


@functools.cache
def _visited(module: str) -> griffe.Module:
    path = ROOT.joinpath(*module.split(".")[1:]).with_suffix(".py")
    if not path.exists():
        path = path.with_suffix("") / "__init__.py"
    return griffe.visit(module, path, path.read_text(encoding="utf-8"))


def documented(path: str) -> Any:
    """Return the class or module at a path."""
    module, _, name = path.rpartition(".")
    if name[:1].isupper():
        return getattr(importlib.import_module(module), name)
    return importlib.import_module(path)


def _source(path: str) -> griffe.Object | None:
    if not path.rpartition(".")[2][:1].isupper():
        return None
    kind = documented(path)
    found: griffe.Object = _visited(kind.__module__)[kind.__qualname__]
    return found


def _anchor(page: str, position: int) -> str:
    """Return the anchor of the heading above a position."""
    heading = [match[1] for match in _HEADING.finditer(page, 0, position)][-1]
    return re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", heading.strip().lower()))


# -- rendering -----------------------------------------------------------------------------------


def _row(member: Member, table: Table, anchors: dict[str, str]) -> str:
    text = member.docstring
    is_class_with_table = member.node.is_class and member.name in anchors
    if is_class_with_table:
        text = text.split("\n\n")[0]
    name = f"`{_signature(member)}`"
    if is_class_with_table:
        name = f"[{name}](#{anchors[member.name]})"
    name += _given(member, table, anchors)
    elsewhere = {**anchors, table.name: "", member.name: ""}
    more = MORE.get(f"{table.name}.{member.name}")
    return f"| {name} | {_text(text, elsewhere)}{f' [More]({more})' if more else ''} |"


def _given(member: Member, table: Table, anchors: dict[str, str]) -> str:
    """Return a link to the section about the class that a member returns, if there is one."""
    given, _, none = member.annotations.get("return", member.annotations.get("", "")).partition(
        " | "
    )
    if not given.startswith("Callable"):
        for name in re.findall(r"\w+", given):
            if name in anchors and name != table.name:
                return f" → [`{given}`](#{anchors[name]}){f' or `{none}`' if none else ''}"
    return ""


def _text(docstring: str, anchors: dict[str, str]) -> str:
    """Return a docstring as one line of Markdown, with links to sections."""

    linked: set[str] = set()

    def code(match: re.Match[str]) -> str:
        name = match[1]
        anchor = anchors.get(name) if name not in linked else None
        linked.add(name)
        return f"[`{name}`](#{anchor})" if anchor else f"`{name}`"

    line = " ".join(docstring.split()).replace("|", r"\|")
    return re.sub(r"``(.+?)``", code, line)


def _signature(member: Member) -> str:
    """Return a member's name, with parameters and defaults for a function, and with the default for
    a setting."""
    node = member.node
    if isinstance(node, griffe.Function):
        parts = []
        kinds = griffe.ParameterKind
        is_starred = False
        for parameter in node.parameters:
            if parameter.name in _RECEIVERS:
                continue
            kind = parameter.kind
            if kind is kinds.var_positional:
                parts.append(f"*{parameter.name}")
                is_starred = True
                continue
            if kind is kinds.var_keyword:
                parts.append(f"**{parameter.name}")
                continue
            if kind is kinds.keyword_only and not is_starred:
                parts.append("*")
                is_starred = True
            default = parameter.default
            value = "" if default is None else f"={_value(str(default), member.module)}"
            parts.append(f"{parameter.name}{value}")
        waits = "await " if "async" in node.labels else ""
        return f"{waits}{member.name}({', '.join(parts)})"
    if member.owner.endswith(_CONSTRUCTED) and node.is_attribute:
        owner = getattr(importlib.import_module(member.module), member.owner)
        for field in dataclasses.fields(owner) if dataclasses.is_dataclass(owner) else ():
            if field.name == member.name and _is_plain(field.default):
                return f"{member.name}={field.default!r}"
    return member.name


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


def _value(default: str, module: str) -> str:
    """Return a default as users write it: the value of a constant, not its name."""
    if re.fullmatch(r"_?[A-Z][A-Z_0-9]+", default):
        return repr(getattr(importlib.import_module(module), default))
    return default
