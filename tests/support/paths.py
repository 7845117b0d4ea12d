"""Where the project's files are."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUPPORT = Path(__file__).resolve().parent


def own_programs() -> dict[str, str]:
    """The environment in which programs find this installation's commands, ``fakekafka`` first."""
    return {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
