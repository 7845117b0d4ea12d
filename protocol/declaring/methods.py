"""Decorators for messages and settings: a faster replacement for the standard dataclasses.

The standard library generates, compiles and executes the source of each method of each dataclass.
For the hundreds of messages of all APIs, this takes longer than the start of a cluster. This module
compiles the source only once for each number of fields, and gives each class a copy of the bytecode
with the names of its fields. Such a method is as fast as one of a standard dataclass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import FrozenInstanceError, dataclass, replace
from types import CodeType, FunctionType
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")

_PLAIN = "self.f{0} = f{0}"
_FROZEN = "set_field(self, 'f{0}', f{0})"
_SOURCES = {
    "__init__": "def __init__({parameters}):\n    {body}\n",
    "__eq__": """
def __eq__(self, other):
    if other.__class__ is self.__class__:
        return ({own}) == ({others})
    return NotImplemented
""",
    "__hash__": "def __hash__(self):\n    return hash(({own}))\n",
    "field_values": "def field_values(self):\n    return ({own})\n",
}
_GLOBALS = {"set_field": object.__setattr__, "__name__": __name__}
_templates: dict[tuple[str, int, str, bool], CodeType] = {}


class _LazyClassAttribute:
    """A descriptor that computes a class attribute when the attribute is read."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        return self._read()


@dataclass_transform(frozen_default=True)
def message(cls: type[T]) -> type[T]:
    """Declare a message: an immutable dataclass with slots.

    Type checkers treat it as a frozen dataclass. At run time it is not frozen, because a frozen
    ``__init__`` takes four times as long, and a simulation creates messages all the time.
    """
    return declare_class(cls, is_frozen=False)  # type: ignore[no-any-return]


@dataclass_transform(frozen_default=True)
def frozen(cls: type[T]) -> type[T]:
    """Declare settings or a finding: a dataclass with slots that is also frozen at run time."""
    return declare_class(cls, is_frozen=True)  # type: ignore[no-any-return]


@dataclass_transform(frozen_default=True)
def frozen_as(kinds: Mapping[str, str]) -> Callable[[type[T]], type[T]]:
    """Return ``frozen`` for a class of a compiled module, whose annotations are ``kinds``."""

    def with_annotations(cls: type[T]) -> type[T]:
        cls.__annotations__ = dict(kinds)
        return frozen(cls)

    return with_annotations


@dataclass_transform(eq_default=False)
def assembled(cls: type[T]) -> type[T]:
    """Declare a mutable object whose constructor takes its fields; compared by identity."""
    return declare_class(cls, is_frozen=False, is_value=False)  # type: ignore[no-any-return]


def declare_class(cls: Any, is_frozen: bool, is_value: bool = True) -> Any:
    """Return the class with the methods of a dataclass.

    A class of values also gets slots; other classes are compared by identity. ``__post_init__`` is
    called if it exists; ``field()`` and ``KW_ONLY`` are not supported.
    """
    namespace = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
    namespace |= {"__annotations__": cls.__annotations__, "__qualname__": cls.__qualname__}
    own = [name for name, kind in cls.__annotations__.items() if "ClassVar" not in kind]
    inherited: list[str] = []
    defaults: dict[str, Any] = {}
    for base in cls.__mro__[-2:0:-1]:
        found = vars(base)
        inherited += found.get("__slots__", ())
        defaults |= _defaults(found)
    names = tuple(dict.fromkeys([*inherited, *own]))
    defaults |= {name: namespace[name] for name in own if name in namespace}
    kept = {name: value for name, value in namespace.items() if name not in own}
    made = methods(names, defaults, cls.__qualname__, is_frozen, hasattr(cls, "__post_init__"))
    made |= {**kept, "__match_args__": names}
    if is_value:
        made["__slots__"] = tuple(name for name in own if name not in inherited)
    else:
        del made["__eq__"], made["__hash__"]
    slotted: Any = _like_class(cls, made)
    _defer_dataclass(slotted, {**namespace, "__doc__": "no signature is worked out"})
    return slotted


def adopted(cls: Any, kinds: Mapping[str, str], defaults: Mapping[str, Any]) -> None:
    """Make a compiled class, which already has the methods of a message, known as a dataclass.

    ``kinds`` are its annotations.
    """
    known = {
        "__annotations__": dict(kinds),
        "__match_args__": tuple(kinds),
        "__repr__": _repr,
        "__reduce__": _reduce,
        "__replace__": replace,
    }
    for name, value in known.items():
        setattr(cls, name, value)
    namespace = {"__annotations__": kinds, "__module__": cls.__module__, "__doc__": "-", **defaults}
    _defer_dataclass(cls, namespace, ())


def _defer_dataclass(cls: Any, namespace: Mapping[str, Any], bases: Any = None) -> None:
    """Defer the standard library's work on a dataclass until its fields or parameters are read."""

    def process() -> None:
        # The standard library modifies the class it is given. It gets a copy, so that two threads
        # may do this at the same time.
        copy = _like_class(cls, namespace, bases)
        made = vars(dataclass(init=False, repr=False, eq=False)(copy))
        cls.__dataclass_fields__ = made["__dataclass_fields__"]
        cls.__dataclass_params__ = made["__dataclass_params__"]

    def fields() -> Any:
        process()
        return vars(cls)["__dataclass_fields__"]

    def parameters() -> Any:
        process()
        return vars(cls)["__dataclass_params__"]

    cls.__dataclass_fields__ = _LazyClassAttribute(fields)
    cls.__dataclass_params__ = _LazyClassAttribute(parameters)


