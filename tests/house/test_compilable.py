"""Code in compiled modules that the compiler treats differently from Python.

mypy finds one more kind (``warn_unreachable``): a narrowed field stays narrowed after a call, and
the compiler omits code that it considers unreachable.
"""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Container, Mapping
from importlib.metadata import packages_distributions
from importlib.util import resolve_name
from pathlib import Path

import pytest
from fakekafka.actors.node import Node
from fakekafka.building.compile import COMPILED, FOLDERS, INTERPRETED, modules_to_compile
from fakekafka.protocol.declaring.native import WeaklyReferable

WORDS_OF_C = ("_asm", "_complex", "_imag", "_inline", "_real", "_thread")


def shared_error_names(path: str, text: str) -> list[str]:
    """Find ``except A as error`` and ``except B as error`` in one function: the compiler gives the
    name the type of the first, and fails when the second is raised.
    """
    found = []
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        kinds: dict[str, str] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.ExceptHandler) and node.name and node.type:
                kind = ast.unparse(node.type)
                if kinds.setdefault(node.name, kind) != kind:
                    found.append(f"{path}:{node.lineno}: {node.name} is a {kinds[node.name]}, too")
    return found


def starred_tests(path: str, text: str) -> list[str]:
    """Find ``x in (*some, y)``, also with a list: the compiler crashes."""
    return [
        f"{path}:{node.lineno}: a starred expression to compare with"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Compare)
        and any(
            isinstance(part, ast.Starred)
            for side in node.comparators
            if isinstance(side, (ast.Tuple, ast.List))
            for part in side.elts
        )
    ]


def words_of_c(path: str, text: str) -> list[str]:
    """Find ``self._thread``, which with another underscore is a reserved word of the C compiler."""
    return [
        f"{path}:{node.lineno}: {node.attr} is a word of C"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr in WORDS_OF_C
    ]


def compiled_modules(root: Path) -> frozenset[str]:
    """Return the names of the compiled modules."""
    return frozenset(
        "fakekafka." + path.relative_to(root).with_suffix("").as_posix().replace("/", ".")
        for path in modules_to_compile(root)
    )


def test_a_shared_name_is_found() -> None:
    """A name shared by equal types or by two functions is no finding."""
    handlers = "    try: ...\n    except A as e: ...\n    except {} as e: ...\n"
    assert shared_error_names("a.py", "def f():\n" + handlers.format("B")) == [
        "a.py:4: e is a A, too"
    ]
    assert shared_error_names("a.py", "def f():\n" + handlers.format("A")) == []


def test_a_starred_test_is_found() -> None:
    """A loop over such a tuple is no finding."""
    assert starred_tests("a.py", "x in (*some, 1)") == [
        "a.py:1: a starred expression to compare with"
    ]
    assert starred_tests("a.py", "x not in [*some]") == [
        "a.py:1: a starred expression to compare with"
    ]
    assert starred_tests("a.py", "for x in (*some, 1): ...") == []


def test_a_word_of_c_is_found() -> None:
    """A reserved word is found as the name of an attribute."""
    assert words_of_c("a.py", "self._thread = 1") == ["a.py:1: _thread is a word of C"]
    assert words_of_c("a.py", "self.thread = 1") == []


def test_compiled_modules_have_no_shared_names_starred_tests_or_words_of_c(
    texts: dict[str, str],
) -> None:
    """Files that stay interpreted are not checked."""
    found: list[str] = []
    for path, text in texts.items():
        if path.endswith(".py") and path.startswith(COMPILED) and path not in INTERPRETED:
            found += shared_error_names(path, text) + starred_tests(path, text)
            found += words_of_c(path, text)
    assert found == []


def test_files_excluded_from_compilation_exist(root: Path) -> None:
    """Each excluded file is in a compiled folder, and a change in any of these folders makes a
    build stale.
    """
    assert all((root / path).is_file() and path.startswith(COMPILED) for path in INTERPRETED)
    assert all(folder.startswith(FOLDERS) for folder in COMPILED)


def test_mypy_looks_for_unreachable_code_in_all_that_is_compiled(root: Path) -> None:
    """The table in pyproject.toml names the compiled folders."""
    config = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    (named,) = [
        override["module"]
        for override in config["tool"]["mypy"]["overrides"]
        if override.get("warn_unreachable")
    ]
    compiled = [
        path.removesuffix(".py") + ("" if path.endswith(".py") else ".*") for path in COMPILED
    ]
    assert named == [f"fakekafka.{path.replace('/', '.')}" for path in compiled]


def inherited_slots(cls: type, compiled: frozenset[str]) -> str | None:
    """Return the interpreted base whose slots a compiled class would inherit, which is not
    supported, or None.
    """
    for base in cls.__mro__[1:]:
        if base.__module__ not in compiled and "__slots__" in vars(base):
            return base.__qualname__ if vars(base)["__slots__"] else None
    return None


def test_inherited_slots_are_found() -> None:
    """Empty slots and those of a compiled class are no finding."""

    class Slotted:
        __slots__ = ("a",)

    class Empty:
        __slots__ = ()

    assert inherited_slots(type("A", (Slotted,), {}), frozenset()) is not None
    assert inherited_slots(type("A", (Empty,), {}), frozenset()) is None
    assert inherited_slots(type("A", (Slotted,), {}), frozenset({__name__})) is None


def test_no_compiled_class_inherits_slots(root: Path) -> None:
    """The classes of all compiled modules are checked."""
    modules = compiled_modules(root)
    found = [
        f"{cls.__module__}.{cls.__qualname__} has the slots of {base}"
        for name in sorted(modules)
        for cls in vars(importlib.import_module(name)).values()
        if isinstance(cls, type)
        and cls.__module__ == name
        and (base := inherited_slots(cls, modules))
    ]
    assert found == []


