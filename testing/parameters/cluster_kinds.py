"""Kinds of arguments about a cluster: brokers, machines, partitions, replicas, errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from numbers import Real
from typing import Any

from ..api_names import error_code, message_type
from .kinds import (
    COUNT,
    INDEX,
    INT32,
    MILLISECONDS,
    OBJECT,
    STRING,
    BadArgument,
    Context,
    Kind,
    NotOfKind,
    as_problem,
    choice,
    instance,
    list_of,
    nullable,
    pair,
)
from .parameter import optional, read
from .toml_values import flatten

_PARTITION_NAME = re.compile(r"(.+)-(\d{1,9})")
_ID_OR_NAME = {"type": ["integer", "string"]}
_BROKER_IDS = {"type": "array", "items": {"type": "integer"}}


def _id_or_name(value: Any, context: Context) -> Any:
    return value if isinstance(value, str) else INT32.convert(value, context)


def _parse_broker(text: str) -> Any:
    return int(text) if re.fullmatch(r"-?[0-9]{1,10}", text) else text


BROKER = Kind(
    "a broker id, or a role such as 'controller' or 'leader:orders-0'",
    _ID_OR_NAME,
    lambda value, context: context.broker(_id_or_name(value, context)),
    parse_text=_parse_broker,
)
MACHINE = Kind(
    "a broker id, or a name such as 'zk-1' or 'leader:orders-0'",
    _ID_OR_NAME,
    lambda value, context: context.machine(_id_or_name(value, context)),
    parse_text=_parse_broker,
)
MACHINES = list_of(MACHINE, "a list of machines", [2, "zk-1"])
GROUPS = list_of(MACHINES, "lists of machines, one for each group", [[1], [2, 3]])
SERVER = Kind(
    "the number of a ZooKeeper server",
    {"type": "integer", "minimum": 1},
    lambda value, context: context.server(COUNT.convert(value, context)),
    example=1,
    parse_text=COUNT.parse_text,
    type=int,
)
LOG_DIR = Kind(
    "the number of a log directory",
    {"type": "integer", "minimum": 0},
    lambda value, context: context.log_dir(INDEX.convert(value, context)),
    example=0,
    parse_text=INDEX.parse_text,
    type=int,
)


# -- links -----------------------------------------------------------------------------------------

LATENCY_MODELS = (
    optional("constant_ms", MILLISECONDS, "every message takes so long"),
    optional(
        "uniform_ms",
        pair("two numbers of milliseconds, the lowest first", (1, 5), rises=True),
        "all delays from the first to the second are equally likely",
    ),
    optional(
        "lognormal_ms",
        pair("a median in milliseconds and a sigma", (0.5, 0.4)),
        "median, and sigma of the logarithm",
    ),
)


def _convert_latency(value: Any, context: Context) -> dict[str, Any]:
    found = read(LATENCY_MODELS, OBJECT.convert(value, context), context)
    if len(found) != 1:
        raise BadArgument("give exactly one of constant_ms, uniform_ms and lognormal_ms")
    return found


LATENCY = Kind("one model of latency", {"type": "object"}, _convert_latency, {"constant_ms": 5})
"""One latency model, as keyword arguments of ``network.latency``."""


# -- topics, partitions and their replicas ---------------------------------------------------------

TOPIC = Kind(
    "the name of a topic",
    {"type": "string"},
    lambda value, context: context.topic(STRING.convert(value, context)),
    "orders",
    parse_text=str,
    type=str,
)
TOPIC_NAMES = list_of(STRING, "a list of names", ["orders", "payments"], least=1)


def _convert_partition(value: Any, context: Context) -> tuple[str, int]:
    """Return a partition, written ``orders-0`` or as its topic and its number."""
    if isinstance(value, str):
        match = _PARTITION_NAME.fullmatch(value)
        if match is None:
            raise NotOfKind
        return context.partition(match[1], int(match[2]))
    if not isinstance(value, (tuple, list)) or len(value) != 2 or not isinstance(value[0], str):
        raise NotOfKind
    return context.partition(value[0], INDEX.convert(value[1], context))


PARTITION = Kind(
    "a partition", {"type": ["string", "array"]}, _convert_partition, "orders-0", parse_text=str
)
PARTITIONS = list_of(PARTITION, "a list of partitions", ["orders-0", "orders-1"])

_IDS = list_of(INT32, "a list of broker ids", [1, 2])
REPLICAS = Kind(
    _IDS.words,
    _BROKER_IDS,
    lambda value, context: context.replicas(_IDS.convert(value, context)),
    [2, 3, 1],
)
REPLICA_LISTS = list_of(REPLICAS, "lists of broker ids, one for each partition", [[1, 2], [2, 3]])


def _convert_assignment(value: Any, context: Context) -> dict[int, list[int]]:
    """Return the replicas of each partition, by its number."""
    if isinstance(value, list):
        value = dict(enumerate(value))
    if not isinstance(value, Mapping) or not value:
        raise NotOfKind
    found = {}
    for key, replicas in value.items():
        number = INDEX.parse_text(key) if context.has_text_keys and isinstance(key, str) else key
        if not isinstance(number, int) or number < 0:
            raise BadArgument(
                f"has the key {context.write_shortened(key)}, which is no partition number"
            )
        found[number] = REPLICAS.read_at(f"[{number}]", replicas, context)
    return found


ASSIGNMENT = Kind(
    "a mapping of partition numbers to broker ids",
    {"type": "object", "additionalProperties": _BROKER_IDS},
    _convert_assignment,
    {0: [1, 2]},
)


def _by_partition(kind: Kind, words: str, example: Any) -> Kind:
    """Return the kind of values by partition: a mapping, or ``[topic, partition, value]`` lists."""

    def entries(value: Any) -> Iterator[tuple[Any, Any]]:
        if isinstance(value, Mapping):
            yield from value.items()
            return
        if not isinstance(value, (list, tuple)):
            raise NotOfKind
        for entry in value:
            if not isinstance(entry, (list, tuple)) or len(entry) != 3:
                raise NotOfKind
            yield entry[:2], entry[2]

    def convert(value: Any, context: Context) -> dict[tuple[str, int], Any]:
        found = {}
        for key, item in entries(value):
            try:
                topic, number = _convert_partition(key, context)
            except NotOfKind:
                right = f"write it like {context.write('orders-0')}"
                raise BadArgument(
                    f"{context.write_shortened(key)} is no partition; {right}"
                ) from None
            found[topic, number] = kind.read_at(f"{topic}-{number}", item, context)
        if not found:
            raise NotOfKind
        return found

    schema = {"type": ["object", "array"], "items": {"type": "array"}}
    return Kind(words, schema, convert, example)


MOVES = _by_partition(
    nullable(REPLICAS), "a mapping of partitions to broker ids", {"orders-0": [2, 3, 1]}
)
ELECTION = choice("preferred", "unclean")


# -- requests and messages -------------------------------------------------------------------------


API = instance("Kafka's name of an API", str, {"type": "string"}, example="Produce", parse_text=str)


def _convert_error(value: Any, context: Context) -> str:
    name_or_code = value if isinstance(value, str) else INT32.convert(value, context)
    with as_problem():
        return error_code(name_or_code).name


ERROR = Kind(
    "the name of one of Kafka's errors",
    {"type": ["string", "integer"]},
    _convert_error,
    "NOT_LEADER_OR_FOLLOWER",
    parse_text=str,
)
PARTITION_ERRORS = _by_partition(
    ERROR, "errors by partition", {"orders-0": "NOT_LEADER_OR_FOLLOWER"}
)


def _convert_message(value: Any, _context: Context) -> type:
    with as_problem():
        return message_type(STRING.convert(value, _context))


MESSAGE = Kind(
    "the name of a message", {"type": "string"}, _convert_message, "FetchResponse", parse_text=str
)
MESSAGES = list_of(MESSAGE, "names of messages", ["FetchResponse"], takes_one=True)


def _convert_times(value: Any, context: Context) -> int | None:
    return None if value == "all" else COUNT.convert(value, context)


TIMES = Kind(
    "a whole number >= 1, or 'all'",
    {"type": ["integer", "string"]},
    _convert_times,
    parse_text=COUNT.parse_text,
)


# -- configuration ---------------------------------------------------------------------------------


def config_text(value: Any) -> str:
    """Return a value as text, as Kafka's configuration has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _convert_config_value(value: Any, _context: Context) -> str:
    if not isinstance(value, (str, Real)):
        raise NotOfKind
    return config_text(value)


_CONFIG_VALUE = Kind("a string, a number, true or false", {}, _convert_config_value)


def _convert_topic_config(value: Any, context: Context) -> dict[str, str]:
    """Return a topic's configuration as texts. In TOML, Kafka's dotted names may be written
    without quotes, which makes them nested tables."""
    given = OBJECT.convert(value, context)
    if not all(isinstance(name, str) for name in given):
        raise NotOfKind
    flat = flatten(given)
    texts = {name: _CONFIG_VALUE.read_at(name, one, context) for name, one in flat.items()}
    return context.topic_config(texts)


TOPIC_CONFIG = Kind(
    "a mapping of Kafka's names to values",
    {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
    _convert_topic_config,
    {"retention.ms": 5000},
)