def field_names(cls: Any) -> tuple[str, ...]:
    """Return the names of a declared class's fields, in the order of its constructor."""
    return cls.__match_args__  # type: ignore[no-any-return]


def reader_of_fields(cls: Any, names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that returns an instance's values of the fields ``names``."""
    compiled = vars(cls).get("field_values")
    return _method_for("field_values", names, cls.__qualname__) if compiled is None else compiled


def methods(
    names: Sequence[str],
    defaults: Mapping[str, Any],
    qualname: str,
    is_frozen: bool = False,
    has_post_init: bool = False,
) -> dict[str, Any]:
    """Return the methods of a class with these fields, by name."""
    needed = [name for name in names if name not in defaults]
    if list(names[: len(needed)]) != needed:
        raise TypeError(f"a field without default follows one with a default in {qualname}")
    assignment = _FROZEN if is_frozen else _PLAIN
    init = _method_for("__init__", names, qualname, assignment, has_post_init)
    init.__defaults__ = tuple(defaults[name] for name in names[len(needed) :])
    made: dict[str, Any] = {"__init__": init, "__eq__": _lazy_eq, "__hash__": _lazy_hash}
    made |= {"__repr__": _repr, "__replace__": replace}
    if is_frozen:
        made |= {
            "__setattr__": _raise_frozen,
            "__delattr__": _raise_frozen,
            "__setstate__": _set_state,
        }
    return made


def _lazy_eq(self: Any, other: object) -> Any:
    return _create_method("__eq__", _lazy_eq, type(self))(self, other)


def _lazy_hash(self: Any) -> int:
    return _create_method("__hash__", _lazy_hash, type(self))(self)  # type: ignore[no-any-return]


def _create_method(method: str, first: object, owner: type[Any]) -> Any:
    """Create a method on its first call, as most messages are never compared or hashed.

    It is set on the class that declares the fields.
    """
    for cls in owner.__mro__:
        if vars(cls).get(method) is first:
            break
    made = _method_for(method, field_names(cls), cls.__qualname__)
    setattr(cls, method, made)
    return made


def _method_for(
    method: str,
    names: Sequence[str],
    qualname: str,
    assignment: str = _PLAIN,
    has_post_init: bool = False,
) -> FunctionType:
    """Return a method for a class with these fields."""
    template = _template(method, len(names), assignment, has_post_init)
    renamed = {f"f{number}": name for number, name in enumerate(names)}
    code = template.replace(
        co_names=tuple([renamed.get(name, name) for name in template.co_names]),
        co_varnames=tuple([renamed.get(name, name) for name in template.co_varnames]),
        co_consts=tuple([renamed.get(value, value) for value in template.co_consts]),
        co_qualname=f"{qualname}.{method}",
    )
    return FunctionType(code, _GLOBALS, method)


def _template(method: str, count: int, assignment: str, has_post_init: bool) -> CodeType:
    key = method, count, assignment, has_post_init
    template = _templates.get(key)
    if template is None:
        numbers = range(count)
        body = [assignment.format(number) for number in numbers]
        if has_post_init:
            body.append("self.__post_init__()")
        source = _SOURCES[method].format(
            parameters=", ".join(["self", *(f"f{number}" for number in numbers)]),
            body="\n    ".join(body) or "pass",
            own="".join(f"self.f{number}, " for number in numbers),
            others="".join(f"other.f{number}, " for number in numbers),
        )
        found: dict[str, FunctionType] = {}
        exec(source, _GLOBALS, found)
        template = _templates[key] = found[method].__code__
    return template


def _defaults(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults of a base class's fields, from its constructor."""
    names = namespace.get("__match_args__", ())
    values = getattr(namespace.get("__init__"), "__defaults__", None) or ()
    return dict(zip(names[len(names) - len(values) :], values, strict=True))


def _like_class(like: type[Any], namespace: Mapping[str, Any], bases: Any = None) -> Any:
    """Return a class with the name, the metaclass and, by default, the bases of ``like``."""
    kind: Any = type(like)
    return kind(like.__name__, like.__bases__ if bases is None else bases, dict(namespace))


def _repr(self: Any) -> str:
    fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
    return f"{type(self).__qualname__}({fields})"


def _reduce(self: Any) -> tuple[Any, ...]:
    """Return the class and the field values, from which pickle and copy create an instance."""
    return type(self), tuple([getattr(self, name) for name in self.__match_args__])


def _raise_frozen(self: object, name: str, _value: object = None) -> None:
    raise FrozenInstanceError(f"cannot change field {name!r} of {type(self).__name__}")


def _set_state(self: object, state: Any) -> None:
    for name, value in state[1].items():
        object.__setattr__(self, name, value)
