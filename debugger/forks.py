"""A run that is changed at an event: its scenario with one more fault, at that moment."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from ..protocol.errors import UsageError
from ..scenarios.actions import ACTIONS
from ..scenarios.file import parse_scenario, scenario_values
from ..scenarios.replay import Replay
from ..testing.parameters.parameter import nearest
from ..testing.parameters.toml_values import value_of_text
from .writing import scenario_text


def check_action(name: str) -> None:
    """Raise ``UsageError`` with the nearest name for an unknown action."""
    if name not in ACTIONS:
        raise UsageError(f"there is no action {name!r}{nearest(name, ACTIONS)}")


def with_fault(
    live: Replay, time_us: int, action: str, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the header of a run with one more fault, at a time."""
    if live.begun_us is None or time_us < live.begun_us:
        raise UsageError("the cluster is still starting; go on until the scenario has begun")
    header = live.header
    values = scenario_values(header["scenario"], "<scenario>", header.get("parameters"))
    faults = values.get("faults", [])
    # One microsecond later, so that the fault follows all events of the same time.
    at_ms = (time_us + 1 - live.begun_us) / 1000
    added = {"at_ms": at_ms, "action": action, **arguments}
    values["faults"] = [*(faults if isinstance(faults, list) else [faults]), added]
    text = scenario_text(values)
    name = header.get("scenario_name") or "scenario"
    parse_scenario(text, name)  # raises for an invalid fault
    return {**header, "scenario": text, "parameters": {}, "reproduce": ""}


def standalone_text(header: Mapping[str, Any]) -> str:
    """Return the scenario of a header, with its seed, as one file that reproduces the run."""
    text = header.get("scenario")
    if not text:
        raise UsageError("this trace has no scenario to save")
    values = scenario_values(text, "<scenario>", header.get("parameters"))
    return scenario_text({**values, "seed": header["seed"]})


def parse_action(line: str) -> tuple[str, dict[str, Any]]:
    """Parse an action such as ``kill broker=1``; return its name and its arguments.

    Values are TOML, or plain words.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"{line!r}: {error}") from None
    if not words:
        raise UsageError(f"write an action, such as kill broker=1; there are {', '.join(ACTIONS)}")
    arguments: dict[str, Any] = {}
    for word in words[1:]:
        name, sign, value = word.partition("=")
        if not sign:
            raise UsageError(f"{word!r}: write arguments as name=value, such as broker=1")
        arguments[name] = value_of_text(value)
    return words[0], arguments
