"""Hooks that MkDocs calls while it builds the site, as configured in mkdocs.yml."""

from __future__ import annotations

from fakekafka.docs.trace_gallery import site_files
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the gallery, whose traces are recorded while the site is built."""
    for path, content in site_files().items():
        files.append(File.generated(config, path, content=content))
    return files
