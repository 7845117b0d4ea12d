"""Which build of the package runs: its source, or the modules that ``make compiled`` made of it.

The compiled modules lie in the folder ``compiled`` beside this file, with a manifest of the source
that they were made from. They are used all together or not at all, as they rely on each other's
memory layout; and never when the source is another by now.
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
"""The library that holds the code of all compiled modules; each of them is only a door to it."""
SUFFIX = EXTENSION_SUFFIXES[0]
SEEN = "seen"
"""Sizes and times of the source when it was last found to be that of the build: to compute the
digests of all of it takes longer."""
ROOT = Path(__file__).parent
VARIABLE = "FAKEKAFKA_BUILD"


class CompiledModules:
    """Finds the modules of a compiled build before anything else looks for their source."""

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
    """Return what a source file is known by; of a file that is not there the empty text."""
    import hashlib  # not needed where there is no compiled build

    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return ""


def stamp(path: str) -> str:
    """Return size and time of a file, which tell whether it was looked at before.

    Each start asks for hundreds, so the path is no ``Path``.
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return ""
    return f"{found.st_size} {found.st_mtime_ns}"


def choose(root: Path, wanted: str) -> tuple[str, list[str]]:
    """Return a description of the build that is to run, and the names of its compiled modules.

    ``wanted`` is ``pure``, ``compiled`` (where that cannot be had, an ``ImportError`` says why) or
    empty: then it is the compiled one if it is there and its source is as it was. In an archive,
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
    """Return what the compiled build of a folder was made of; None if there is no such build."""
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
        with suppress(OSError):  # it may be another user's
            seen.write_text(stamps, encoding="utf-8")
        return ""
    others = f" and {len(changed) - 1} more files" if len(changed) > 1 else ""
    return f"the compiled build is stale, as {changed[0]}{others} changed"


running: str
running, _names = choose(ROOT, os.environ.get(VARIABLE, ""))
"""The build that runs, in words."""
is_compiled: bool = bool(_names)
if is_compiled:
    sys.meta_path.insert(0, CompiledModules(ROOT / "compiled", _names))


def told_version() -> str:
    """Return what ``fakekafka --version`` says."""
    from .version import __version__

    return f"fakekafka {__version__} ({running})"
