"""The architecture as a test: which folder may import which, and what cores may not use."""

from __future__ import annotations

import ast

import pytest
from fakekafka.tests.support.imports import FLOORS, imported_modules

APART = {
    ("zkfake", "election"): "ZooKeeper knows nothing of Kafka",
    ("wire", "tracing"): "sockets are observed at the runtime's network, not by the listeners",
}
"""Pairs of folders that may not import each other although the order would allow it."""


CORES = ("election", "zkfake", "replication", "statemachines", "coordinators")

BANNED_IN_CORES = {
    "asyncio": "a core returns values; who drives it is the caller's business",
    "concurrent": "no threads in a core",
    "datetime": "time is handed in",
    "glob": "no file system in a core",
    "io": "no file system in a core",
    "multiprocessing": "no processes in a core",
    "os": "no file system in a core",
    "pathlib": "no file system in a core",
    "random": "randomness is handed in (the name may be imported for annotations)",
    "secrets": "randomness is handed in",
    "select": "transport is handed in",
    "selectors": "transport is handed in",
    "shutil": "no file system in a core",
    "socket": "transport is handed in",
    "ssl": "transport is handed in",
    "subprocess": "no processes in a core",
    "tempfile": "no file system in a core",
    "threading": "no threads in a core",
    "time": "time is handed in",
    "uuid": "randomness is handed in",
}
ALLOWED_FOR_ANNOTATIONS = ("random",)

DISK_FILE_PREFIX = "replication/disk/file_"
"""The backend of a broker's disk on real files: the only files of a core with I/O."""
DISK_FILE_MAY_IMPORT = ("io", "os", "pathlib", "shutil", "tempfile")

EXCEPTIONS: dict[str, str] = {}
"""Files whose imports are not checked, with the reason."""


def floor_violations(path: str, text: str) -> list[str]:
    """Return imports of higher folders, or across a pair that is kept apart."""
    folder = path.split("/")[0] if "/" in path else ""
    if folder not in FLOORS:
        return []
    found = []
    for line, module, name in imported_modules(path, ast.parse(text)):
        target = (module or name).split(".")[0]
        if target == folder:
            continue
        if target in FLOORS and FLOORS.index(target) > FLOORS.index(folder):
            found.append(f"{path}:{line}: {folder} imports {target}, which stands above it")
        elif (folder, target) in APART:
            found.append(f"{path}:{line}: {folder} imports {target}: {APART[folder, target]}")
    return found


def _annotation_only_lines(tree: ast.Module) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for statement in node.body:
                lines.update(range(statement.lineno, (statement.end_lineno or 0) + 1))
    return lines


def core_violations(path: str, text: str) -> list[str]:
    """Return imports and calls by which a core would use a clock, a thread, a socket or a file."""
    if path.split("/")[0] not in CORES or not path.endswith(".py"):
        return []
    tree = ast.parse(text)
    on_disk = path.startswith(DISK_FILE_PREFIX)
    for_annotations = _annotation_only_lines(tree)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "open" and not on_disk:
                found.append(f"{path}:{node.lineno}: open(): no file system in a core")
            continue
        if isinstance(node, ast.Import):
            modules = [alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            modules = [(node.module or "").split(".")[0]]
        else:
            continue
        for module in modules:
            if module not in BANNED_IN_CORES or (on_disk and module in DISK_FILE_MAY_IMPORT):
                continue
            if module in ALLOWED_FOR_ANNOTATIONS and node.lineno in for_annotations:
                continue
            found.append(f"{path}:{node.lineno}: import {module}: {BANNED_IN_CORES[module]}")
    return found


def _check(texts: dict[str, str], rule: object) -> list[str]:
    assert callable(rule)
    return [
        finding
        for path, text in texts.items()
        if path.endswith(".py") and path not in EXCEPTIONS
        for finding in rule(path, text)
    ]


def test_folders_import_only_what_stands_below_them(texts: dict[str, str]) -> None:
    """Every import, also for annotations, follows the table in docs/ARCHITECTURE.md."""
    found = _check(texts, floor_violations)
    assert found == [], "\n" + "\n".join(found)


def test_the_cores_touch_neither_clock_nor_thread_nor_socket_nor_file(
    texts: dict[str, str],
) -> None:
    """Everything that cores need from outside is passed to them."""
    found = _check(texts, core_violations)
    assert found == [], "\n" + "\n".join(found)


def test_the_table_in_the_documents_is_this_one(texts: dict[str, str]) -> None:
    """docs/ARCHITECTURE.md lists the folders in the order enforced here."""
    rows = [
        line.split("`")[1].rstrip("/")
        for line in texts["docs/ARCHITECTURE.md"].splitlines()
        if line.startswith("| `")
    ]
    assert rows[: len(FLOORS)] == list(FLOORS)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("election/a.py", "from ..actors.node import Node"),
        ("election/a.py", "from .. import actors"),
        ("election/a.py", "import fakekafka.actors.node"),
        ("election/a.py", "from fakekafka.wire import api"),
        ("wire/apis/a.py", "from ...testing.views import V"),
        ("testing/a.py", "from ..scenarios.replay import R"),
        ("wire/a.py", "from ..tracing.events import E"),
        ("zkfake/a.py", "def f():\n    from ..election import strategies"),
        ("protocol/a.py", "if TYPE_CHECKING:\n    from ..zkfake.tree import T"),
    ],
)
def test_an_import_upwards_is_found(path: str, text: str) -> None:
    """Any form of import at any place in a file is found."""
    assert len(floor_violations(path, text)) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            "wire/apis/a.py",
            "from ..registry import R\nfrom . import b\nfrom ...actors.node import N",
        ),
        ("cli/a.py", "from ..testing.views import V\nimport typer"),
        ("tests/a.py", "from fakekafka.cli.main import main"),
        ("__init__.py", "from .testing.cluster import Cluster"),
    ],
)
def test_an_import_downwards_is_fine(path: str, text: str) -> None:
    """A folder may import itself, folders below it, and other packages."""
    assert floor_violations(path, text) == []


@pytest.mark.parametrize(
    ("path", "text", "findings"),
    [
        ("election/a.py", "import time", 1),
        ("zkfake/a.py", "from datetime import datetime", 1),
        ("replication/a.py", "import os.path, socket", 2),
        ("replication/a.py", "from pathlib import Path", 1),
        ("replication/disk/file_disk.py", "import os\nopen('x')", 0),
        ("replication/disk/file_disk.py", "import threading", 1),
        ("coordinators/a.py", "def f():\n    open('x')", 1),
        ("coordinators/a.py", "import random", 1),
        ("coordinators/a.py", "if TYPE_CHECKING:\n    import random", 0),
        ("coordinators/a.py", "if TYPE_CHECKING:\n    import asyncio", 1),
        ("statemachines/a.py", "from .time import x\nself.open()", 0),
        ("actors/a.py", "import time", 0),
    ],
)
def test_a_core_that_reaches_outside_is_found(path: str, text: str, findings: int) -> None:
    """Only cores are checked, and annotations may name ``random.Random``."""
    assert len(core_violations(path, text)) == findings
