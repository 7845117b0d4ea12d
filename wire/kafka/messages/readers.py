"""Readers of Kafka's messages, compiled from the table on first use.

A reader is generated as one function for all fields of its version, without a call per field:
neighbouring fields of a fixed size, with the length of the field after them, are unpacked at once.

Values are numbers, ``str``, uuids as 16 bytes, ``bytes``, tuples of these, and views of the data
for records. A field that the version does not have gets its default. Malformed data raises
``ClientError``, ``struct.error`` or ``UnicodeDecodeError``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from struct import Struct, unpack_from
from typing import Any

from ....protocol.errors import ClientError
from .lines import Lines
from .selection import Selected, selection
from .table import Field, Message, includes
from .varints import Buffer, tagged_fields, too_long, unsigned_varint

Maker = Callable[..., Any]
Reader = Callable[[Buffer, Any], tuple[Any, int]]
"""Takes the bytes of a message and its context (``ApiCall``); returns the value that was read, and
its number of bytes."""

CODES: Mapping[str, str] = {
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "bool": "?",
    "uuid": "16s",
}
"""Format characters of ``struct`` for the types of a fixed size."""
CALL = "call"
"""Word in a selection that stands for the context of the message."""


def reader(
    found: Message, version: int, make: Maker, selected: str, makers: Mapping[str, Maker]
) -> Reader:
    """Return the reader of a message in this version.

    ``make`` is called with the selected values; those of an inner structure are a tuple. A maker
    named like a field converts its value.
    """
    source = _ReaderSource(found, version, makers)
    with source.function("read(data, call)"):
        source.line("try:")
        with source.indented():
            value = source.structure(found.fields, selection(selected))
            source.line("pass")
        source.line("except IndexError: raise too_short() from None")
        source.line(f"return make{value}, at")
    source.namespace["make"] = make
    name = f"<{found.name} {version}>"
    exec(compile("".join(source.functions), name, "exec"), source.namespace)
    return source.namespace["read"]  # type: ignore[no-any-return]


def _too_many(count: int, remaining: int) -> ClientError:
    return ClientError(f"an array of {count} elements with {remaining} bytes remaining")


def _too_short() -> ClientError:
    return ClientError("the message ends where a length should be")


def _null(kind: str) -> ClientError:
    what = "an array" if kind.startswith("[]") else "a string" if kind == "string" else kind
    return ClientError(f"null where {what} {'are' if kind == 'bytes' else 'is'} required")


def _default(field: Field) -> str:
    """Return the source of an absent field's value: its default, None for a structure."""
    return repr(None if field.kind == "{}" else field.default)


