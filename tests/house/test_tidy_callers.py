"""The package has no names that only tests use."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict

import pytest
from fakekafka.tests.support.imports import in_package

_WORD = re.compile(r"[A-Za-z_]\w+")
_CONTENT = "for tests that look into a part: how much it holds"
_STATE = "for tests that look into a part: which state it is in"

ONLY_IN_TESTS: dict[str, str] = {
    "add_signal_handler": "asyncio has it (AbstractEventLoop)",
    "connection_count": _CONTENT,
    "create_server": "asyncio calls it (AbstractEventLoop)",
    "emit": "logging calls it (Handler)",
    "pytest_addoption": "pytest calls it",
    "existing_partitions": _CONTENT,
    "fail_authentication": "a fault that only a ZooKeeper server can cause",
    "getnameinfo": "asyncio has it (AbstractEventLoop)",
    "getpeername": "a name of sockets",
    "getsockopt": "a name of sockets",
    "is_connected": _STATE,
    "is_reading": "asyncio calls it (Transport)",
    "pending_count": _CONTENT,
    "process_ids": "for tests that send workers of a batch signals",
    "put_replica_state": "the counterpart of put_partition_state, to set a scene",
    "pytest_collection_modifyitems": "pytest calls it",
    "pytest_configure": "pytest calls it",
    "pytest_pyfunc_call": "pytest calls it",
    "pytest_runtest_makereport": "pytest calls it",
    "run_in_executor": "asyncio calls it (AbstractEventLoop)",
    "serve_forever": "asyncio has it (Server)",
    "settimeout": "a name of sockets",
    "watched_count": "Kafka's gauge of a purgatory",
    "set_exception_handler": "asyncio has it (AbstractEventLoop)",
    "without_leader_count": "Kafka's gauge UnknownDestinationQueueSize",
    "unexplained": "asked of one history; the command asks kinds of violation",
}
"""Names that are shipped although no shipped file or document uses them, with the reason."""


def defined_names(tree: ast.AST) -> list[str]:
    """Return the functions, classes and methods of a file."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [node.name for node in ast.walk(tree) if isinstance(node, kinds)]


def names_only_tests_have(texts: dict[str, str]) -> dict[str, list[str]]:
    """Return names that only tests use, with the shipped files that define them."""
    shipped: Counter[str] = Counter()
    tested: set[str] = set()
    definitions: dict[str, list[str]] = defaultdict(list)
    for path, text in texts.items():
        if path.startswith("tests/"):
            tested.update(_WORD.findall(text))
            continue
        shipped.update(_WORD.findall(text))
        if in_package(path):
            for name in defined_names(ast.parse(text)):
                definitions[name].append(path)
    return {
        name: paths
        for name, paths in definitions.items()
        if shipped[name] <= len(paths) and name in tested and not name.startswith("__")
    }


@pytest.mark.slow
def test_nothing_is_shipped_for_tests_alone(texts: dict[str, str]) -> None:
    """Exceptions are in the table with a reason, and leave it once they are used."""
    assert set(names_only_tests_have(texts)) == set(ONLY_IN_TESTS)


def test_a_name_that_only_tests_call_is_found() -> None:
    """Use in documents, examples and other shipped files counts; a definition does not."""
    texts = {
        "zkfake/a.py": "def used(): ...\ndef lonely(): ...\nclass A:\n  def told(self): used()",
        "README.md": "Call `A().told()`.",
        "tests/test_a.py": "lonely(); used(); told()",
    }
    assert names_only_tests_have(texts) == {"lonely": ["zkfake/a.py"]}
