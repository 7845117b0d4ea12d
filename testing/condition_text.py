"""The message of a wait that timed out, made from the source of its condition."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

_VALUE_LENGTH_MAX = 200


def describe(condition: Callable[[], object]) -> str:
    """Describe a condition: a lambda's source, another function's name, or else its ``repr``."""
    if not isinstance(condition, FunctionType):
        return getattr(condition, "__qualname__", None) or repr(condition)
    if condition.__name__ != "<lambda>":
        return condition.__qualname__.rsplit("<locals>.", 1)[-1]
    found = _find_lambda(condition.__code__)
    return condition.__qualname__ if found is None else ast.unparse(found.body)


def operand_values(condition: Callable[[], object]) -> str:
    """Return the current values of a lambda's parts as text, empty if there is nothing to say.

    For ``cluster.controller.id == 2`` this is the value of the left side.
    """
    if not isinstance(condition, FunctionType) or condition.__name__ != "<lambda>":
        return ""
    found = _find_lambda(condition.__code__)
    if found is None:
        return ""
    names = dict(condition.__globals__)
    for name, cell in zip(condition.__code__.co_freevars, condition.__closure__ or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    values_text: list[str] = []
    for part in dict.fromkeys(ast.unparse(part) for part in _informative_operands(found.body)):
        try:
            value = eval(part, names)
            shown = repr(value)
        except Exception as error:
            shown = f"{type(error).__name__}: {error}"
            value = None
        if isinstance(value, bool) and part == ast.unparse(found.body):
            continue  # the whole condition is known to be false
        values_text.append(f"{part} is {_shortened(shown)}")
    return ", ".join(values_text)


def _shortened(text: str) -> str:
    return text if len(text) <= _VALUE_LENGTH_MAX else text[: _VALUE_LENGTH_MAX - 3] + "..."


def _informative_operands(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts of an expression whose values say why it does not hold."""
    match node:
        case ast.BoolOp(values=values):
            for value in values:
                yield from _informative_operands(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _informative_operands(operand)
        case ast.Compare(left=left, comparators=comparators):
            for side in (left, *comparators):
                if not isinstance(side, (ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict)):
                    yield side
        case _:
            yield node


def _find_lambda(code: CodeType) -> ast.Lambda | None:
    """Return the lambda in the source file of compiled code; None if it cannot be identified."""
    lines = linecache.getlines(code.co_filename)
    positions = {position[:4] for position in code.co_positions() if None not in position}
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return None
    fitting = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Lambda)
        and (node.body.lineno, node.body.end_lineno, node.body.col_offset, node.body.end_col_offset)
        in positions
    ]
    return fitting[0] if len(fitting) == 1 else None


def failed_wait(
    condition: Callable[[], object], within: str, state: Any, last_error: Exception | None = None
) -> str:
    """Return the message of a wait that timed out: condition, limit, last values and state."""
    values_text = operand_values(condition)
    if not values_text and last_error is not None:
        values_text = f"it raised {type(last_error).__name__}: {last_error}"
    return (
        f"{describe(condition)} did not hold within {within}"
        + (f"; {values_text}" if values_text else "")
        + f" ({state})"
    )
