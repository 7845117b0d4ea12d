"""Messages behave like dataclasses with slots, and are cheap to declare."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from typing import Any, ClassVar

import pytest
from fakekafka.protocol.declaring import methods
from fakekafka.protocol.errors import UsageError
from fakekafka.protocol.values import LeaderAndIsr, assembled, frozen, message


def declare(decorator: Any) -> tuple[Any, Any, Any]:
    """Return a class without fields, one with fields, and one that adds a field to the second."""

    @decorator
    class Event:
        kind: ClassVar[str] = "event"

    @decorator
    class Point(Event):
        kind: ClassVar[str] = "point"
        x: int
        y: int = 2

        def doubled(self) -> int:
            return self.x * 2

    @decorator
    class Space(Point):
        z: tuple[int, ...] = ()

    return Event, Point, Space


def standard(cls: Any) -> Any:
    """Make a class a dataclass of the standard library."""
    return dataclasses.dataclass(slots=True, unsafe_hash=True)(cls)


@pytest.mark.parametrize("decorator", [message, standard])
def test_messages_are_created_compared_and_printed_like_dataclasses(decorator: Any) -> None:
    event, point, space = declare(decorator)
    assert (point(1), point(1, y=3).y, point(1).doubled()) == (point(1, 2), 3, 2)
    assert event() == event()
    assert (point(1) == space(1), point(1) != point(2), point(1) == 1) == (False, True, False)
    assert len({point(1), point(1, 2), space(1), event(), event()}) == 3
    assert repr(space(1)) == f"{space.__qualname__}(x=1, y=2, z=())"
    assert (event.kind, point.kind, space(1).kind) == ("event", "point", "point")
    assert not hasattr(space(1), "__dict__")
    match space(4):
        case space(x, y, z):
            assert (x, y, z) == (4, 2, ())
        case _:
            pytest.fail("the fields of a pattern are found by position")


@pytest.mark.parametrize("decorator", [message, standard])
def test_fields_are_known_before_the_first_instance(decorator: Any) -> None:
    _, _, space = declare(decorator)
    assert [field.name for field in dataclasses.fields(space)] == ["x", "y", "z"]
    _, _, space = declare(decorator)
    assert list(inspect.signature(space).parameters) == ["x", "y", "z"]
    _, _, space = declare(decorator)
    assert dataclasses.replace(space(1), z=(1,)) == space(1, 2, (1,))
    assert copy.copy(space(1)) == space(1)


def test_a_wrong_argument_of_the_first_instance_is_refused() -> None:
    _, point, _ = declare(message)
    with pytest.raises(TypeError, match=r"__init__\(\) got an unexpected keyword argument 'w'"):
        point(1, w=2)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        point()


def test_source_is_compiled_once_for_each_number_of_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package has hundreds of messages, and compiling each would slow down its start."""
    compiled: list[str] = []
    monkeypatch.setattr(methods, "exec", lambda source, *_: compiled.append(source), raising=False)
    declare(message)
    declare(frozen)
    assert len(compiled) <= 3  # sources only of ``frozen``, unless compiled before


def test_each_class_has_methods_that_name_it_and_its_fields() -> None:
    _, point, space = declare(message)
    assert vars(point)["__init__"].__qualname__ == f"{point.__qualname__}.__init__"
    assert space.__match_args__ == ("x", "y", "z")
    assert inspect.signature(space).parameters["z"].default == ()


def test_a_field_without_default_comes_first() -> None:
    with pytest.raises(TypeError, match=r"without default follows one with a default in .*Wrong"):

        @message
        class Wrong:
            x: int = 1
            y: int  # type: ignore[misc]


@frozen
class _Limits:
    """Settings of the kind that users create."""

    low: int
    high: int = 9

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise UsageError(f"low must be at most {self.high}, not {self.low}")


def test_a_frozen_value_is_checked_and_cannot_be_changed() -> None:
    """A frozen value is protected in every program, not only under the conftest of these tests."""
    limits = _Limits(1, high=3)
    with pytest.raises(UsageError, match="low must be at most 3, not 4"):
        _Limits(4, 3)
    with pytest.raises(dataclasses.FrozenInstanceError, match="'low' of _Limits"):
        limits.low = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="'low' of _Limits"):
        del limits.low
    assert (limits.low, limits.high, str(limits)) == (1, 3, "_Limits(low=1, high=3)")


def test_a_frozen_value_is_copied_and_pickled() -> None:
    limits = _Limits(1, 3)
    assert copy.copy(limits) == pickle.loads(pickle.dumps(limits)) == copy.deepcopy(limits)
    assert dataclasses.replace(limits, high=5) == _Limits(1, 5)
    assert {limits: 1}[_Limits(1, 3)] == 1


@pytest.mark.parametrize("is_recovering", [False, True])
def test_a_leadership_under_another_version_is_the_same_otherwise(is_recovering: bool) -> None:
    """The mark of a leader elected from outside the ISR is kept (KIP-704)."""
    stored = LeaderAndIsr(1, 4, (1, 2), 7, is_recovering)
    assert stored.with_zk_version(8) == LeaderAndIsr(1, 4, (1, 2), 8, is_recovering)


def test_a_message_can_be_unpickled_in_a_process_without_instances() -> None:
    """A process of a batch can unpickle a message of a class before it has created one itself."""
    begin = "import pickle, sys\nfrom fakekafka.protocol.values import LeaderAndIsr\n"
    made = "LeaderAndIsr(1, 0, (1, 2), 7)"
    sent = _printed(f"{begin}print(pickle.dumps({made}).hex())")
    read = "value = pickle.loads(bytes.fromhex(sys.argv[1]))"
    shown = _printed(f"{begin}{read}\nprint(value, value == {made})", sent)
    fields = "leader=1, leader_epoch=0, isr=(1, 2), zk_version=7, is_recovering=False"
    assert shown == f"LeaderAndIsr({fields}) True"


def _printed(*arguments: str) -> str:
    command = [sys.executable, "-c", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)
    return done.stdout.strip()


def test_an_object_put_together_from_its_fields_may_change_and_equals_itself_alone() -> None:
    """An assembled object is mutable and is compared by identity, unlike a message."""

    @assembled
    class Pair:
        one: int
        other: int = 2

    pair = Pair(1)
    pair.one = 3
    assert repr(pair).endswith("Pair(one=3, other=2)")
    assert pair != Pair(3)
    assert len({pair, Pair(3)}) == 2
