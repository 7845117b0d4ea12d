"""Kinds of values: one check, wording and schema for Python, JSON, TOML and text."""

from __future__ import annotations

import json
import math
import tomllib
from typing import Any

import pytest
from fakekafka.control.operation import JSON
from fakekafka.protocol.errors import UsageError
from fakekafka.scenarios.spec import LinkSpec, NetworkSpec
from fakekafka.testing.parameters import cluster_kinds, kinds
from fakekafka.testing.parameters.kinds import (
    COUNT,
    FLAG,
    INT32,
    MEGABYTES_PER_SECOND,
    MILLISECONDS,
    PROBABILITY,
    STRING,
    BadArgument,
    Kind,
    choice,
    list_of,
    nullable,
    number,
    whole,
)
from fakekafka.testing.parameters.parameter import Parameter, parameters_of, read
from fakekafka.testing.parameters.toml_values import toml_value, value_of_text

KINDS: dict[str, Kind] = {
    name: kind
    for module in (kinds, cluster_kinds)
    for name, kind in vars(module).items()
    if isinstance(kind, Kind) and not name.startswith("_")
}
WITH_EXAMPLES = [name for name, kind in KINDS.items() if kind.example is not None]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_an_example_is_right_in_every_language(name: str) -> None:
    """The example that a refusal shows is valid in Python, JSON and TOML."""
    kind = KINDS[name]
    wanted = kind.read(kind.example)
    assert kind.read(json.loads(JSON.write(kind.example)), JSON) == wanted
    written = json.loads(json.dumps(kind.example))  # TOML also has only strings as keys
    assert kind.read(tomllib.loads(f"v = {toml_value(written)}")["v"], JSON) == wanted


@pytest.mark.parametrize(
    ("kind", "value", "problem"),
    [
        (whole(), "3", "must be a whole number, not '3'"),
        (whole(), True, "must be a whole number, not True"),
        (COUNT, 0, "must be a whole number >= 1, not 0"),
        (whole(0, 9), 10, "must be a whole number from 0 to 9, not 10"),
        (INT32, 2**31, "must be at most 2,147,483,647, not 2147483648"),
        (MILLISECONDS, -1, "must be a finite number of milliseconds >= 0, not -1"),
        (MILLISECONDS, math.nan, "must be a finite number of milliseconds >= 0, not nan"),
        (MILLISECONDS, math.inf, "must be a finite number of milliseconds >= 0, not inf"),
        (MILLISECONDS, 10**400, "must be at most 1e+15, not 1000"),
        (MEGABYTES_PER_SECOND, 0, "must be a finite number of megabytes per second > 0, not 0"),
        (PROBABILITY, 1.5, "must be a number from 0 to 1, not 1.5"),
        (number("seconds", most=9, is_above=True), 0, "seconds above 0 and at most 9, not 0"),
        (FLAG, 1, "must be true or false, not 1"),
        (STRING, None, "must be a string, not None"),
        (nullable(STRING), 5, "must be a string or null, not 5"),
        (choice("open", "closed"), "opn", "must be 'open' or 'closed', not 'opn'; did you mean"),
        (choice(*"abcdef", "great"), "grat", "'grat' is not possible; did you mean 'great'?"),
        (list_of(COUNT, "counts", [1]), "12", "must be counts, such as [1], not '12'"),
        (list_of(COUNT, "counts", [1]), [1, 0], "[1] must be a whole number >= 1, not 0"),
        (cluster_kinds.PARTITION, "orders", "must be a partition, such as 'orders-0'"),
        (cluster_kinds.MOVES, {"orders": [1]}, "'orders' is no partition; write it like 'order"),
        (cluster_kinds.MOVES, {"o-0": 1}, "o-0 must be a list of broker ids or null, such as"),
        (cluster_kinds.ERROR, "NOT_LEDER", "there is no error code 'NOT_LEDER'; did you mean"),
        (cluster_kinds.MESSAGES, ["Fetch"], "[0]: there is no message 'Fetch'"),
        (cluster_kinds.TIMES, "some", "must be a whole number >= 1, or 'all', not 'some'"),
    ],
)
def test_a_refusal_is_one_sentence(kind: Kind, value: Any, problem: str) -> None:
    """A refusal says in one sentence what the value must be and what it is."""
    with pytest.raises(BadArgument) as refused:
        kind.read(value)
    assert problem in str(refused.value)


