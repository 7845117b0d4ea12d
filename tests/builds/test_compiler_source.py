"""The source given to the compiler is equivalent to the written source."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import sys
from types import ModuleType
from typing import Any

import pytest
from fakekafka.building.compiler_source import (
    with_awaits_after_errors,
    with_final_constants,
    with_native_messages,
    with_unchecked_arguments,
    with_whole_numbers,
)
from fakekafka.protocol.declaring.methods import reader_of_fields

MESSAGES = '''
from __future__ import annotations

from typing import ClassVar

from fakekafka.protocol.values import frozen, message


class Event:
    kind: ClassVar[str] = "event"


@message
class Point(Event):
    """Where it is."""

    kind = "point"
    x: int
    y: int = (
        2
    )
    """Downwards."""

    def doubled(self) -> int:
        return self.x * 2


@frozen
class Limits:
    low: int
    high: int = 9


LAST_LINE = "is where it was"
'''


@pytest.fixture(params=["as written", "for the compiler"])
def made(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module with messages, as written or as given to the compiler."""
    module = ModuleType("made")
    monkeypatch.setitem(sys.modules, "made", module)  # where the standard library looks
    exec(
        MESSAGES if request.param == "as written" else with_native_messages(MESSAGES), vars(module)
    )
    return module


def test_a_message_is_made_compared_and_shown_as_before(made: Any) -> None:
    """Its own methods, inherited ones and functions of the standard library work."""
    point = made.Point
    assert (point(1).y, point(1, y=3).y, point(1).doubled(), point.kind) == (2, 3, 2, "point")
    assert (point(1) == point(1, 2), point(1) == point(2), point(1) == 1) == (True, False, False)
    assert len({point(1), point(1, 2), point(3)}) == 2
    assert repr(point(1)) == "Point(x=1, y=2)"
    assert reader_of_fields(point, ["x", "y"])(point(1)) == (1, 2)
    assert [(field.name, field.type) for field in dataclasses.fields(point)] == [
        ("x", "int"),
        ("y", "int"),
    ]
    assert (
        dataclasses.replace(point(1), y=5) == copy.copy(point(1, 5)) == copy.deepcopy(point(1, 5))
    )
    assert list(inspect.signature(point).parameters) == ["x", "y"]
    match point(4):
        case point(x, y):
            assert (x, y) == (4, 2)
        case _:
            pytest.fail("the fields of a pattern are found by position")
    with pytest.raises(TypeError):
        point()


def test_a_frozen_value_cannot_be_changed(made: Any) -> None:
    limits = made.Limits(1)
    assert repr(limits) == "Limits(low=1, high=9)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        limits.low = 2


def test_a_message_is_a_plain_class_without_defaults() -> None:
    """The compiler would set defaults before the constructor runs, and makes no native class of a
    decorated one.
    """
    text = with_native_messages(MESSAGES)
    assert "@message" not in text
    assert "y: int = (" not in text.partition("def __init__")[0]
    assert text.splitlines().index("class Point(Event):") == MESSAGES.splitlines().index(
        "class Point(Event):"
    )


def test_a_message_with_inherited_fields_is_refused() -> None:
    """The constructor would lack the inherited fields."""
    with pytest.raises(ValueError, match="Space may have fields of Point: inherit none"):
        with_native_messages(MESSAGES + "@message\nclass Space(Point):\n    z: int\n")


def test_a_request_keeps_the_base_that_names_its_response() -> None:
    """The base has no fields."""
    asked = '@message\nclass Ask(Request["Answer"]):\n    z: int\n'
    text = with_native_messages(MESSAGES + asked)
    assert 'class Ask(Request["Answer"]):' in text
    assert "def __init__(self, z: int)" in text


def test_a_module_without_messages_is_unchanged() -> None:
    text = "class Plain:\n    x: int = 1\n"
    assert with_native_messages(text) == text


