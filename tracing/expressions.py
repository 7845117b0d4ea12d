"""The expression language of filters, breakpoints and conditions: a small part of Python's.

Only comparisons, ``and or not``, ``in``, arithmetic, constants, names, attributes, indexing and a
few functions exist; an expression is parsed by ``ast``, checked node by node and turned into a
closure. It can reach nothing else. Comparing a missing value by order is false, not an error:
``payload.leader > 2`` is false for a message without a leader.
"""

from __future__ import annotations

import ast
import difflib
import operator
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ..protocol.errors import UsageError, did_you_mean, nearest_names

Scope = Any
Evaluate = Callable[[Scope], Any]
Lookup = Callable[[Scope, str], Any]


def _equal(left: Any, right: Any) -> bool:
    """Return whether two values are equal, treating tuples as lists."""
    if isinstance(left, tuple):
        left = list(left)
    if isinstance(right, tuple):
        right = list(right)
    return bool(left == right)


_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: _equal,
    ast.NotEq: lambda a, b: not _equal(a, b),
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "len": len,
    "min": min,
    "max": max,
    "abs": abs,
    "contains": lambda whole, part: part in whole,
    "startswith": lambda text, start: str(text).startswith(start),
    "endswith": lambda text, end: str(text).endswith(end),
    "matches": lambda text, pattern: re.search(pattern, str(text)) is not None,
}
_UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "min": 60_000_000}
_MAX_LENGTH = 4000


class Expression:
    """A compiled expression; ``holds(scope)`` returns whether it is true in a scope."""

    __slots__ = ("evaluate", "required", "text")

    def __init__(self, text: str, evaluate: Evaluate, required: dict[str, Any]) -> None:
        self.text: str = text
        self.evaluate: Evaluate = evaluate
        self.required: dict[str, Any] = required
        """Name to constant for every ``name == constant`` without which the whole is false."""

    def holds(self, scope: Scope) -> bool:
        return bool(self.evaluate(scope))

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"


