"""What ``make mutants`` carries out fits the source, and it tells what is caught."""

from __future__ import annotations

import ast
import functools
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from fakekafka.exploration.history import TARGETS
from fakekafka.protocol.versions import behaviour
from fakekafka.tests.mutants.__main__ import main, run
from fakekafka.tests.mutants.mutant import (
    AREAS,
    HERE,
    Exploration,
    Mutant,
    MutantError,
    chosen,
    read_mutants,
)
from fakekafka.tests.support.paths import ROOT

MUTANTS = chosen(())
AT_LEAST = 60
AT_LEAST_OF_AN_AREA = 5
EXPLORED_AT_LEAST = 12
RUNS_MAX = 5000
"""A mutant that more runs need is as good as not found."""


@functools.cache
def _dumped(path: str) -> str:
    return ast.dump(ast.parse((ROOT / path).read_text(encoding="utf-8")))


@functools.cache
def _decorators(path: str) -> dict[str, list[str]]:
    """What decorates each test of a file."""
    return {
        node.name: [ast.unparse(decorator) for decorator in node.decorator_list]
        for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_has_one_place_in_the_source_and_compiles(mutant: Mutant) -> None:
    """What it makes of the file is another program, and one that Python takes."""
    source = (ROOT / mutant.file).read_text(encoding="utf-8")
    wrong = mutant.applied(source)
    assert ast.dump(ast.parse(wrong)) != _dumped(mutant.file)
    assert mutant.wrong.endswith(".")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_catcher_of_each_mutant_exists(mutant: Mutant) -> None:
    """A test of the fast part, or runs of a release that is emulated."""
    if isinstance(mutant.catcher, Exploration):
        version, target, runs = mutant.catcher
        behaviour(version)  # raises for one that is not emulated
        assert target in ("", *TARGETS)
        assert 0 < runs <= RUNS_MAX
        return
    path, _, name = mutant.catcher.partition("::")
    decorators = _decorators(path)[name]
    assert not any("mark.slow" in decorator for decorator in decorators)


def test_the_mutants_are_many_and_of_all_areas() -> None:
    """Each area has some, names are used once, and the explorer is tried on a dozen."""
    counts = Counter(mutant.area for mutant in MUTANTS)
    assert len(MUTANTS) >= AT_LEAST
    assert all(counts[area] >= AT_LEAST_OF_AN_AREA for area in AREAS), counts
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert sum(isinstance(m.catcher, Exploration) for m in MUTANTS) >= EXPLORED_AT_LEAST
    assert {path.stem for path in HERE.glob("*.toml")} == set(AREAS)


def test_a_mutant_whose_text_is_missing_or_repeated_is_stale() -> None:
    """It is told, and never taken for one that was caught."""
    mutant = Mutant("late", "acls", "a.py", "x = 1\n", "x = 2\n", "Wrong.", "test_a.py::test_x")
    assert mutant.applied("x = 1\n") == "x = 2\n"
    with pytest.raises(MutantError, match=r"late has gone stale: a\.py has its text no more"):
        mutant.applied("y = 1\n")
    with pytest.raises(MutantError, match=r"has its text 2 times, not once"):
        mutant.applied("x = 1\nx = 1\n")


def test_mutants_are_chosen_by_name_and_by_area() -> None:
    """What nothing is called is refused."""
    first = MUTANTS[0]
    assert chosen([first.name]) == [first]
    assert chosen(["acls"]) == read_mutants("acls")
    with pytest.raises(MutantError, match="no mutant or area is called 'aclz'; areas are "):
        chosen(["aclz"])


def test_a_wrong_name_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is carried out."""
    assert main(["aclz"]) == 2
    assert "no mutant or area is called 'aclz'" in capsys.readouterr().err


def test_a_mutant_names_one_catcher(tmp_path: Path) -> None:
    """Neither none nor two."""
    lines = "file = 'a'\nwas = 'b'\nnow = 'c'\nwrong = 'd.'\n"
    for rest in ("", "test = 't'\nexplored = { version = '3.9', runs = 1 }\n"):
        (tmp_path / "acls.toml").write_text(f"[late]\n{lines}{rest}")
        with pytest.raises(MutantError, match="late: either a test or an exploration catches it"):
            read_mutants("acls", tmp_path)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout of a package of this name with one function and its test."""
    root = tmp_path / "checkout"
    root.mkdir()
    (root / "__init__.py").write_text("")
    (root / "sums.py").write_text("def add(one, other):\n    return one + other\n")
    (root / "test_sums.py").write_text(
        "from fakekafka.sums import add\n\n\n"
        "def test_add():\n    assert add(2, 3) == 5\n\n\n"
        "def test_nothing():\n    pass\n\n\n"
        "def test_wrong():\n    assert add(2, 3) == 6\n"
    )
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = '-p no:fakekafka'\n")
    return root


def _wrong_sum(test: str, was: str = "one + other", name: str = "wrong") -> Mutant:
    return Mutant(name, "acls", "sums.py", was, "one - other", "Wrong.", f"test_sums.py::{test}")


@pytest.mark.slow
def test_survivors_are_named_and_the_tree_stays_unchanged(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The status is 1 for one that survives or that has gone stale."""
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    mutants = [
        _wrong_sum("test_add", name="caught"),
        _wrong_sum("test_nothing", name="missed"),
        _wrong_sum("test_add", "one * other", "stale"),
    ]
    assert run(mutants, 2, tree) == 1
    told = capsys.readouterr().out
    assert re.search(r"^caught +\d+\.\d s  test_sums\.py::test_add$", told, re.MULTILINE)
    assert re.search(r"^missed +\d+\.\d s  all tests pass$", told, re.MULTILINE)
    assert "stale has gone stale: sums.py has its text no more, not once" in told
    assert "1 of 3 mutants caught" in told
    assert "survived: missed, stale" in told
    assert {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_a_test_that_fails_without_a_mutant_catches_none(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would fail with each."""
    assert run([_wrong_sum("test_wrong")], 1, tree) == 2
    assert "what fails without a mutant catches none" in capsys.readouterr().err


@pytest.mark.slow
def test_an_interrupted_run_leaves_nothing_behind(tree: Path, tmp_path: Path) -> None:
    """Ctrl-C ends what runs, and the copies go."""
    (tree / "test_sums.py").write_text("import time\n\n\ndef test_add():\n    time.sleep(60)\n")
    folder = tmp_path / "temporary"
    folder.mkdir()
    program = (
        "import os, pathlib, signal, threading\n"
        "from fakekafka.tests.mutants.__main__ import run\n"
        "from fakekafka.tests.mutants.mutant import Mutant\n"
        "threading.Timer(2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "mutant = Mutant('m', 'acls', 'sums.py', '+', '-', 'w.', 'test_sums.py::test_add')\n"
        f"run([mutant], 1, pathlib.Path({str(tree)!r}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    assert "KeyboardInterrupt" in done.stderr
    assert list(folder.iterdir()) == []
