"""Random Kafka messages as trees of dictionaries, by the names of the field table."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from random import Random
from typing import Any

from fakekafka.protocol.errors import ErrorCode
from fakekafka.wire.kafka.messages.table import Field, includes

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_TEXTS = ("", "a", "orders", "très-long " * 14, "x" * 127)
_ERRORS = sorted(ErrorCode)
_NULL_TO_SCALA = ("topic",)
"""Fields that may be null only for the Scala code of 0.10."""
_DURATIONS_MS_MAX = 2**31 - 1


class RandomTrees:
    """Draws the fields of messages."""

    def __init__(self, random: Random, elements_max: int = 3) -> None:
        self._random = random
        self._elements_max = elements_max

    def tree(self, fields: Sequence[Field], version: int) -> dict[str, Any]:
        """Return the fields of a version; tagged ones may be missing."""
        return {
            field.name: self._value(field, version)
            for field in fields
            if includes(field.versions, version)
            and not (includes(field.tagged, version) and self._random.random() < 0.5)
        }

    def _value(self, field: Field, version: int) -> Any:
        if includes(field.tagged, version):
            return self._unlike_default(field, version)
        may_be_null = includes(field.nullable, version) and field.name not in _NULL_TO_SCALA
        if may_be_null and self._random.random() < 0.3:
            return None
        return self._present(field, field.kind, version)

    def _unlike_default(self, field: Field, version: int) -> Any:
        """Return a non-default value, as other codecs omit a tagged field with its default."""
        while True:
            value = self._present(field, field.kind, version)
            if value not in (field.default, [], bytes(16)) and not (
                field.kind == "{}" and all(value[one.name] == one.default for one in field.children)
            ):
                return value

    def _present(self, field: Field, kind: str, version: int) -> Any:
        random = self._random
        if kind.startswith("[]"):
            count = random.choice((0, 1, random.randint(0, self._elements_max)))
            return [self._present(field, kind[2:] or "{}", version) for _ in range(count)]
        if kind == "{}":
            return self.tree(field.children, version)
        if kind == "string":
            return random.choice(_TEXTS)
        if kind in ("bytes", "records"):
            return random.randbytes(random.choice((0, 5, 130)))
        if kind == "uuid":
            return random.randbytes(16)
        if kind == "bool":
            return random.random() < 0.5
        if kind == "float64":
            return struct.unpack(">d", struct.pack(">d", random.uniform(-1e9, 1e9)))[0]
        if kind.startswith("uint"):
            return random.randrange(1 << int(kind[4:]))
        if field.name.lower().endswith("errorcode"):
            return int(random.choice(_ERRORS))
        return self._number(field.name, _BITS[kind])

    def _number(self, name: str, bits: int) -> int:
        """Return a number that other codecs can convert if the name is a time's or duration's."""
        random = self._random
        if bits >= 32 and name.endswith(("Timestamp", "Ms")):
            return random.randrange(_DURATIONS_MS_MAX)
        limit = 1 << (bits - 1)
        return random.choice((-limit, -1, 0, 1, limit - 1, random.randrange(-limit, limit)))
