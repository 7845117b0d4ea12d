"""House rules about wording and form, each with a test of its own on a bad example.

A rule is a function from a path and its text to findings. Exceptions are in ``EXCEPTIONS`` with a
reason; an exception that is no longer needed is a failure, too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

import pytest

LINE_COLUMNS_MAX = 100

Rule = Callable[[str, str], list[str]]

CODE_SUFFIXES = (".py", ".js", ".css", ".sh")
NO_PRINT_EXEMPT = ("benchmarks/", "building/", "cli/", "docs/", "examples/", "tests/")
"""Folders of programs whose purpose is output."""
GENERATED = ("constraints.txt", "docs/reference/coverage.md", "docs/reference/configuration.md")

EXCEPTIONS: dict[tuple[str, str], str] = {
    ("unfinished_words", "tests/house/test_tidy.py"): "names the words it looks for",
    ("foreign_words", "tests/house/test_tidy.py"): "names the words it looks for",
    ("file_names", "statemachines/admin/parts.py"): "the parts that the admin APIs are handed",
    ("file_names", "statemachines/controller/parts.py"): "the parts that flows are handed",
}
"""The reason why a rule does not hold for a file, by (rule, path)."""


def line_width(path: str, text: str) -> list[str]:
    """Limit the width of lines, so that two files fit side by side. (ruff checks Python; this
    covers other files, too.)
    """
    if not path.endswith((*CODE_SUFFIXES, ".toml", "Makefile", ".ci/run")):
        return []
    return [
        f"{path}:{number}: {len(line)} columns, at most {LINE_COLUMNS_MAX}"
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > LINE_COLUMNS_MAX
    ]


def unfinished_words(path: str, text: str) -> list[str]:
    """Forbid marks of unfinished work, which belongs in an issue."""
    if path in GENERATED or path == "LICENSE":
        return []
    pattern = re.compile(r"\b(TODO|FIXME|XXX)\b")
    return _grep(path, text, pattern, "left over")


_FOREIGN = re.compile(
    r"helper session|claude|anthropic|language model|/work/(main|shared)|/opt/wheels|/tmp/brief"
    r"|pypi\.org|pythonhosted\.org|debian\.org|npmjs\.(com|org)|maven\.org|crates\.io"
    r"|proxy\.golang\.org",
    re.IGNORECASE,
)


def foreign_words(path: str, text: str) -> list[str]:
    """Forbid words about the place or the means of the project's making."""
    return _grep(path, text, _FOREIGN, "does not belong here")


def leftover_print(path: str, text: str) -> list[str]:
    """Forbid ``print`` in library code, which reports through values, errors and logging."""
    if not path.endswith(".py") or path.startswith(NO_PRINT_EXEMPT):
        return []
    return [
        f"{path}:{node.lineno}: {node.func.id}() in library code"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("print", "breakpoint")
    ]


def package_inits_hold_no_code(path: str, text: str) -> list[str]:
    """Allow only a docstring in a folder's ``__init__.py``, so that its import costs nothing."""
    if not path.endswith("/__init__.py") or path.startswith("tests/"):
        return []
    body = ast.parse(text).body
    described = body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    if not described:
        return [f"{path}: needs a docstring that says what the folder holds"]
    return [f"{path}:{node.lineno}: code in a folder's __init__.py" for node in body[1:]]


def import_paths_are_left_alone(path: str, text: str) -> list[str]:
    """Forbid changes of ``sys.path``: everything is imported as ``fakekafka...``, whatever ran
    before.
    """
    if not path.endswith(".py") or "sys.path" not in text:  # parsing all files takes seconds
        return []
    return [
        f"{path}:{node.lineno}: changes sys.path"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.path"
    ]


