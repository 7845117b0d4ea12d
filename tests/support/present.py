"""Access to optional values that a test knows to be present."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def present(value: T | None) -> T:
    """Return the value; fail the test if it is None."""
    assert value is not None
    return value
