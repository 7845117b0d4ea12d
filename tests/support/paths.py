"""Paths of the project's files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUPPORT = Path(__file__).resolve().parent
NOT_SOURCE = (
    ".git", ".venv", "*_cache", ".hypothesis", "__pycache__", "*.egg-info", "out", "build", "dist",
)  # fmt: skip
"""Patterns of files that are left out of a copy of the tree."""


def own_programs() -> dict[str, str]:
    """Return an environment whose path has this installation's commands first."""
    return {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
