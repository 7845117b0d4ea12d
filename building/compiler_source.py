"""Rewrites source so that it behaves in compiled form as it does in Python.

Messages become plain classes with their methods written out. A class decorator may return any
class, so the compiler makes no native class of a decorated one. In the copy that is compiled, each
``@message`` is replaced with the methods that the decorator would have added.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

_FUTURE = "from __future__ import annotations"
_IMPORT = "from fakekafka.protocol.declaring.methods import adopted as _adopted, frozen_as"


def with_native_messages(text: str) -> str:
    """Return a module's source with messages as plain classes; unchanged if it has none."""
    lines = text.split("\n")
    ends: list[tuple[int, str]] = []
    is_changed = False
    tree = ast.parse(text)
    fieldless = {"Request"} | {
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.bases and not _fields(node)
    }
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and _decorator(node) == "message":
            bases = [ast.unparse(base).partition("[")[0] for base in node.bases]
            strangers = [base for base in bases if base not in fieldless]
            if strangers:
                raise ValueError(f"{node.name} may have fields of {strangers[0]}: inherit none")
            lines[node.decorator_list[0].lineno - 1] = ""
            for field in _fields(node):
                assert field.end_lineno is not None
                # With a default here, compiled code would set it before every ``__init__``.
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
    _import(lines, _IMPORT)
    return "\n".join(lines)


def with_whole_numbers(text: str) -> str:
    """Return a module's source with ``int | float`` for each ``float``, as type checkers read it.

    The compiler would convert integers to floats, which are shown differently.
    """
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


def with_unchecked_arguments(text: str) -> str:
    """Return a module's source in which functions that check their arguments accept any type.

    They are marked with ``@checks_arguments``, which the compiled copy does not need.
    """
    if _FUTURE not in text:
        return text
    lines = text.split("\n")
    marks = [
        (node, mark)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
        for mark in node.decorator_list
        if ast.unparse(mark) == "checks_arguments"
    ]
    for _, mark in marks:
        lines[mark.lineno - 1] = ""
    found = [
        arg.annotation
        for node, _ in marks
        for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        if arg.annotation is not None
        and arg.annotation.lineno == arg.annotation.end_lineno
        and "Callable" not in ast.unparse(arg.annotation)  # compiled code does not check these
    ]
    for kind in sorted(found, key=lambda kind: (kind.lineno, kind.col_offset), reverse=True):
        line = lines[kind.lineno - 1].encode()
        changed = line[: kind.col_offset] + b"_Anything" + line[kind.end_col_offset :]
        lines[kind.lineno - 1] = changed.decode()
    if found:
        _import(lines, "from typing import Any as _Anything")
    return "\n".join(lines)


def with_final_constants(text: str) -> str:
    """Return a module's source with its constants declared ``Final``.

    Compiled code looks up any other name in the module's dictionary at each use.
    """
    if _FUTURE not in text:
        return text
    lines = text.split("\n")
    tree = ast.parse(text)
    written = [
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    for node in tree.body:
        target: ast.expr
        if isinstance(node, ast.Assign):
            target, kind = node.targets[0], ""
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target, kind = node.target, ast.unparse(node.annotation)
        else:
            continue
        is_variable = isinstance(node.value, ast.Call) and "TypeVar" in ast.unparse(node.value.func)
        if (
            not isinstance(target, ast.Name)
            or not target.id.isupper()
            or written.count(target.id) > 1
            or is_variable
            or kind.startswith(("Final", "TypeAlias"))
        ):
            continue
        name = target.id
        line = lines[node.lineno - 1]
        if not kind and line.startswith(f"{name} = "):
            lines[node.lineno - 1] = f"{name}: Final = {line.removeprefix(f'{name} = ')}"
        elif kind and line.startswith(f"{name}: {kind} = "):
            value = line.removeprefix(f"{name}: {kind} = ")
            lines[node.lineno - 1] = f"{name}: Final[{kind}] = {value}"
    _import(lines, "from typing import Final")
    return "\n".join(lines)


def with_awaits_after_errors(text: str) -> str:
    """Return a module's source in which no ``finally`` of a coroutine awaits.

    In compiled code, an error that passed through such a block is raised again in each later call
    of the function. So the block is written out twice, for the case of an error and for the other.
    ValueError if the ``try`` has handlers, or is left by ``return``, ``break`` or ``continue``.
    """
    lines = text.split("\n")
    found = [
        node
        for function in ast.walk(ast.parse(text))
        if isinstance(function, ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Try) and _has(node.finalbody, ast.Await)
    ]
    for node in sorted(found, key=lambda node: node.lineno, reverse=True):
        if node.handlers or node.orelse or _has(node.body, ast.Return, ast.Break, ast.Continue):
            raise ValueError(f"line {node.lineno}: awaits in a finally reached in many ways")
        begin, end = node.finalbody[0].lineno - 1, node.finalbody[-1].end_lineno
        indent = " " * node.col_offset
        head = max(n for n in range(begin) if lines[n] == f"{indent}finally:")
        block = lines[head + 1 : end]
        lines[head] = f"{indent}except BaseException:"
        lines[end:end] = [f"{indent}    raise", f"{indent}else:", *block]
    return "\n".join(lines)


def _has(body: list[ast.stmt], *kinds: type[ast.AST]) -> bool:
    return any(isinstance(inner, kinds) for node in body for inner in ast.walk(node))


def _import(lines: list[str], statement: str) -> None:
    """Insert an import on the line of another statement, so that line numbers stay."""
    (place,) = [number for number, line in enumerate(lines) if line.startswith(_FUTURE)]
    lines[place] += f"; {statement}"


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
    """Return the annotations of a class as text; the compiler would keep only their types."""
    return repr(
        {
            ast.unparse(entry.target): ast.unparse(entry.annotation)
            for entry in node.body
            if isinstance(entry, ast.AnnAssign)
        }
    )


def _methods(node: ast.ClassDef) -> str:
    """Return the source of the methods that the decorator adds, and a statement after the class."""
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

    def field_values(self) -> tuple[object, ...]:
        return ({values})


_adopted({node.name}, {_kinds(node)}, {{{", ".join(defaults)}}})
"""
