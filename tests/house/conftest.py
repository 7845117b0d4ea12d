"""Fixtures of the house rules: the project's files, committed or not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from fakekafka.tests.support.paths import ROOT

SKIPPED_FOLDERS = {".git", ".venv", "build", "dist", "out", "node_modules", "__pycache__"}


def list_project_files(root: Path) -> list[Path]:
    """Return every file that git tracks or would track; without git, all files outside generated
    folders.
    """
    if (root / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split("\0")
        paths = [root / name for name in listed if name]
    else:
        paths = [
            path
            for path in root.rglob("*")
            if not SKIPPED_FOLDERS.intersection(path.relative_to(root).parts)
            and not any(part.endswith(".egg-info") for part in path.parts)
        ]
    return sorted(path for path in paths if path.is_file())


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def texts() -> dict[str, str]:
    """The content of every text file of the project, by its path relative to the root,
    with ``/``.
    """
    found: dict[str, str] = {}
    for path in list_project_files(ROOT):
        try:
            found[path.relative_to(ROOT).as_posix()] = path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # a binary file, or one removed since it was listed
    return found