class _ReaderSource(Lines):
    """The source of a reader while it is generated: its function, after those of tagged fields."""

    def __init__(self, found: Message, version: int, makers: Mapping[str, Maker]) -> None:
        super().__init__()
        self.functions: list[str] = []
        self.namespace: dict[str, Any] = {
            "too_long": too_long,
            "null": _null,
            "tagged_fields": tagged_fields,
            "too_many": _too_many,
            "too_short": _too_short,
            "unpack_from": unpack_from,
            "unsigned_varint": unsigned_varint,
            **{f"make_{name}": maker for name, maker in makers.items()},
        }
        self._makers = makers
        self._version = version
        self._flexible = includes(found.flexible, version)
        self._has_records = found.has_records
        """If False, the data are first copied to ``bytes``, which are sliced faster than views."""
        self._codes = ""
        """``struct`` format of the values to unpack next."""
        self._targets: list[str] = []
        """Names to which these values are assigned."""

    @contextlib.contextmanager
    def function(self, head: str) -> Iterator[None]:
        """Add a separate function, whose body is the lines added in this context."""
        before = self.lines, self._indent
        self.lines, self._indent = [], " "
        yield
        start = ["at = 0", "end = len(data)"] + ["data = bytes(data)"] * (not self._has_records)
        lines = "\n".join([f" {line}" for line in start] + self.lines)
        self.functions.append(f"def {head}:\n{lines}\n")
        self.lines, self._indent = before

    def structure(self, fields: Sequence[Field], selected: Sequence[Selected]) -> str:
        """Add code that reads a structure; return the source of the tuple of selected values."""
        inner = {one.field: one.inner for one in selected}
        values: dict[str, str] = {CALL: CALL}
        tagged: list[Field] = []
        for field in fields:
            if not includes(field.versions, self._version):
                values[field.name] = _default(field)
            elif includes(field.tagged, self._version):
                if field.name in inner:
                    tagged.append(field)
            else:
                values[field.name] = target = self.new(field.name)
                self._field(field, target, inner.get(field.name, ()))
                if field.name in self._makers:
                    values[field.name] = f"make_{field.name}({target})"
        if self._flexible:
            tags = self.new("tags")
            self._unpack("B", tags)
            self._flush()
            values |= self._tagged(tags, tagged, inner)
        self._flush()
        return "(" + "".join(f"{values[one.field]}, " for one in selected) + ")"

    def _tagged(
        self, tags: str, tagged: Sequence[Field], inner: Mapping[str, Sequence[Selected]]
    ) -> dict[str, str]:
        """Add code that reads the tagged fields; return the names of their values."""
        values = {field.name: self.new(field.name) for field in tagged}
        for field in tagged:
            self.line(f"{values[field.name]} = {_default(field)}")
        self.line(f"if {tags}:")
        with self.indented():
            self.line(f"{tags}, at = tagged_fields(data, at - 1)")
            for field in tagged:
                read = self._value_reader(field, inner[field.name])
                value = f"{read}({tags}[{field.tag}], call)"
                self.line(f"if {field.tag} in {tags}: {values[field.name]} = {value}")
        return values

    def _value_reader(self, field: Field, selected: Sequence[Selected]) -> str:
        """Add a function that reads the content of a tagged field, and return its name."""
        read = self.new("read")
        with self.function(f"{read}(data, call)"):
            self._field(field, "value", selected)
            self._flush()
            self.line("return value")
        return read

    def _field(self, field: Field, target: str, selected: Sequence[Selected]) -> None:
        kind = field.kind
        nullable = includes(field.nullable, self._version)
        if kind in CODES:
            self._unpack(CODES[kind], target)
        elif kind == "{}":
            self._inner_structure(field, target, nullable, selected)
        elif field.is_array:
            self._array(field, target, nullable, selected)
        else:
            self._sized(kind, target, nullable)

    def _inner_structure(
        self, field: Field, target: str, nullable: bool, selected: Sequence[Selected]
    ) -> None:
        if not nullable:
            self.line(f"{target} = {self.structure(field.children, selected)}")
            return
        present = self.new("present")
        self._unpack("b", present)
        self._flush()
        with self._unless_null(present, field.kind, target, True):
            self._inner_structure(field, target, False, selected)

    def _sized(self, kind: str, target: str, nullable: bool) -> None:
        """Add code that reads a string, bytes or records."""
        size = self._size("h" if kind == "string" else "i")
        stop = self.new("stop")
        with self._unless_null(size, kind, target, nullable):
            self.line(f"{stop} = at + {size}")
            self.line(f"if {stop} > end: raise too_long({size}, end - at)")
            value = f"data[at:{stop}]"
            if kind == "string":
                value = f"str({value}, 'utf-8')" if self._has_records else f"{value}.decode()"
            elif kind == "bytes":
                value = f"bytes({value})"
            self.line(f"{target} = {value}")
            self.line(f"at = {stop}")

    def _array(
        self, field: Field, target: str, nullable: bool, selected: Sequence[Selected]
    ) -> None:
        count = self._size("i")
        element = field.kind.removeprefix("[]")
        self.line(f"if {count} > end - at: raise too_many({count}, end - at)")
        with self._unless_null(count, field.kind, target, nullable):
            if element in CODES and element != "uuid":
                self._numbers(CODES[element], count, target)
                return
            found = self.new("found")
            self.line(f"{found} = []")
            self.line(f"for _ in range({count}):")
            with self.indented():
                if element:
                    value = self.new("element")
                    self._field(Field("element", element, field.versions), value, ())
                    self._flush()
                else:
                    value = self.structure(field.children, selected)
                self.line(f"{found}.append({value})")
            self.line(f"{target} = tuple({found})")

    def _numbers(self, code: str, count: str, target: str) -> None:
        stop = self.new("stop")
        self.line(f"{stop} = at + {Struct('>' + code).size} * {count}")
        self.line(f"if {stop} > end: raise too_long({stop} - at, end - at)")
        self.line(f"{target} = unpack_from(f'>{{{count}}}{code}', data, at)")
        self.line(f"at = {stop}")

    def _size(self, code: str) -> str:
        """Add code that reads a length, and return the name of its value."""
        size = self.new("size")
        self._unpack("B" if self._flexible else code, size)
        self._flush()
        if self._flexible:
            self.line(f"if {size} > 127: {size}, at = unsigned_varint(data, at - 1)")
            self.line(f"{size} -= 1")
        return size

    @contextlib.contextmanager
    def _unless_null(self, size: str, kind: str, target: str, nullable: bool) -> Iterator[None]:
        if not nullable:
            self.line(f"if {size} < 0: raise null({kind!r})")
            yield
            return
        self.line(f"if {size} < 0: {target} = None")
        self.line("else:")
        with self.indented():
            yield

    def _unpack(self, code: str, target: str) -> None:
        self._codes += code
        self._targets.append(target)

    def _flush(self) -> None:
        """Add code that unpacks the gathered values."""
        codes, targets = self._codes, ", ".join(self._targets)
        if not codes:
            return
        self._codes, self._targets = "", []
        if codes == "B":
            self.line(f"{targets} = data[at]; at += 1")
            return
        layout = Struct(">" + codes)
        unpack = "unpack_" + codes.replace("?", "o")
        self.namespace[unpack] = layout.unpack_from
        self.line(f"{targets}, = {unpack}(data, at)")
        self.line(f"at += {layout.size}")
