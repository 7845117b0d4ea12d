"""Checks of arguments: a wrong type or a value out of range is refused in the call itself.

Otherwise it would reach a broker and look like a bug of the emulation there. Each check returns
the value in the form that the API uses, or raises ``UsageError`` with the argument's name, its
value and what would be right.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, NoReturn

from ..protocol.errors import UsageError, did_you_mean
from ..protocol.versions import Behaviour, behaviour
from .parameters import kinds
from .parameters.kinds import STRING, whole

_SHAPE = ("partitions", "replication_factor", "config", "assignment")
"""Arguments of ``create_topic`` beside the name."""

_BROKER_ID_MAX = 2**31 - 1
_NO_LIMIT = 10**100
"""Limit of whole numbers, high enough for any seed."""


def refuse(name: str, value: object, right: str) -> NoReturn:
    """Raise ``UsageError``: ``name must be right, not value``."""
    raise UsageError(f"{name} must be {right}, not {value!r}")


def integer(name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """Check a whole number within a range."""
    found: int = whole(least, most, limit=_NO_LIMIT).check(name, value)
    return found


def number(name: str, value: Any, unit: str = "", *, above_zero: bool = False) -> float:
    """Check a finite number >= 0, or > 0 with ``above_zero``."""
    found: float = kinds.number(unit, is_above=above_zero).check(name, value)
    return found


def signed_number(name: str, value: Any, unit: str) -> float:
    """Check a finite number, which may be negative."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        refuse(name, value, f"{unit}, below 0 too")
    return float(value)


def text(name: str, value: Any) -> str:
    """Check a string."""
    found: str = STRING.check(name, value)
    return found


def behaviour_flags(kafka_version: Any, flags: Any) -> Behaviour:
    """Return the flags of a version, or the ``flags`` that replace them."""
    of_version = behaviour(text("kafka_version", kafka_version))
    if flags is None:
        return of_version
    right = f"flags of version {of_version.kafka_version!r} with some replaced"
    if not isinstance(flags, Behaviour):
        refuse("behaviour", flags, right)
    if flags.kafka_version != of_version.kafka_version:
        raise UsageError(f"behaviour must be {right}, not those of {flags.kafka_version!r}")
    return flags


def function(name: str, value: Any, example: str) -> Any:
    """Check a callable that is not a coroutine function."""
    if not callable(value):
        refuse(name, value, f"a function, such as {example}")
    if inspect.iscoroutinefunction(value):
        refuse(name, value, f"a function that is not a coroutine function, such as {example}")
    return value


def main(value: Any) -> Any:
    """Check a program's main function."""
    if not callable(value):
        refuse("main", value, "an async def function; give its arguments beside it")
    return value


def condition(value: Any) -> Any:
    """Check a condition to wait for."""
    return function("condition", value, "lambda: cluster.controller.id is not None")


def listed(name: str, values: Any, right: str) -> list[Any]:
    """Check several values; a single string is refused, not split into letters."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        refuse(name, values, right)
    return list(values)


def integers(name: str, values: Any, right: str) -> tuple[int, ...]:
    """Check several whole numbers; an empty list is left for Kafka to refuse."""
    found = listed(name, values, right)
    if not all(isinstance(value, Integral) and not isinstance(value, bool) for value in found):
        refuse(name, values, right)
    return tuple(int(value) for value in found)


def path(name: str, value: Any) -> str:
    """Check the path of a znode."""
    if not isinstance(value, str) or not value.startswith("/"):
        refuse(name, value, "a path such as '/brokers/ids'")
    return value


def file_path(name: str, value: Any) -> Path | None:
    """Check the path of a file or directory, or None."""
    if value is None:
        return None
    if not isinstance(value, (str, os.PathLike)):
        refuse(name, value, "a path")
    return Path(value)


def ports(name: str, values: Any, count: int, of_what: str) -> tuple[int, ...]:
    """Check one TCP port for each broker or server; 0 stands for a free port."""
    right = f"a list of {count} ports from 0 (any free one) to 65535"
    found = listed(name, values, right)
    if len(found) != count:
        raise UsageError(f"{name} names {len(found)} ports for {count} {of_what}")
    return tuple(integer(f"{name}[{at}]", port, 0, 65535) for at, port in enumerate(found))


def advertised_host(value: Any, host: str) -> str:
    """Return the host that brokers advertise: by default their own, if clients can reach it."""
    if value is not None:
        return text("advertised_host", value)
    if host in ("0.0.0.0", "::", ""):
        raise UsageError(f"{host} cannot be advertised to clients; give an advertised host")
    return host


# -- clusters and topics ---------------------------------------------------------------------------


def broker_ids(value: Any) -> tuple[int, ...]:
    """Return the ids of the brokers: the list given, or 1 to the number given."""
    right = "a whole number, or a list of broker ids such as [0, 1, 2]"
    if isinstance(value, Integral) and not isinstance(value, bool):
        if value < 1:
            raise UsageError(f"a cluster needs at least one broker, not {value}")
        return tuple(range(1, int(value) + 1))
    ids = integers("brokers", value, right)
    if not ids:
        raise UsageError("a cluster needs at least one broker, and brokers names none")
    for at, broker_id in enumerate(ids):
        integer(f"brokers[{at}]", broker_id, 0, _BROKER_ID_MAX)
        if broker_id in ids[:at]:
            raise UsageError(f"brokers names {broker_id} twice: every broker has an id of its own")
    return ids


def racks(values: Any, count: int) -> tuple[str | None, ...]:
    """Check the rack of each broker."""
    found = listed("racks", values, f"a list of {count} racks, each a string or None")
    if len(found) != count:
        raise UsageError(f"racks names {len(found)} racks for {count} brokers")
    for at, rack in enumerate(found):
        if rack is not None:
            text(f"racks[{at}]", rack)
    return tuple(found)


def config(name: str, values: Any) -> dict[str, Any]:
    """Check a configuration by name; None is empty."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        refuse(name, values, "a mapping of Kafka's names to values")
    for key in values:
        text(f"a key of {name}", key)
    return dict(values)


