"""Chooses the build of the package that runs: its source, or the modules of ``make compiled``.

The compiled modules are in the folder ``compiled`` beside this file, with a manifest of the source
that they were compiled from. They are used all together or not at all, as they rely on each
other's memory layout, and only while the source is unchanged.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

SHARED = "fakekafka__mypyc"
"""The library with the code of all compiled modules; the file of a module only refers to it."""
SUFFIX = EXTENSION_SUFFIXES[0]
SEEN = "seen"
"""Name of the file with the sizes and times that the source files had when the build was last
found to be current. Comparing these is faster than computing all digests."""
ROOT = Path(__file__).parent
VARIABLE = "FAKEKAFKA_BUILD"


class CompiledModules:
    """Finds the modules of a compiled build before other finders find their source."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self._folder = folder
        self._names = frozenset((*names, SHARED))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._names:
            return None
        file = str(self._folder / (fullname + SUFFIX))
        spec = ModuleSpec(fullname, ExtensionFileLoader(fullname, file), origin=file)
        spec.has_location = True
        return spec


def digest(path: Path) -> str:
    """Return the digest that identifies a source file's content; empty if there is no file."""
    import hashlib  # not needed where there is no compiled build

    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return ""


def stamp(path: str) -> str:
    """Return a file's size and time of modification; empty if there is no file.

    Each start calls this for hundreds of files, so the path is a plain string for speed.
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return ""
    return f"{found.st_size} {found.st_mtime_ns}"


def choose(root: Path, wanted: str) -> tuple[str, list[str]]:
    """Return a description of the build that is to run, and the names of its compiled modules.

    ``wanted`` is ``pure``, ``compiled`` (``ImportError`` if there is no usable compiled build) or
    empty, which chooses the compiled build if it exists and its source is unchanged. In an archive,
    which is how Spark's workers get the package, the source runs and the description says why.
    """
    if wanted not in ("", "pure", "compiled"):
        raise ImportError(f"{VARIABLE} is {wanted!r}; it can be pure or compiled")
    if wanted == "pure":
        return "pure Python", []
    if wanted == "compiled" and not root.is_dir():
        return "pure Python; what is imported from an archive cannot be compiled modules", []
    problem = ""
    manifest = read_manifest(root / "compiled")
    if manifest is not None:
        problem = find_problem(root, manifest)
        if not problem:
            names = manifest["modules"]
            return f"compiled: {len(names)} modules", names
    if wanted == "compiled":
        raise ImportError(f"{VARIABLE} is compiled, but {problem or 'there is no compiled build'}")
    return f"pure Python; {problem}" if problem else "pure Python", []


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of the compiled build in a folder; None if there is no build."""
    file = folder / "manifest.json"
    if not file.exists():
        return None
    import json  # not needed where there is no compiled build

    manifest: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return manifest


def find_problem(root: Path, manifest: dict[str, Any]) -> str:
    """Return why the compiled build cannot run, in words; empty if it can."""
    if manifest["suffix"] != SUFFIX:
        return f"the compiled build is for {manifest['suffix']}"
    sources = manifest["sources"]
    seen = root / "compiled" / SEEN
    stamps = "\n".join([stamp(f"{root}/{path}") for path in sources])
    if seen.exists() and seen.read_text(encoding="utf-8") == stamps:
        return ""
    changed = [path for path, known in sources.items() if digest(root / path) != known]
    if not changed:
        with suppress(OSError):  # the folder may belong to another user
            seen.write_text(stamps, encoding="utf-8")
        return ""
    others = f" and {len(changed) - 1} more files" if len(changed) > 1 else ""
    return f"the compiled build is stale, as {changed[0]}{others} changed"


running: str
running, _names = choose(ROOT, os.environ.get(VARIABLE, ""))
"""Description of the build that runs."""
is_compiled: bool = bool(_names)
if is_compiled:
    sys.meta_path.insert(0, CompiledModules(ROOT / "compiled", _names))


CODE_ROOT: str = os.path.dirname(choose.__code__.co_filename)
"""Folder of the package according to the file names of its code. Bytecode in an archive names the
folder where it was compiled, but ``__file__`` names the archive."""


def told_version() -> str:
    """Return what ``fakekafka --version`` prints."""
    from .version import __version__

    return f"fakekafka {__version__} ({running})"
