"""The output and input that the explorations of clusters and of tests share."""

from __future__ import annotations

import re

from rich.console import Console

from ...protocol.errors import UsageError

console: Console = Console(highlight=False)


def print_line(line: str) -> None:
    """Print a line as it is, however long."""
    console.print(line, markup=False, soft_wrap=True)


def seconds(text: str) -> float:
    """The seconds of a budget such as 90s; ``UsageError`` if it is none."""
    matched = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|h)", text)
    if matched is None:
        raise UsageError(f"--budget takes 90s, 10m or 2h, not {text!r}")
    return float(matched[1]) * {"s": 1, "m": 60, "h": 3600}[matched[2]]
