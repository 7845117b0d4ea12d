"""What MkDocs calls while it builds the site, named in mkdocs.yml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fakekafka.docs.trace_gallery import site_files
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTED = ("actors", "protocol", "testing")
"""Folders with a class that docs/reference/python.md shows."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the gallery: its traces are recorded while the site is built."""
    for path, content in site_files().items():
        files.append(File.generated(config, path, content=content))
    return files


def on_startup(**_: Any) -> None:
    """Lay out/api/fakekafka: the package without tests, documents and environments.

    The root of the repository is the package, and the reader of docstrings would read all of it.
    """
    package = ROOT / "out" / "api" / "fakekafka"
    package.mkdir(parents=True, exist_ok=True)
    for name in ("__init__.py", *DOCUMENTED):
        link = package / name
        if not link.is_symlink():
            link.symlink_to(ROOT / name, target_is_directory=name != "__init__.py")
