"""docs/reference/api.md lists everything public, and each member has a docstring and types."""

from __future__ import annotations

import builtins
import importlib
import inspect
import re
from collections.abc import Callable, Iterator

import fakekafka
import pytest
from fakekafka import Cluster, Simulation
from fakekafka.docs import api_members
from fakekafka.docs.api_members import INTERNAL, MORE, Member, Table, renewed, tables
from fakekafka.tests.support.paths import ROOT

PAGE = (ROOT / api_members.PAGE).read_text(encoding="utf-8")
TABLES = tables(PAGE)

USERS_OWN = {
    "EmulatedCluster.create_topic": "values of Kafka's configurations",
    "EmulatedCluster.alter_config": "values of Kafka's configurations",
    "ClusterSecurity.token": "claims of the user's own",
    "SecurityConfig.token_keys": "a JSON Web Key Set, as JSON has it",
    "Simulation.recorder": "an object of the user's own, or the default one",
    "Simulation.program": "arguments of the user's own program",
    "fakekafka.simulate": "arguments and result of the user's own program",
    "ProgramHandle.ended": "what the user's own program returned",
    "ProgramHandle.result": "what the user's own program returned",
    "Simulation.note": "values of the user's own",
    "Simulation.notes": "values of the user's own",
    "Simulation.wait_for_note": "values of the user's own",
    "Note.values": "values of the user's own",
}
"""Members that pass a value of the user's choice, which may be anything."""
OF_ANY_KIND = {
    "BrokerHandle.metrics": "a number, or of a timer several: a union would be in the way",
    "ControllerHandle.metrics": "a number, or of a timer several",
    "Delivery.message": "a message of any kind",
    "Delivery.context": "what the sender told of itself",
    "Event.delta": "values of the state, of any kind",
    "Event.payload": "fields of a message of any kind",
    "Event.fields": "fields of a message of any kind",
    "Event.as_dict": "plain values for JSON",
    "StateChange.old": "a value of the state, of any kind",
    "StateChange.new": "a value of the state, of any kind",
    "Trace.header": "a value of its own kind for each key",
    "Replay.header": "a value of its own kind for each key",
}
"""Members that return recorded or measured values of many kinds."""
ANYTHING = USERS_OWN | OF_ANY_KIND
NAMED_ELSEWHERE = {
    "Endpoint": "who sends or takes a message: its name and machine are told where it stands",
    "Acl": "Kafka's words for a rule, in protocol/security/acls.py",
    "ErrorCode": "named on the page",
    "EventList": "a sequence of events",
    "Recorder": "the recorder of a replay: the trace is what to look at",
    "RecordBatch": "a stored batch, given to `on_batch`",
    "TopicPartition": "named on the page",
}
"""Classes that a public member returns and that have no table, each with the reason."""


def members() -> Iterator[Member]:
    for table in TABLES.values():
        yield from table.members


def lacking(found: dict[str, Table]) -> dict[str, str]:
    """Return what each incomplete member lacks: a docstring or a type."""
    lacks = {}
    for table in found.values():
        for member in table.members:
            name = f"{member.owner}.{member.name}"
            if not member.docstring:
                lacks[name] = "docstring"
            elif not all(member.annotations.values()) and not member.node.is_class:
                lacks[name] = "type"
    return lacks


def of_any_type(found: dict[str, Table]) -> set[str]:
    """Return the members whose types contain ``Any``, except as what a coroutine yields."""
    return {
        f"{member.owner}.{member.name}"
        for table in found.values()
        for member in table.members
        for annotation in member.annotations.values()
        if re.search(r"\bAny\b", annotation.replace("Coroutine[Any, Any, ", ""))
    }


def test_the_tables_match_the_source() -> None:
    """The tables equal those that `make docs` generates."""
    assert renewed(PAGE) == PAGE


def test_every_public_member_has_a_docstring_and_types() -> None:
    assert lacking(TABLES) == {}


def test_a_type_is_any_only_where_anything_may_pass() -> None:
    """Only listed members have ``Any`` in their types, and each listed member still needs it."""
    assert sorted(of_any_type(TABLES)) == sorted(ANYTHING)