def no_imports_of_tests(path: str, text: str) -> list[str]:
    """Forbid imports of tests and conftests; code that tests share is in ``tests/support``."""
    if not path.startswith("tests/") or not path.endswith(".py"):
        return []
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            modules = [f"{node.module or ''}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            continue
        found += [
            f"{path}:{node.lineno}: imports {module}; what tests share lies in tests/support"
            for module in modules
            if any(part == "conftest" or part.startswith("test_") for part in module.split("."))
        ]
    return found


def _grep(path: str, text: str, pattern: re.Pattern[str], complaint: str) -> list[str]:
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        match = pattern.search(line)
        if match:
            found.append(f"{path}:{number}: {match.group()!r} {complaint}")
    return found


VAGUE_NAMES = (
    *("base", "common", "facts", "hosting", "listings", "misc", "parts"),
    *("steps", "told", "util", "utils", "waiting", "work"),
)


def file_names(path: str, _text: str) -> list[str]:
    """Forbid names of files that do not describe the content."""
    name = path.rpartition("/")[2].removesuffix(".py").removeprefix("test_")
    return [f"{path}: the name does not say what is in it"] if name in VAGUE_NAMES else []


RULES: tuple[Rule, ...] = (
    file_names,
    line_width,
    unfinished_words,
    foreign_words,
    leftover_print,
    package_inits_hold_no_code,
    import_paths_are_left_alone,
    no_imports_of_tests,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_project_keeps_the_rule(rule: Rule, texts: dict[str, str]) -> None:
    """Every file keeps the rule or is in the table of exceptions."""
    found = [
        finding
        for path, text in texts.items()
        if (rule.__name__, path) not in EXCEPTIONS
        for finding in rule(path, text)
    ]
    assert found == [], "\n" + "\n".join(found)


def test_every_exception_is_still_needed(texts: dict[str, str]) -> None:
    """An exception for a file that was removed or now keeps the rule is a failure."""
    rules = {rule.__name__: rule for rule in RULES}
    idle = [
        (name, path)
        for name, path in EXCEPTIONS
        if path not in texts or not rules[name](path, texts[path])
    ]
    assert idle == []


@pytest.mark.parametrize(
    ("rule", "path", "bad", "good"),
    [
        (line_width, "a/b.py", "#" * 101, "#" * 100),
        (line_width, "Makefile", "#" * 101, "#" * 100),
        (unfinished_words, "a/b.md", "# TODO: more", "# to do, or TODOS"),
        (unfinished_words, "a/b.py", "x = 1  # FIXME", "x = 1"),
        (foreign_words, "a.md", "See https://pypi.org/x", "See the package index"),
        (foreign_words, "a.py", "# written by Claude", "# written in clauses"),
        (leftover_print, "actors/b.py", "print(1)", "log.info(1)"),
        (leftover_print, "actors/b.py", "breakpoint()", "self.breakpoint()"),
        (package_inits_hold_no_code, "wire/__init__.py", '"""Doc."""\nimport os', '"""Doc."""'),
        (package_inits_hold_no_code, "wire/__init__.py", "", '"""Doc."""'),
        (import_paths_are_left_alone, "docs/a.py", "sys.path.insert(0, x)", "print(sys.argv)"),
        (no_imports_of_tests, "tests/a.py", "from .test_b import c", "from . import b"),
        (no_imports_of_tests, "tests/a.py", "from ..conftest import c", "import conftests"),
    ],
)
def test_each_rule_finds_the_bad_example_only(rule: Rule, path: str, bad: str, good: str) -> None:
    """Each rule finds exactly the bad example."""
    assert len(rule(path, bad)) == 1
    assert rule(path, good) == []


@pytest.mark.parametrize(
    ("path", "is_vague"),
    [("a/common.py", True), ("tests/a/test_steps.py", True), ("a/common_names.py", False)],
)
def test_vague_names_of_files_are_found(path: str, is_vague: bool) -> None:
    """Only the whole name counts, for test files without ``test_``."""
    assert bool(file_names(path, "")) is is_vague


@pytest.mark.parametrize("path", ["cli/b.py", "docs/generate.py", "examples/a.py"])
def test_programs_may_print(path: str) -> None:
    """Commands, generators and examples may print."""
    assert leftover_print(path, "print(1)") == []