@pytest.mark.parametrize(
    ("written", "given"),
    [
        ("x: float = 1", "x: int | float = 1"),
        ("def f(é: str, x: float | None) -> list[float]: ...",) * 2,
        ("x = float(1)",) * 2,
    ],
)
def test_a_float_may_be_a_whole_number(written: str, given: str) -> None:
    """The compiler would convert an integer to a float; only annotations are changed."""
    if written.startswith("def"):
        given = given.replace("float", "int | float")
    assert with_whole_numbers(written) == given


FUTURE = "from __future__ import annotations"


@pytest.mark.parametrize(
    ("written", "given"),
    [
        ("_NONE = ErrorCode.NONE", "_NONE: Final = ErrorCode.NONE"),
        ("NAMES: dict[str, int] = {", "NAMES: Final[dict[str, int]] = {"),
        ("T = TypeVar('T')",) * 2,
        ("once = 1",) * 2,
        ("TWICE = 1; TWICE = 2",) * 2,
        ("def f() -> None:\n    global LATER\n    LATER = 2\nLATER = 1",) * 2,
    ],
)
def test_constants_assigned_once_become_final(written: str, given: str) -> None:
    """The compiler would look up other names at each use, as they may change."""
    rest = "\n}" if written.endswith("{") else ""
    text = f"{FUTURE}\n{written}{rest}"
    assert with_final_constants(text).split("\n", 1)[1] == given + rest


def test_a_module_without_the_future_of_annotations_keeps_its_constants() -> None:
    """The import of ``Final`` is put on that line; modules without it declare no constants."""
    assert with_final_constants("LIMIT = 1") == "LIMIT = 1"


def test_a_function_that_checks_its_arguments_takes_anything() -> None:
    """The compiler checks the arguments of other functions."""
    text = (
        "@cache\n"
        "@checks_arguments\n"
        "def f(one: int, *, other: bytes | None = None) -> None: ...\n"
        "@cache\n"
        "def g(one: int) -> None: ..."
    )
    first, *rest = with_unchecked_arguments(f"{FUTURE}\n{text}").splitlines()
    assert first.endswith("import Any as _Anything")
    assert rest == [
        "@cache",
        "",
        "def f(one: _Anything, *, other: _Anything = None) -> None: ...",
        "@cache",
        "def g(one: int) -> None: ...",
    ]
    assert with_unchecked_arguments(text) == text


ENDING = """
async def end(work: Any, told: list[str]) -> None:
    try:
        await work()
        told.append("done")
    finally:
        # However it ended.
        if told:
            told.append("told")
        await nothing()
        told.append("ended")
    told.append("after")
"""


@pytest.mark.parametrize("is_given", [False, True])
def test_a_finally_that_awaits_is_rewritten(is_given: bool) -> None:
    """Compiled as written it would raise the first error again and again. Both forms behave
    equally.
    """
    text = with_awaits_after_errors(ENDING) if is_given else ENDING
    assert ("finally:" in text) is not is_given
    names: dict[str, Any] = {"Any": Any}
    exec(text, names)

    async def nothing() -> None:
        pass

    async def fail() -> None:
        raise LookupError("lost")

    names["nothing"] = nothing
    ways = []
    for work in (nothing, fail, nothing):
        told: list[str] = []
        try:
            names["end"](work, told).send(None)
        except (StopIteration, LookupError) as end:
            told.append(type(end).__name__)
        ways.append(told)
    well = ["done", "told", "ended", "after", "StopIteration"]
    assert ways == [well, ["ended", "LookupError"], well]


def test_a_finally_that_is_reached_by_return_is_refused() -> None:
    """It is refused only if it awaits."""
    left = "async def f():\n    try:\n        return 1\n    finally:\n        {}"
    with pytest.raises(ValueError, match="line 2: awaits in a finally"):
        with_awaits_after_errors(left.format("await g()"))
    assert with_awaits_after_errors(left.format("g()")) == left.format("g()")
