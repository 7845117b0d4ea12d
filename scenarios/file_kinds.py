"""Kinds of values that only scenario files have."""

from __future__ import annotations

from typing import Any

from ..testing import arguments
from ..testing.parameters.kinds import (
    MILLISECONDS,
    OBJECT,
    STRING,
    Context,
    Kind,
    NotOfKind,
    as_problem,
    number,
    tuple_of,
    whole,
)
from ..testing.parameters.parameter import optional, read
from .conditions import CONDITION

BROKERS_MAX = 10_000
"""Maximum number of brokers in a cluster."""
RECORD_BYTES_MAX = 100_000_000
ROLES = ("leader", "follower", "none", "off")
"""Roles of a replica in its broker's own view."""
BUDGETS = ("events", "virtual_s", "wall_s", "memory_mb")
"""Resources of a batch's run that a budget can limit."""


def _convert_brokers(value: Any, context: Context) -> int | tuple[int, ...]:
    if isinstance(value, list):
        with as_problem():
            return arguments.broker_ids(value)
    count: int = whole(1, BROKERS_MAX).read(value, context)
    return count


BROKERS = Kind("how many, or a list of ids", {"type": ["integer", "array"]}, _convert_brokers)

_SIZE = whole(0, RECORD_BYTES_MAX)


def _convert_sizes(value: Any, context: Context) -> tuple[int, int]:
    sizes = value if isinstance(value, list) else [value, value]
    if len(sizes) != 2:
        raise NotOfKind
    least, most = (_SIZE.convert(size, context) for size in sizes)
    if least > most:
        raise NotOfKind
    return least, most


RECORD_SIZES = Kind(
    f"a number of bytes up to {RECORD_BYTES_MAX:,}, or [smallest, largest]",
    {"type": ["integer", "array"]},
    _convert_sizes,
)


def _convert_acks(value: Any, _context: Context) -> int:
    if value not in ("all", -1, 0, 1) or isinstance(value, (bool, float)):
        raise NotOfKind
    return -1 if value == "all" else int(value)


ACKS = Kind("0, 1 or 'all'", {"enum": [0, 1, -1, "all"]}, _convert_acks)


def _convert_time_or_end(value: Any, context: Context) -> float | None:
    time_ms: float | None = None if value == "end" else MILLISECONDS.convert(value, context)
    return time_ms


TIME_OR_END = Kind(
    f"{MILLISECONDS.words}, or 'end'", {"type": ["number", "string"]}, _convert_time_or_end
)
CONDITIONS = tuple_of(CONDITION, "a condition, or a list of them", ["alive(1)"], takes_one=True)
EPOCHS = Kind(
    "leader epochs with the first offset of each",
    {"type": "string"},
    lambda value, context: " ".join(STRING.convert(value, context).split()),
    "0@0 2@12",
)
RECORD_VALUES = tuple_of(STRING, "a list of values of records", ["m1"])

_BUDGET_PARAMETERS = tuple(optional(name, number(is_above=True)) for name in BUDGETS)
BUDGET = Kind(
    "a table of limits",
    {"type": "object"},
    lambda value, context: read(_BUDGET_PARAMETERS, OBJECT.convert(value, context), context),
    {"wall_s": 60},
)
