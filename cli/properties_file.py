"""A broker's configuration file, such as Kafka's own ``config/server.properties``.

The format is that of Java's ``Properties``. Names that are options here (ids, addresses,
directories) and names without effect here are left out, with a remark about each.
"""

from __future__ import annotations

import re
from pathlib import Path

from ..protocol.config import definitions
from ..protocol.errors import UsageError, did_you_mean
from ..protocol.release_configs import release_configs

_OPTIONS = {
    "broker.id": "--first-broker-id",
    "broker.rack": "--racks",
    "listeners": "--listener",
    "advertised.listeners": "--advertised-host",
    "host.name": "--host",
    "port": "--port",
    "advertised.host.name": "--advertised-host",
    "advertised.port": "--port",
    "listener.security.protocol.map": "--listener",
    "log.dir": "--data-dir",
    "log.dirs": "--data-dir",
    "zookeeper.connect": "--zookeeper-port",
}
"""Configurations that are set by an option of the command line, with that option."""
_IN_OTHER_UNITS = {
    "log.retention.minutes": ("log.retention.ms", 60_000),
    "log.retention.hours": ("log.retention.ms", 3_600_000),
    "log.roll.hours": ("log.roll.ms", 3_600_000),
    "log.roll.jitter.hours": ("log.roll.jitter.ms", 3_600_000),
}
"""Names that count only if the name in milliseconds is not given; finer units come first."""
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ENTRY = re.compile(r"((?:\\.|[^\s=:\\])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)


def parse_properties_file(text: str) -> dict[str, str]:
    """Parse a file into names and values; of a repeated name the last value counts, as in Java."""
    values: dict[str, str] = {}
    lines = iter(text.splitlines())
    for line in lines:
        logical = line.lstrip(" \t\f")
        if not logical or logical[0] in "#!":
            continue
        while _continues(logical):
            logical = logical[:-1] + next(lines, "").lstrip(" \t\f")
        match = _ENTRY.match(logical)
        assert match is not None
        values[_unescaped(match[1])] = _unescaped(match[2]).rstrip()
    return values


def _continues(line: str) -> bool:
    """Return whether a line ends with an unescaped backslash."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescaped(text: str) -> str:
    def replaced(match: re.Match[str]) -> str:
        escape = match[1]
        if len(escape) > 1:
            return chr(int(escape[1:], 16))
        return _ESCAPES.get(escape, escape)

    return _ESCAPE.sub(replaced, text)


def read_config_file(path: Path, kafka_version: str) -> tuple[dict[str, str], list[str]]:
    """Return the configurations that have an effect here, and a line about each of the others.

    Raises ``UsageError`` for a file that cannot be read, and for a name that Kafka does not have.
    """
    try:
        values = parse_properties_file(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--config-file {path} cannot be read: {error}") from None
    known = release_configs(kafka_version).broker
    heedable = definitions(kafka_version)
    heeded: dict[str, str] = {}
    remarks: list[str] = []
    for name, value in values.items():
        if name in _OPTIONS:
            remarks.append(f"{path}: {name} is left out; {_use(_OPTIONS[name])}")
        elif name in heedable and heedable[name].broker:
            heeded[name] = value
        elif name in _IN_OTHER_UNITS:
            continue
        elif name in known:
            remarks.append(f"{path}: {name} has no effect here")
        else:
            hint = did_you_mean(name, (*known, *heedable))
            raise UsageError(f"{path}: Kafka has no configuration {name!r}{hint}")
    for name, (finer, milliseconds) in _IN_OTHER_UNITS.items():
        if name in values and finer not in heeded:
            heeded[finer] = _in_ms(path, name, values[name], milliseconds)
    return heeded, remarks


def _in_ms(path: Path, name: str, value: str, milliseconds: int) -> str:
    try:
        amount = int(value)
    except ValueError:
        raise UsageError(f"{path}: {name} must be a whole number, not {value!r}") from None
    return str(amount if amount < 0 else amount * milliseconds)


def _use(option: str) -> str:
    return f"use {option}" if option.startswith("--") else option
