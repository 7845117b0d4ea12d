"""Parses values of a suite's parameters, from the command line or from options of Spark."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from ...protocol.errors import UsageError
from .suite import Suite

_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


def read_value(suite: Suite, name: str, text: str) -> Any:
    """Convert a text to the parameter's type; for a scenario file it is TOML, or else plain text.

    A text that cannot be converted stays as it is; the suite then refuses it with an error that
    names the parameter.
    """
    parameter = suite.parameters.get(name)
    if parameter is None:
        # A version is text even if it looks like a number: 0.10 is not 0.1.
        if suite.spec is None or name.endswith("kafka_version"):
            return text
        try:
            return tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            return text
    if parameter.kind is bool:
        return _BOOLEANS.get(text.lower(), text)
    for kind in (int, float) if parameter.kind is float else (parameter.kind,):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def read_settings(suite: Suite, settings: Sequence[str], option: str = "--set") -> dict[str, Any]:
    """Parse ``name=value`` of an option."""
    values = {}
    for setting in settings:
        name, separator, text = setting.partition("=")
        if not separator:
            raise UsageError(f"{option} takes name=value, not {setting!r}")
        values[name] = read_value(suite, name, text)
    return values


def read_matrix(
    suite: Suite, tables: Sequence[str], is_disabled: bool, option: str = "--matrix"
) -> dict[str, Any] | None:
    """Parse ``name=value,value`` of an option; None stands for the suite's own matrix."""
    if is_disabled:
        if tables:
            raise UsageError("--matrix and --no-matrix cannot be combined")
        return {}
    values: dict[str, Any] = {}
    for table in tables:
        name, separator, text = table.partition("=")
        if not separator or not text:
            raise UsageError(f"{option} takes name=value,value, not {table!r}")
        values[name] = [read_value(suite, name, value) for value in text.split(",")]
    return values or None


def read_numbers(option: str, settings: Sequence[str]) -> dict[str, Any]:
    """Parse ``kind=number`` of ``--budget``; ``none`` lifts a limit."""
    values: dict[str, Any] = {}
    for setting in settings:
        name, separator, text = setting.partition("=")
        try:
            value = float(text) if text != "none" else None
        except ValueError:
            separator = ""
        if not separator:
            raise UsageError(f"{option} takes kind=number, not {setting!r}")
        values[name] = int(value) if name == "events" and value is not None else value
    return values


def read_conf(settings: Sequence[str]) -> Mapping[str, str]:
    """Parse ``name=value`` of ``--conf``."""
    for setting in settings:
        if "=" not in setting:
            raise UsageError(f"--conf takes name=value, not {setting!r}")
    return dict(setting.split("=", 1) for setting in settings)
