"""The work of Spark's Python workers, and the way of this package to them."""

from __future__ import annotations

import gc
import io
import os
import pickle
import socket
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCHEMA = "place long, result binary"
_PACKAGE = Path(__file__).parents[2]
_LEFT_OUT = ("tests", "docs", "benchmarks", "examples", "out", "build", "dist")
_SUFFIXES = (".py", ".tsv", ".toml", ".properties")
_MANY_OBJECTS = 5000
"""To walk through these takes about 2 ms."""


def run_places(batches: Iterator[Any], shipped: Any, places: list[int]) -> Iterator[Any]:
    """Carry out the runs whose numbers arrive; results travel pickled, one row a run.

    A pickled column keeps the types of a row exactly as the other engines give them.
    """
    import pyarrow

    work = shipped.value
    assert work is not None  # it is loaded here, before it is frozen
    freeze_modules()
    schema = pyarrow.schema([("place", pyarrow.int64()), ("result", pyarrow.binary())])
    worker = f"{socket.gethostname()}, process {os.getpid()}"
    for batch in batches:
        for number in batch.column(0).to_pylist():
            place = places[number]
            outcome = work.carry_out(work.specs[place], worker)
            yield pyarrow.RecordBatch.from_pydict(
                {"place": [place], "result": [pickle.dumps(outcome)]}, schema=schema
            )


def freeze_modules() -> None:
    """Freeze what is there when a task begins: modules, which stay, and the plan.

    Spark's worker collects garbage after every task, and walks through all that is not frozen.
    Some modules are imported after the first task has begun, so a later one freezes them, too.
    """
    if len(gc.get_objects()) > _MANY_OBJECTS:
        gc.collect()
        gc.freeze()


def import_all(batches: Iterator[Any]) -> Iterator[Any]:
    """Have a worker import what runs need."""
    from ...testing import simulation  # noqa: F401

    freeze_modules()
    yield from batches


def ship_package(context: Any) -> None:
    """Send this package to the workers of a Spark context, unless they are of this machine."""
    if str(context.master).startswith("local"):
        return
    path = Path(tempfile.mkdtemp(prefix="fakekafka-package-"), "fakekafka.zip")
    path.write_bytes(package_zip())
    context.addPyFile(str(path))


def package_zip(package: Path = _PACKAGE) -> bytes:
    """This package as a zip that Python imports from.

    Only what can be in it is walked through: beside the package there may be environments and
    repositories of many thousand files.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(_shipped(package)):
            archive.write(path, Path("fakekafka", path.relative_to(package)))
    return content.getvalue()


def _shipped(package: Path) -> Iterator[Path]:
    """The files of the package that its runs need."""
    for folder, folders, names in os.walk(package):
        here = Path(folder)
        folders[:] = [name for name in folders if _is_shipped(here, name, here == package)]
        for name in names:
            is_hidden = name.startswith(".")
            if not is_hidden and (name.endswith(_SUFFIXES) or name == "py.typed"):
                yield here / name


def _is_shipped(parent: Path, name: str, is_at_the_top: bool) -> bool:
    """Return whether a folder belongs to the package: at the top only those that Python imports
    do."""
    if name.startswith((".", "__pycache__")):
        return False
    return not is_at_the_top or (name not in _LEFT_OUT and (parent / name / "__init__.py").exists())
