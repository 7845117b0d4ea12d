"""The scenarios and stories that come with the package, by name."""

from __future__ import annotations

from pathlib import Path

from ..protocol.errors import UsageError
from ..testing.parameters.parameter import nearest

_FOLDER = Path(__file__).resolve().parents[1] / "examples" / "scenarios"


def scenario_names() -> list[str]:
    """Return the names of all scenarios that come with the package, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def scenario_file(scenario: str | Path) -> Path:
    """Return the file of a scenario, given by its path or its name.

    Raises ``UsageError`` for a plain word that is neither.
    """
    path = Path(scenario)
    text = str(scenario)
    if path.suffix or "/" in text or path.exists():
        return path
    shipped = _FOLDER / f"{text}.toml"
    if shipped.is_file():
        return shipped
    raise UsageError(
        f"there is no file {text!r}, and no scenario of that name{nearest(text, scenario_names())}"
    )
