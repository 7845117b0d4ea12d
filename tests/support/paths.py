"""The places of the project's files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUPPORT = Path(__file__).resolve().parent
NOT_SOURCE = (
    ".git", ".venv", "*_cache", ".hypothesis", "__pycache__", "*.egg-info", "out", "build", "dist",
)  # fmt: skip
"""What a copy of the tree to build from leaves out, as patterns."""


def own_programs() -> dict[str, str]:
    """The environment in which programs find this installation's commands, ``fakekafka`` first."""
    return {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
