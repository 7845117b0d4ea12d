"""The work of Spark's Python workers, and the shipping of this package to them."""

from __future__ import annotations

import gc
import importlib.util
import io
import marshal
import os
import pickle
import socket
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

SCHEMA = "index long, result binary"
_PACKAGE = Path(__file__).parents[2]
_EXCLUDED_FOLDERS = ("tests", "docs", "benchmarks", "examples", "out", "build", "dist")
_SUFFIXES = (".py", ".tsv", ".toml", ".properties")
_MANY_OBJECTS = 5000
"""Number of unfrozen objects beyond which to freeze; the collector traverses these in about 2 ms.
"""
_UNCHECKED_HASH = 1
"""Flag of bytecode that is valid whatever its source is (PEP 552)."""


def run_indices(batches: Iterator[Any], shipped: Any, indices: list[int]) -> Iterator[Any]:
    """Carry out the runs whose numbers arrive; return pickled results, one row per run.

    A pickled column keeps the types of a row exactly as the other engines return them.
    """
    import pyarrow

    work = shipped.value
    assert work is not None  # accessing the value loads it, before it is frozen
    freeze_modules()
    schema = pyarrow.schema([("index", pyarrow.int64()), ("result", pyarrow.binary())])
    worker = f"{socket.gethostname()}, process {os.getpid()}"
    for batch in batches:
        for number in batch.column(0).to_pylist():
            index = indices[number]
            outcome = work.carry_out(work.specs[index], worker)
            yield pyarrow.RecordBatch.from_pydict(
                {"index": [index], "result": [pickle.dumps(outcome)]}, schema=schema
            )


def freeze_modules() -> None:
    """Freeze the objects that exist when a task begins: modules, which stay, and the plan.

    Spark's worker collects garbage after every task, and traverses all objects that are not frozen.
    Some modules are imported after the first task has begun, so later tasks freeze again.
    """
    if len(gc.get_objects()) > _MANY_OBJECTS:
        gc.collect()
        gc.freeze()


def import_all(batches: Iterator[Any]) -> Iterator[Any]:
    """Let a worker import the modules that runs need."""
    from ...testing import simulation  # noqa: F401

    freeze_modules()
    yield from batches


def ship_package(context: Any) -> None:
    """Send this package to the workers of a Spark context, unless they are on this machine."""
    if str(context.master).startswith("local"):
        return
    path = Path(tempfile.mkdtemp(prefix="fakekafka-package-"), "fakekafka.zip")
    path.write_bytes(package_zip())
    context.addPyFile(str(path))


def package_zip(package: Path = _PACKAGE) -> bytes:
    """Return this package as a zip from which Python can import it, with its bytecode.

    Without the bytecode each worker would compile the source anew, as Python keeps none for modules
    in a zip. A worker with another version of Python ignores it and compiles the source.

    Only folders of the package are searched: beside them there may be environments and repositories
    with many thousands of files.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(_shipped(package)):
            name = Path("fakekafka", path.relative_to(package))
            archive.write(path, name)
            if path.suffix == ".py":
                archive.writestr(f"{name.as_posix()}c", _bytecode(path))
    return content.getvalue()


def _bytecode(path: Path) -> bytes:
    """Return the content of a module's ``.pyc`` file for this version of Python."""
    code = SourceFileLoader(path.stem, str(path)).get_code(path.stem)  # from __pycache__ if there
    flags = _UNCHECKED_HASH.to_bytes(4, "little")
    source_hash = importlib.util.source_hash(path.read_bytes())
    return importlib.util.MAGIC_NUMBER + flags + source_hash + marshal.dumps(code)


def _shipped(package: Path) -> Iterator[Path]:
    """Yield the files of the package that runs need."""
    for folder, folders, names in os.walk(package):
        path = Path(folder)
        folders[:] = [name for name in folders if _is_shipped(path, name, path == package)]
        for name in names:
            is_hidden = name.startswith(".")
            if not is_hidden and (name.endswith(_SUFFIXES) or name == "py.typed"):
                yield path / name


def _is_shipped(parent: Path, name: str, is_at_the_top: bool) -> bool:
    """Return whether a folder belongs to the package; at the top level it must be importable."""
    if name.startswith((".", "__pycache__")):
        return False
    return not is_at_the_top or (
        name not in _EXCLUDED_FOLDERS and (parent / name / "__init__.py").exists()
    )