def test_a_long_value_is_shown_in_part() -> None:
    for context in (kinds.ANYWHERE, JSON):
        with pytest.raises(BadArgument) as refused:
            COUNT.read(["x" * 1000] * 1000, context)
        assert len(str(refused.value)) < 300


def test_an_argument_is_refused_with_its_name() -> None:
    """An argument refused in Python raises UsageError with the argument's name."""
    with pytest.raises(UsageError, match=r"^at_ms must be a finite number of milli.*, not 'x'$"):
        MILLISECONDS.check("at_ms", "x")
    with pytest.raises(UsageError, match=r"^replicas\.orders-0\[1\] must be a whole number"):
        cluster_kinds.MOVES.check("replicas", {("orders", 0): [1, "2"]})


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.type is not object])
def test_values_of_plain_types_can_be_parsed_from_text(name: str) -> None:
    """A kind of a plain type parses the text of an option or query; other text stays a string."""
    kind = KINDS[name]
    word = str(kind.example or kind.schema.get("enum", ["x"])[0])
    text = {int: "1", float: "1", bool: "true"}.get(kind.type, word)
    assert isinstance(kind.read(kind.parse_text(text)), kind.type)
    if kind.type is not str:
        assert kind.parse_text("?") == "?"


def test_a_partition_is_written_by_its_name_or_in_two_parts() -> None:
    """A partition is ``topic-0`` or a pair, alone and as a key of a mapping, in every language."""
    for written in ("my-topic-3", ["my-topic", 3], ("my-topic", 3)):
        assert cluster_kinds.PARTITION.read(written) == ("my-topic", 3)
    for moves in ({"o-0": [1]}, {("o", 0): [1]}, [["o", 0, [1]]]):
        assert cluster_kinds.MOVES.read(moves) == {("o", 0): [1]}


def test_keys_of_an_assignment_are_numbers() -> None:
    """Keys of an assignment may be strings in JSON and TOML, but not in Python."""
    assert cluster_kinds.ASSIGNMENT.read({"1": [2]}, JSON) == {1: [2]}
    with pytest.raises(BadArgument, match="has the key '1', which is no partition number"):
        cluster_kinds.ASSIGNMENT.read({"1": [2]})


# -- tables of parameters --------------------------------------------------------------------------

TABLE = (
    Parameter("count", COUNT, True),
    Parameter("note", nullable(STRING)),
    Parameter("wait", FLAG, default=True),
)


def test_a_table_is_read_in_the_order_of_its_parameters() -> None:
    """``read`` orders values like the parameters; null is left out unless the kind allows null."""
    assert list(read(TABLE, {"wait": None, "note": None, "count": 2})) == ["count", "note"]
    filled = read(TABLE, {"count": 2}, fills_defaults=True)
    assert filled == {"count": 2, "wait": True}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "count is missing; write a whole number >= 1"),
        ({"count": 1, "nota": 1}, "nota: unknown key; did you mean 'note'?"),
        ({"count": 1, "whence": 1}, "whence: unknown key; did you mean 'when'?"),
        ({"count": 1, "q": 1}, "q: unknown key; there are count, note, wait, when"),
        ({"count": "1"}, "count must be a whole number >= 1, not '1'"),
        ([1], "must be a table, not [1]"),
    ],
)
def test_the_error_in_a_table_is_named(given: Any, problem: str) -> None:
    with pytest.raises(BadArgument) as refused:
        read(TABLE, given, other_names=["when"])
    assert str(refused.value) == problem


def test_text_that_is_no_toml_is_a_string() -> None:
    """Text that is not TOML stays a string, even thousands of digits or very deep nesting."""
    assert value_of_text("[1, 2]") == [1, 2]
    for text in ("leader:orders-0", "9" * 5000, "[" * 50_000):
        assert value_of_text(text) == text


def test_declared_fields_of_a_dataclass_are_parameters() -> None:
    """Declared fields of a dataclass become parameters with the fields' defaults."""
    table = {one.name: one for one in parameters_of(NetworkSpec)}
    assert set(table) == {"latency", "loss", "bandwidth_mb_per_s", "links"}
    assert (table["loss"].kind, table["loss"].default) == (PROBABILITY, NetworkSpec().loss)
    assert table["latency"].default == NetworkSpec().latency
    assert NetworkSpec().latency is not NetworkSpec().latency
    assert [one.name for one in parameters_of(LinkSpec) if one.is_required] == ["source", "target"]