def broker_config(values: Any) -> dict[str, Any]:
    """Check the configuration of all brokers, which may not have an id of one broker."""
    found = config("config", values)
    if str(found.get("broker.id", -1)) != "-1":
        raise UsageError(
            f"config: broker.id must be left out, not {found['broker.id']!r}: name the ids "
            "with brokers=[...], or let them be generated with -1"
        )
    return found


def topic_config(values: Any) -> tuple[tuple[str, str], ...]:
    """Return the configuration of a topic as requests carry it."""
    if values is None:
        return ()
    from .parameters.cluster_kinds import TOPIC_CONFIG  # not needed to start a cluster

    return tuple(TOPIC_CONFIG.check("config", values).items())


def partition_keys(values: Any) -> list[tuple[str, int]]:
    """Check several partitions."""
    from .parameters.cluster_kinds import PARTITIONS

    found: list[tuple[str, int]] = PARTITIONS.check("partitions", values)
    return found


def topics(values: Any) -> dict[str, Any]:
    """Check a new cluster's topics: partition counts or arguments of ``create_topic`` by name."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        refuse("topics", values, "a mapping of names to partition counts, such as {'orders': 3}")
    for name, shape in values.items():
        text("a name in topics", name)
        if isinstance(shape, Mapping):
            _check_shape(name, shape)
        else:
            integer(f"topics[{name!r}]", shape)
    return dict(values)


def _check_shape(topic: str, shape: Mapping[Any, Any]) -> None:
    for key in shape:
        if key not in _SHAPE:
            hint = nearest(key, _SHAPE)
            raise UsageError(f"topics[{topic!r}]: create_topic has no argument {key!r}{hint}")
    if "partitions" in shape:
        integer("partitions", shape["partitions"])
    if shape.get("replication_factor") is not None:
        integer("replication_factor", shape["replication_factor"])
    if shape.get("assignment") is not None:
        from .parameters.cluster_kinds import ASSIGNMENT

        ASSIGNMENT.check("assignment", shape["assignment"])
    topic_config(shape.get("config"))


def nearest(wanted: object, known: Sequence[str]) -> str:
    """Return ``; did you mean ...?``, or the list of known names if none is similar."""
    return did_you_mean(wanted, known) or f"; there are {', '.join(map(repr, known))}"


# -- records ---------------------------------------------------------------------------------------


def record_bytes(name: str, value: Any) -> bytes | None:
    """Return a key or a value as it is stored."""
    if isinstance(value, str):
        return value.encode()
    if value is not None and not isinstance(value, bytes):
        refuse(name, value, "bytes, a string or None")
    return value


def record_values(value: Any) -> list[bytes | None]:
    """Return the stored values of a list of records, or of one record."""
    if value is None or isinstance(value, (bytes, str)):
        return [record_bytes("value", value)]
    right = "bytes, a string, None, or a list of such"
    found = listed("value", value, right)
    if not found:
        refuse("value", value, right + " with one at least")
    return [record_bytes(f"value[{at}]", item) for at, item in enumerate(found)]


def headers(values: Any) -> tuple[tuple[str, bytes | None], ...]:
    """Check the headers of a record."""
    right = "pairs of a string and bytes or None, such as [('trace', b'1')]"
    found = listed("headers", values, right)
    for item in found:
        if (
            not isinstance(item, (tuple, list))
            or len(item) != 2
            or not isinstance(item[0], str)
            or not (item[1] is None or isinstance(item[1], bytes))
        ):
            refuse("headers", values, right)
    return tuple((key, value) for key, value in found)