def compile_expression(
    text: str,
    lookup: Lookup,
    names: Collection[str],
    *,
    words: Collection[str] = (),
    functions: Mapping[str, Callable[..., Any]] | None = None,
) -> Expression:
    """Compile an expression.

    ``names`` may be looked up in the scope; ``words`` stand for themselves as strings, so that
    ``type == LeaderAndIsrRequest`` needs no quotes. ``functions`` marked by ``takes_scope`` get
    the scope first. Raises ``UsageError``, which names the faulty part and its column, and
    suggests a correction if there is one.
    """
    if len(text) > _MAX_LENGTH:
        raise UsageError(f"the expression is longer than {_MAX_LENGTH} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError) as error:
        column = getattr(error, "offset", None) or 1
        reason = getattr(error, "msg", str(error))
        hint = "; write == to compare" if re.search(r"[^=!<>]=[^=]", text) else ""
        raise UsageError(f"expression {text!r}: {reason} at column {column}{hint}") from None
    compiler = _Compiler(text, lookup, names, words, {**FUNCTIONS, **(functions or {})})
    try:
        return Expression(text, compiler.compile(tree.body), _required(tree.body, words))
    except RecursionError:
        raise UsageError("the expression is nested too deeply") from None


def _required(node: ast.expr, words: Collection[str]) -> dict[str, Any]:
    """Return the equalities implied by the expression: those joined by ``and`` at the top."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        found: dict[str, Any] = {}
        for part in node.values:
            for name, value in _required(part, words).items():
                found.setdefault(name, value)
        return found
    if (
        isinstance(node, ast.Compare)
        and len(node.ops) == 1
        and isinstance(node.ops[0], ast.Eq)
        and isinstance(node.left, ast.Name)
    ):
        right = node.comparators[0]
        if isinstance(right, ast.Constant):
            return {node.left.id: right.value}
        if isinstance(right, ast.Name) and right.id in words:
            return {node.left.id: right.id}
    return {}


def attribute(value: Any, name: str) -> Any:
    """Evaluate ``value.name``: a key of a mapping, a data attribute of an object, else None."""
    if isinstance(value, Mapping):
        return value.get(name)
    if isinstance(value, list):  # a list gives the values of all its items
        return [attribute(item, name) for item in value]
    return None if name.startswith("_") else _data_attribute(value, name)


def _data_attribute(value: Any, name: str) -> Any:
    found = getattr(value, name, None)
    return None if callable(found) else found


@dataclass(eq=False)
class _Compiler:
    text: str
    lookup: Lookup
    names: Collection[str]
    words: Collection[str]
    functions: Mapping[str, Callable[..., Any]]

    def _refuse(self, node: ast.expr, what: str, more: str = "") -> UsageError:
        place = f"at column {node.col_offset + 1}"
        return UsageError(f"expression {self.text!r}: {what} {place}{more}")

    def compile(self, node: ast.expr) -> Evaluate:
        method = getattr(self, "_" + type(node).__name__.lower(), None)
        if method is None:
            source = ast.unparse(node)
            raise self._refuse(node, f"{source!r} is not part of the expression language")
        return method(node)  # type: ignore[no-any-return]

    def _constant(self, node: ast.Constant) -> Evaluate:
        value = node.value
        if not (value is None or isinstance(value, (str, int, float, bool, bytes))):
            raise self._refuse(node, f"the constant {value!r} is not allowed")
        return lambda scope: value

    def _name(self, node: ast.Name) -> Evaluate:
        name, lookup = node.id, self.lookup
        if name in self.names:
            return lambda scope: lookup(scope, name)
        if name in self.words:
            return lambda scope: name
        if name in ("true", "false"):
            return lambda scope: name == "true"
        known = [*self.names, *self.words, *self.functions]
        more = nearest_names(name, known) + did_you_mean(name, known)
        raise self._refuse(node, f"unknown name {name!r}", more)

    def _attribute(self, node: ast.Attribute) -> Evaluate:
        value, name = self.compile(node.value), node.attr
        if name.startswith("_"):
            raise self._refuse(node, f"names beginning with _ are not allowed ({name!r})")
        return lambda scope: attribute(value(scope), name)

    def _subscript(self, node: ast.Subscript) -> Evaluate:
        if isinstance(node.slice, ast.Slice):
            raise self._refuse(node, "slices are not allowed")
        value, index = self.compile(node.value), self.compile(node.slice)

        def item(scope: Scope) -> Any:
            try:
                return value(scope)[index(scope)]
            except (LookupError, TypeError):
                return None

        return item

    def _boolop(self, node: ast.BoolOp) -> Evaluate:
        parts = [self.compile(part) for part in node.values]
        if isinstance(node.op, ast.And):
            return lambda scope: all(part(scope) for part in parts)
        return lambda scope: any(part(scope) for part in parts)

    def _unaryop(self, node: ast.UnaryOp) -> Evaluate:
        value = self.compile(node.operand)
        if isinstance(node.op, ast.Not):
            return lambda scope: not value(scope)
        if isinstance(node.op, ast.USub):
            return lambda scope: _tolerant(operator.neg, value(scope))
        raise self._refuse(node, "this operator is not allowed")

    def _binop(self, node: ast.BinOp) -> Evaluate:
        function = _BINARY.get(type(node.op))
        if function is None:
            raise self._refuse(node, f"the operator of {ast.unparse(node)!r} is not allowed")
        left, right = self.compile(node.left), self.compile(node.right)

        def compute(scope: Scope) -> Any:
            a, b = left(scope), right(scope)
            if function is operator.mul and not (_is_number(a) and _is_number(b)):
                return None  # repeating a string or list could exhaust the memory
            return _tolerant(function, a, b)

        return compute

    def _compare(self, node: ast.Compare) -> Evaluate:
        first = self.compile(node.left)
        rest = [
            (_COMPARE[type(op)], self.compile(right))
            for op, right in zip(node.ops, node.comparators, strict=True)
        ]
        if len(rest) == 1:
            compare, only = rest[0]
            return lambda scope: _tolerant(compare, first(scope), only(scope), missing=False)

        def chain(scope: Scope) -> bool:
            left = first(scope)
            for compare, right in rest:
                value = right(scope)
                if not _tolerant(compare, left, value, missing=False):
                    return False
                left = value
            return True

        return chain

    def _ifexp(self, node: ast.IfExp) -> Evaluate:
        test, yes, no = (self.compile(part) for part in (node.test, node.body, node.orelse))
        return lambda scope: yes(scope) if test(scope) else no(scope)

    def _list(self, node: ast.List | ast.Tuple) -> Evaluate:
        items = [self.compile(item) for item in node.elts]
        return lambda scope: [item(scope) for item in items]

    _tuple = _list

    def _call(self, node: ast.Call) -> Evaluate:
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise self._refuse(node, "only plain calls of the known functions are allowed")
        name = node.func.id
        function = self.functions.get(name)
        if function is None:
            near = difflib.get_close_matches(name, self.functions, n=1)
            hint = f"; did you mean {near[0]}()?" if near else ""
            more = nearest_names(name, sorted(self.functions)) + hint
            raise self._refuse(node, f"unknown function {name}()", more)
        arguments = [self.compile(argument) for argument in node.args]
        if getattr(function, "takes_scope", False):
            return lambda scope: function(scope, *(part(scope) for part in arguments))
        return lambda scope: _tolerant(function, *(part(scope) for part in arguments))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _tolerant(function: Callable[..., Any], *values: Any, missing: Any = None) -> Any:
    try:
        return function(*values)
    except (TypeError, ValueError, ZeroDivisionError, re.error):
        return missing


def takes_scope(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function of the language that needs the scope as its first argument."""
    function.takes_scope = True  # type: ignore[attr-defined]
    return function


def parse_duration_us(text: str) -> int:
    """Convert a duration such as ``5s``, ``200ms``, ``3us`` or ``1m`` to microseconds.

    A number without a unit is in seconds.

    Raises ``UsageError`` for anything else.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*([a-z]*)\s*", text)
    if match is None or (match[2] and match[2] not in _UNITS_US):
        raise UsageError(f"{text!r} is not a duration; write it like 5s, 200ms, 30us or 1m")
    return round(float(match[1]) * _UNITS_US[match[2] or "s"])
