"""Source in the form in which the compiler does with it what Python does.

Messages become plain classes with their methods written out.

A class decorator can give any class, so the compiler makes no native class of one that has it. In
the copy that is compiled, each ``@message`` gives way to the methods that it would have made.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

_IMPORT = "from fakekafka.protocol.declaring.methods import adopted as _adopted, frozen_as"


def with_native_messages(text: str) -> str:
    """The source of a module with its messages written out; others are as they were."""
    lines = text.split("\n")
    ends: list[tuple[int, str]] = []
    is_changed = False
    tree = ast.parse(text)
    fieldless = {
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.bases and not _fields(node)
    }
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and _decorator(node) == "message":
            strangers = [base for base in map(ast.unparse, node.bases) if base not in fieldless]
            if strangers:
                raise ValueError(f"{node.name} may have fields of {strangers[0]}: inherit none")
            lines[node.decorator_list[0].lineno - 1] = ""
            for field in _fields(node):
                assert field.end_lineno is not None
                # Else the compiler would set the default first, whenever a message is made.
                kept = f"    {ast.unparse(field.target)}: {ast.unparse(field.annotation)}"
                blank = [""] * (field.end_lineno - field.lineno)
                lines[field.lineno - 1 : field.end_lineno] = [kept, *blank]
            ends.append((node.end_lineno or 0, _methods(node)))
            is_changed = True
        elif isinstance(node, ast.ClassDef) and _decorator(node) == "frozen":
            lines[node.decorator_list[0].lineno - 1] = f"@frozen_as({_kinds(node)})"
            is_changed = True
    if not is_changed:
        return text
    for end, methods in reversed(ends):
        lines[end:end] = methods.split("\n")
    start = lines.index("from __future__ import annotations")
    lines[start] += f"; {_IMPORT}"  # on one line: the numbers of the others stay
    return "\n".join(lines)


def with_whole_numbers(text: str) -> str:
    """The source of a module that says of each ``float`` that it may be an ``int``, as Python has
    it: the compiler would make a fraction of a whole number, which is shown in another way."""
    lines = text.split("\n")
    found = {
        (node.lineno, node.col_offset)
        for annotation in _annotations(ast.parse(text))
        for node in ast.walk(annotation)
        if isinstance(node, ast.Name) and node.id == "float"
    }
    for number, column in sorted(found, reverse=True):
        line = lines[number - 1].encode()  # columns are counted in bytes
        lines[number - 1] = (line[:column] + b"int | " + line[column:]).decode()
    return "\n".join(lines)


def _annotations(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.arg, ast.AnnAssign)) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.returns is not None:
            yield node.returns


def _decorator(node: ast.ClassDef) -> str:
    return " ".join(ast.unparse(decorator) for decorator in node.decorator_list)


def _fields(node: ast.ClassDef) -> list[ast.AnnAssign]:
    return [
        entry
        for entry in node.body
        if isinstance(entry, ast.AnnAssign) and "ClassVar" not in ast.unparse(entry.annotation)
    ]


def _kinds(node: ast.ClassDef) -> str:
    """The annotations of a class, which the compiler would keep as types instead of texts."""
    return repr(
        {
            ast.unparse(entry.target): ast.unparse(entry.annotation)
            for entry in node.body
            if isinstance(entry, ast.AnnAssign)
        }
    )


def _methods(node: ast.ClassDef) -> str:
    """What the decorator makes, for the end of the class and behind it."""
    names, parameters, defaults = [], ["self"], []
    for field in _fields(node):
        assert isinstance(field.target, ast.Name)
        name, kind = field.target.id, ast.unparse(field.annotation)
        names.append(name)
        if field.value is None:
            parameters.append(f"{name}: {kind}")
        else:
            default = ast.unparse(field.value)
            defaults.append(f"{name!r}: {default}")
            parameters.append(f"{name}: {kind} = {default}")
    set_fields = "; ".join(f"self.{name} = {name}" for name in names) or "pass"
    values = "".join(f"self.{name}, " for name in names)
    same = " and ".join(f"self.{name} == other.{name}" for name in names) or "True"
    return f"""
    def __init__({", ".join(parameters)}) -> None:
        {set_fields}

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, {node.name})
        return {same}

    def __hash__(self) -> int:
        return hash(({values}))


_adopted({node.name}, {_kinds(node)}, {{{", ".join(defaults)}}})
"""
