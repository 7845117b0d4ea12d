"""Sorted lists of names, and their differences, found without a look at every name."""

from __future__ import annotations

from fakekafka.statemachines.zookeeper.sorted_names import SortedNames, sorted_changes
from hypothesis import given
from hypothesis import strategies as st

NAMES = st.sets(st.text("abc", min_size=1, max_size=4), max_size=60).map(sorted)


class Counted(str):
    """A name that counts how often it is hashed or compared."""

    __slots__ = ()
    looks = 0

    def __hash__(self) -> int:
        Counted.looks += 1
        return str.__hash__(self)

    def __eq__(self, other: object) -> bool:
        Counted.looks += 1
        return str.__eq__(self, other)

    def __lt__(self, other: str) -> bool:
        Counted.looks += 1
        return str.__lt__(self, other)


@given(NAMES, NAMES)
def test_changes_are_the_differences_of_the_sets(old: list[str], new: list[str]) -> None:
    """For any lists, both results are sorted and complete."""
    added, removed = sorted_changes(old, new)
    assert added == sorted(set(new) - set(old))
    assert removed == sorted(set(old) - set(new))


def test_one_new_name_among_thousands_costs_a_few_looks() -> None:
    """Unchanged names are the same objects, so their texts are neither compared nor hashed."""
    names = [Counted(f"t{number:05d}") for number in range(20_000)]
    old = [*names[:7_000], *names[7_001:]]
    Counted.looks = 0
    assert sorted_changes(old, names) == (["t07000"], [])
    assert sorted_changes(names, old) == ([], ["t07000"])
    assert Counted.looks < 500


def test_sorted_names_are_a_set_in_order() -> None:
    """Adding and removing names does not change the list they were given as."""
    given_names = ("a", "c")
    names = SortedNames(given_names)
    number: object = 1
    names.add("b")
    names.add("b")
    names.discard("c")
    names.discard("nothing")
    assert (list(names), len(names), "b" in names, number in names) == (["a", "b"], 2, True, False)
    assert given_names == ("a", "c")
    assert names == SortedNames(["a", "b"])
    assert repr(names) == "SortedNames(['a', 'b'])"