NOT_NATIVE = ("Protocol", "NamedTuple", "Enum", "IntEnum", "StrEnum", "TypedDict")
OPEN = "mypyc_attr(allow_interpreted_subclasses=True)"


def closed_bases(
    sources: Mapping[str, str], compiled: Container[str], packages: Container[str] = ()
) -> list[str]:
    """Return interpreted classes that inherit from a compiled class which does not allow it:
    creating such a class is a ``TypeError``. ``sources`` maps names of modules to their texts.
    """
    trees = {module: ast.parse(text) for module, text in sources.items()}
    closed = {
        f"{module}.{cls.name}"
        for module, tree in trees.items()
        if module in compiled
        for cls in tree.body
        if isinstance(cls, ast.ClassDef)
        and OPEN not in map(ast.unparse, cls.decorator_list)
        and not any(ast.unparse(base).startswith(NOT_NATIVE) for base in cls.bases)
    }
    found = []
    for module, tree in trees.items():
        if module in compiled:
            continue
        package = module if module in packages else module.rpartition(".")[0]
        imported = {
            name.rpartition(".")[2]: name
            for node in tree.body
            for name in imported_names(node, package)
        }
        found += [
            f"{module}.{cls.name} inherits from {imported[ast.unparse(base)]}"
            for cls in tree.body
            if isinstance(cls, ast.ClassDef)
            for base in cls.bases
            if imported.get(ast.unparse(base)) in closed
        ]
    return found


def test_a_closed_base_is_found() -> None:
    """A base is no finding if it allows subclasses, is no native class, or is compiled together
    with the class.
    """
    inner = "from p.native import mypyc_attr\n{}class A({}): ...\n"
    outer = "from .a import A\nclass B(A): ...\n"

    def found(decorator: str, base: str, *compiled: str) -> list[str]:
        return closed_bases({"p.a": inner.format(decorator, base), "p.b": outer}, compiled)

    assert found("", "", "p.a") == ["p.b.B inherits from p.a.A"]
    assert found(f"@{OPEN}\n", "", "p.a") == []
    assert found("", "Protocol", "p.a") == []
    assert found("", "", "p.a", "p.b") == []
    assert found("", "") == []


def test_interpreted_classes_inherit_from_no_closed_class(
    root: Path, texts: dict[str, str]
) -> None:
    """All classes of the package are checked."""
    rooms = {path.parent.name for path in root.glob("*/__init__.py")} - {"tests", "docs"}
    sources, packages = {}, set()
    for path, text in texts.items():
        if path.endswith(".py") and path.partition("/")[0] in rooms:
            module = "fakekafka." + path.removesuffix(".py").replace("/", ".")
            if module.endswith(".__init__"):
                module = module.removesuffix(".__init__")
                packages.add(module)
            sources[module] = text
    compiled = compiled_modules(root)
    assert compiled < set(sources)
    assert closed_bases(sources, compiled, packages) == []


def test_a_wheel_is_compiled_where_all_that_its_modules_import_is_installed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """mypy, and so the compiler, fails otherwise: the build environment has only what the backend
    requires.
    """
    monkeypatch.syspath_prepend(str(root / "building"))
    backend = importlib.import_module("backend")
    asked = backend.compiler_requirements()
    distributions = {normalised(re.split(r"[<>=\[; ]", one)[0]) for one in asked}
    providers = packages_distributions()
    own = {*sys.stdlib_module_names, "fakekafka", "mypy_extensions", "typing_extensions"}
    imported = foreign_imports(root) - own  # the last two come with the compiler
    lacking = {name for name in imported if not {*map(normalised, providers[name])} & distributions}
    assert {"cryptography", "time_machine", "uvloop"} <= imported
    assert not lacking


@pytest.mark.slow
def test_the_compiler_finds_the_types_right_under_the_newest_python(
    root: Path, tmp_path: Path
) -> None:
    """A later Python may require more methods of a class: 3.13 required two more of a server."""
    paths = [str(path) for path in modules_to_compile(root)]
    command = [sys.executable, "-m", "mypy", "--python-version", "3.14"]
    run = subprocess.run(
        [*command, "--cache-dir", str(tmp_path), *paths],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout


def foreign_imports(root: Path) -> set[str]:
    """Return the packages that compiled modules import, directly or through other modules of the
    package.
    """
    seen: set[Path] = set()
    found: set[str] = set()
    paths = modules_to_compile(root)
    while paths:
        path = paths.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        package = ".".join(("fakekafka", *path.relative_to(root).parts[:-1]))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for name in imported_names(node, package):
                top, *inner = name.split(".")
                if top == "fakekafka":
                    place = root.joinpath(*inner)
                    paths += [place.with_suffix(".py"), place / "__init__.py"]
                else:
                    found.add(top)
    return found


def imported_names(node: ast.AST, package: str) -> list[str]:
    """Return what a statement in a package imports, by full names, including possible
    submodules.
    """
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        module = resolve_name("." * node.level + (node.module or ""), package)
        return [module, *(f"{module}.{alias.name}" for alias in node.names)]
    return []


def normalised(name: str) -> str:
    return name.lower().replace("_", "-")


def test_actors_take_weak_references_from_a_base_that_is_not_compiled() -> None:
    """Pykka holds weak references to actors. From Python 3.12 on support for them is inherited from
    the first base only.
    """
    bases = []
    base: type | None = Node
    while base is not None:
        bases.append(base)
        base = base.__base__
    assert WeaklyReferable in bases