def test_every_exported_class_with_members_has_a_table() -> None:
    """Every exported class has a table, except errors without members of their own, which are in
    the table of the package.
    """
    exported = {name for name in fakekafka.__all__ if inspect.isclass(getattr(fakekafka, name))}
    errors = {name for name in exported if issubclass(getattr(fakekafka, name), Exception)}
    assert exported - {table.name for table in TABLES.values()} == errors - {"KafkaError"}


def test_every_class_that_a_member_returns_has_a_table() -> None:
    """Every class of the package that a public call returns is on the page."""
    known = {table.name for table in TABLES.values()}
    unknown = set()
    for member in members():
        given = member.annotations.get("return", member.annotations.get("", ""))
        space = vars(importlib.import_module(member.module))
        for name in re.findall(r"\b[A-Z]\w+", given):
            kind = space.get(name)
            # What is imported for type checkers alone is not in the module.
            is_own = kind is None or getattr(kind, "__module__", "").startswith("fakekafka.")
            if is_own and name not in known and not hasattr(builtins, name):
                unknown.add(name)
    assert sorted(unknown) == sorted(NAMED_ELSEWHERE)


def test_names_in_the_tables_of_the_generator_exist() -> None:
    """A removed member is removed from the generator's tables, too."""
    names = {f"{table.name}.{member.name}" for table in TABLES.values() for member in table.members}
    assert sorted(MORE.keys() - names) == []
    for table in TABLES.values():
        kind = api_members.documented(table.path)
        hidden = INTERNAL.get(table.name, frozenset())
        attributes = {
            name for base in getattr(kind, "__mro__", ()) for name in api_members.declared(base)
        }
        assert sorted(hidden - attributes - set(dir(kind))) == []
    assert sorted(INTERNAL.keys() - {table.name for table in TABLES.values()}) == []


@pytest.mark.parametrize("kind", [Cluster, Simulation])
def test_an_argument_is_of_any_type_only_where_anything_may_pass(kind: type) -> None:
    """Only ``config``, ``topics`` and ``security`` may contain ``Any``."""
    given = {
        name
        for name, parameter in inspect.signature(kind).parameters.items()
        if re.search(r"\bAny\b", str(parameter.annotation))
    }
    assert given - {"config", "topics", "security"} == set()


@pytest.mark.parametrize("kind", [Cluster, Simulation])
def test_every_argument_is_listed(kind: Callable[..., object]) -> None:
    """The tables list every argument of the two constructors and no other."""
    section = PAGE.partition("\n## Arguments\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)
    listed = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert sorted(set(inspect.signature(kind).parameters) - listed) == []
    both = {*inspect.signature(Cluster).parameters, *inspect.signature(Simulation).parameters}
    assert sorted(listed - both) == []


EXAMPLE = """# T

## An example

<!-- members: fakekafka.tests.support.documented.Documented -->
old
<!-- end of members -->

## Another

<!-- members: fakekafka.tests.support.documented.Documented: close -->
<!-- end of members -->
"""


def test_a_table_is_made_from_a_class() -> None:
    """Calls are shown with parameters and defaults; types they return or mention are links."""
    shown = renewed(EXAMPLE.partition("## Another")[0])
    assert shown.splitlines()[4:-1] == [
        "<!-- members: fakekafka.tests.support.documented.Documented -->",
        "",
        "A class with a member of each kind.",
        "",
        "`from fakekafka.tests.support.documented import Documented`",
        "",
        "| name | what it is |",
        "|---|---|",
        r"| `count` | How many `Documented` there are \| were. |",
        "| `bare` |  |",
        "| `other` | Another one. Or none: `None`. |",
        "| `await write(*names, limit=3, **options)` | Write `Documented` and `Documented`. |",
        "| `undocumented(value)` |  |",
        "| `close()` | End it. |",
        "",
        "<!-- end of members -->",
    ]


def test_members_without_a_docstring_or_a_type_are_found() -> None:
    found = tables(EXAMPLE.partition("## Another")[0])
    assert lacking(found) == {
        "Documented.bare": "docstring",
        "Documented.undocumented": "docstring",
    }
    assert of_any_type(found) == {"Documented.write"}


def test_a_table_of_chosen_members_has_only_these() -> None:
    chosen = EXAMPLE.partition("## Another")[2]
    assert "| `close()` | End it. |" in renewed("## Another" + chosen)
    assert "write" not in renewed("## Another" + chosen)
