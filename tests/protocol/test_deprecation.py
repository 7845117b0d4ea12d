"""Deprecated names, each use of which is reported at the line of the caller."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from fakekafka.actors.clients.group_consumer import AssignmentChange
from fakekafka.protocol.declaring.deprecation import deprecated


def test_the_warning_names_the_line_of_the_caller() -> None:
    """The warning names the caller's line, and the old name still has the value of the new name."""
    change = AssignmentChange(7, "lost", 1, ())
    program = compile("\nfound = change.at_ms", "program.py", "exec")
    names: dict[str, Any] = {"change": change}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        exec(program, names)
    assert names["found"] == change.time_ms == 7
    (warning,) = told
    assert warning.category is DeprecationWarning
    assert (warning.filename, warning.lineno) == ("program.py", 2)
    assert "at_ms is called time_ms now" in str(warning.message)


def test_a_deprecated_function_keeps_its_signature_and_result() -> None:
    """A deprecated function keeps its name, its docstring, its parameters and its result."""

    @deprecated("old is called new now; the old name goes in fakekafka 99.0")
    def old(number: int, *, more: int = 0) -> int:
        """Add."""
        return number + more

    assert (old.__name__, old.__doc__) == ("old", "Add.")
    with pytest.warns(DeprecationWarning, match="old is called new now"):
        assert old(3, more=4) == 7
