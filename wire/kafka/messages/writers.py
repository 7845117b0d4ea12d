"""Writers of Kafka's messages, compiled from the table on first use.

A writer is generated as one function for all fields of its version, without a call per field:
neighbouring fields of a fixed size are packed at once. Fields that the version does not have are
left out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from struct import Struct, pack
from typing import Any

from .lines import Lines
from .readers import CODES, Maker
from .selection import Selected, selection, snake_case
from .table import Field, Message, includes
from .varints import ONE_BYTE, Buffer, encoded_varint

Writer = Callable[[Any, Any, list[Buffer]], None]
"""Takes the value to write, its context (``ApiCall``), and a list to which it appends the bytes."""
THROTTLE = "throttleTimeMs"


def writer(found: Message, version: int, selected: str, makers: Mapping[str, Maker]) -> Writer:
    """Return the writer of a message in this version.

    The writer takes an object with the selected attributes, or a tuple if brackets enclose the
    selection. A maker named like a field converts its value. A field that is not selected gets its
    default. A tagged field is left out if its value is None.
    """
    text = selected if selected.startswith("[") else f"({selected})"
    (whole,) = selection(f"whole{text}")
    source = _WriterSource(found, version, makers)
    source.structure(found.fields, "value", whole)
    lines = ["def write(value, call, parts):", " add_parts = parts.append", *source.lines, ""]
    exec(compile("\n".join(lines), f"<{found.name} {version}>", "exec"), source.namespace)
    return source.namespace["write"]  # type: ignore[no-any-return]


_SMALL_ARRAY_MAX = 8
_SMALL_ARRAYS = {
    size: [Struct(f">{size}{count}i").pack for count in range(_SMALL_ARRAY_MAX + 1)]
    for size in "Bi"
}
"""Packers of up to eight ``int32`` after their count, by the format of the count and the count."""


def _tagged(fields: Sequence[tuple[int, list[Buffer]]]) -> bytes:
    """Encode the tagged fields at the end of a structure, in the order of their tags."""
    encoded = [encoded_varint(len(fields))]
    for tag, parts in fields:
        value = b"".join(parts)
        encoded += (encoded_varint(tag), encoded_varint(len(value)), value)
    return b"".join(encoded)


class _WriterSource(Lines):
    """The source of a writer while it is generated."""

    def __init__(self, found: Message, version: int, makers: Mapping[str, Maker]) -> None:
        super().__init__()
        self._version = version
        self._flexible = includes(found.flexible, version)
        self._makers = makers
        self.namespace: dict[str, Any] = {
            "one_byte": ONE_BYTE,
            "pack": pack,
            "small_arrays": _SMALL_ARRAYS["B" if self._flexible else "i"],
            "tagged": _tagged,
            "encoded_varint": encoded_varint,
            **{f"make_{name}": maker for name, maker in makers.items()},
        }
        self._codes = ""
        """``struct`` format of the values to pack next."""
        self._values: list[str] = []
        self._out = "parts"
        """Name of the list to which the bytes are appended."""

    def structure(self, fields: Sequence[Field], holder: str, selected: Selected) -> None:
        """Add code that writes the fields of a structure, which the variable ``holder`` holds."""
        inner = {one.field: one for one in selected.inner}
        values = self._values_of(holder, selected)
        tagged: list[Field] = []
        for field in fields:
            if not includes(field.versions, self._version):
                continue
            if includes(field.tagged, self._version):
                if field.name in inner:
                    tagged.append(field)
            elif field.name in values:
                self._field(field, values[field.name], inner.get(field.name))
            else:
                self._field(field, self._default(field), None)
        if self._flexible:
            self._tags(sorted(tagged, key=lambda field: field.tag), values, inner)
        self._flush()

    def _values_of(self, holder: str, selected: Selected) -> dict[str, str]:
        """Return the source of the value of each selected field."""
        values: dict[str, str] = {}
        for one in selected.inner:
            if selected.is_tuple:
                values[one.field] = self.new(one.field)
            else:
                values[one.field] = f"{holder}.{one.attribute or snake_case(one.field)}"
        if selected.is_tuple and values:
            self.line("".join(f"{part}, " for part in values.values()) + f"= {holder}")
            for one in selected.inner:
                if one.attribute:
                    values[one.field] += f".{one.attribute}"
        for name in values.keys() & self._makers:
            values[name] = f"make_{name}({values[name]})"
        values.setdefault(THROTTLE, "call.throttle_ms")
        return values

    def _default(self, field: Field) -> str:
        if field.default_text is None:
            raise KeyError(f"{field.name} has no default and is not selected")
        return repr(field.default)

    def _tags(
        self, tagged: Sequence[Field], values: Mapping[str, str], inner: Mapping[str, Selected]
    ) -> None:
        if not tagged:
            self._codes += "x"
            return
        given = [(field, self.new(field.name)) for field in tagged]
        for field, name in given:
            self.line(f"{name} = {values[field.name]}")
        found = self.new("tags")
        with self._unless(" is ".join([*(name for _, name in given), "None"]), "x", ()):
            self.line(f"{found} = []")
            for field, name in given:
                parts = self.new("parts")
                self.line(f"if {name} is not None:")
                with self.indented():
                    self.line(f"{parts} = []; add_{parts} = {parts}.append")
                    outer, self._out = self._out, parts
                    self._field(field, name, inner[field.name])
                    self._flush()
                    self._out = outer
                    self.line(f"{found}.append(({field.tag}, {parts}))")
            self.line(f"add_{self._out}(tagged({found}))")

    @contextlib.contextmanager
    def _unless(self, condition: str, code: str, values: Sequence[str]) -> Iterator[None]:
        """Add code that packs ``values`` if ``condition`` holds, and otherwise runs the lines added
        in this context."""
        codes, before = self._codes, self._values
        self._codes, self._values = codes + code, [*before, *values]
        self.line(f"if {condition}:")
        with self.indented():
            self._flush()
        self.line("else:")
        with self.indented():
            self._codes, self._values = codes, before
            self._flush()
            yield
            self._flush()

    def _field(self, field: Field, value: str, selected: Selected | None) -> None:
        kind = field.kind
        nullable = includes(field.nullable, self._version)
        if kind in CODES:
            self._pack(CODES[kind], value)
            return
        name = self.new(field.name)
        if kind == "string" and not nullable:
            self.line(f"{name} = {value}.encode()")
            self._sized("h", name)
            return
        self.line(f"{name} = {value}")
        if not nullable:
            self._present(field, name, selected)
            return
        code = "b" if kind == "{}" else "h" if kind == "string" else "i"
        if self._flexible and kind != "{}":
            null, values = "x", []
        else:
            null, values = code, ["-1"]
        with self._unless(f"{name} is None", null, values):
            if kind == "{}":
                self._pack("b", "1")
            self._present(field, name, selected)

    def _present(self, field: Field, name: str, selected: Selected | None) -> None:
        """Add code that writes a value that is not null and has no fixed size."""
        if field.kind == "{}":
            self.structure(field.children, name, selected or Selected(field.name, "", False, []))
        elif field.is_array:
            self._array(field, name, selected)
        elif field.kind == "string":
            self.line(f"{name} = {name}.encode()")
            self._sized("h", name)
        elif field.kind == "records":
            self._records(name)
        else:
            self._sized("i", name)

    def _records(self, name: str) -> None:
        """Add code that writes batches, whose bytes (``data``) are not copied."""
        size = self.new("size")
        self.line(f"{size} = 0")
        self.line(f"for batch in {name}: {size} += len(batch.data)")
        self._size("i", size)
        self._flush()
        self.line(f"for batch in {name}: add_{self._out}(batch.data)")

    def _array(self, field: Field, name: str, selected: Selected | None) -> None:
        element = field.kind.removeprefix("[]")
        if element == "int32":
            self._int32s(name)
            return
        self._size("i", f"len({name})")
        self._flush()
        if element in CODES and element != "uuid":
            packed = f"pack(f'>{{len({name})}}{CODES[element]}', *{name})"
            self.line(f"add_{self._out}({packed})")
            return
        if not element and selected is None:
            return  # the default has no elements
        item = self.new("element")
        self.line(f"for {item} in {name}:")
        with self.indented():
            if selected is None or element:
                self._field(Field("element", element, field.versions), item, None)
                self._flush()
            else:
                self.structure(field.children, item, selected)

    def _int32s(self, name: str) -> None:
        """Add code that writes an array of ``int32``, the most common one, and fast if short."""
        self._flush()
        count = self.new("count")
        self.line(f"{count} = len({name})")
        self.line(f"if {count} > {_SMALL_ARRAY_MAX}:")
        with self.indented():
            self._size("i", count)
            self._flush()
            self.line(f"add_{self._out}(pack(f'>{{{count}}}i', *{name}))")
        encoded_count = f"{count} + 1" if self._flexible else count
        self.line(f"else: add_{self._out}(small_arrays[{count}]({encoded_count}, *{name}))")

    def _sized(self, code: str, name: str) -> None:
        """Add code that writes bytes after their length."""
        self._size(code, f"len({name})")
        self._flush()
        self.line(f"add_{self._out}({name})")

    def _size(self, code: str, size: str) -> None:
        if not self._flexible:
            self._pack(code, size)
            return
        self._flush()
        name = self.new("size")
        self.line(f"{name} = {size} + 1")
        varint = f"one_byte[{name}] if {name} < 128 else encoded_varint({name})"
        self.line(f"add_{self._out}({varint})")

    def _pack(self, code: str, value: str) -> None:
        self._codes += code
        self._values.append(value)

    def _flush(self) -> None:
        """Add code that packs the gathered values."""
        codes, values = self._codes, ", ".join(self._values)
        if not codes:
            return
        self._codes, self._values = "", []
        if codes == "x":
            self.line(f"add_{self._out}(b'\\0')")
            return
        packer = "pack_" + codes.replace("?", "o")
        self.namespace[packer] = Struct(">" + codes).pack
        self.line(f"add_{self._out}({packer}({values}))")
