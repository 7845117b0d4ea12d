"""Carries mutants out: each in a copy of the tree, where only its file is another one."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fakekafka.builds import VARIABLE
from fakekafka.tests.support.paths import NOT_SOURCE

from .mutant import Exploration, Mutant

PACKAGE = "fakekafka"
_TESTS_FAILED, _PROMISE_BROKE = 1, 1
_LIMIT_S = 1800
"""A program that takes longer is ended; it caught nothing."""
_TOLD_LINES = 12


class Outcome(NamedTuple):
    """What a program said of a copy of the tree."""

    is_caught: bool
    told: str
    """What caught it, or why nothing did."""


class Stopped(Exception):
    """All is to end now."""


class Copies:
    """Copies of a tree, and the programs that run in them."""

    def __init__(self, root: Path, folder: Path) -> None:
        """``folder`` takes the copies; whoever made it removes it."""
        self._root = root
        self._folder = folder
        self._lock = threading.Lock()
        self._free: list[Path] = []
        self._count = 0
        self._running: set[subprocess.Popen[str]] = set()
        self._is_stopped = False

    def carry_out(self, mutant: Mutant) -> Outcome:
        """Run what is to catch a mutant, in a copy that has it.

        Raises ``MutantError`` if the mutant has no place in the source, ``Stopped`` after
        ``stop``.
        """
        wrong = mutant.applied((self._root / mutant.file).read_text(encoding="utf-8"))
        copy = self._take()
        path = copy / mutant.file
        compiled = Path(importlib.util.cache_from_source(str(path)))
        compiled.unlink(missing_ok=True)  # it would be taken for that of the wrong version
        path.write_text(wrong, encoding="utf-8")
        try:
            if isinstance(mutant.catcher, Exploration):
                return self._explore(copy, mutant.catcher)
            return self._test(copy, [mutant.catcher])
        finally:
            compiled.unlink(missing_ok=True)
            shutil.copy2(self._root / mutant.file, path)
            self._free.append(copy)

    def test_untouched(self, tests: Sequence[str]) -> Outcome:
        """Run tests in a copy as it is."""
        copy = self._take()
        outcome = self._test(copy, tests)
        self._free.append(copy)
        return outcome

    def explore_untouched(self, exploration: Exploration) -> Outcome:
        """Explore a copy as it is."""
        copy = self._take()
        outcome = self._explore(copy, exploration)
        self._free.append(copy)
        return outcome

    def stop(self) -> None:
        """End all programs; nothing is begun any more."""
        with self._lock:
            self._is_stopped = True
            for program in self._running:
                program.kill()

    def _take(self) -> Path:
        with self._lock:
            if self._free:
                return self._free.pop()
            self._count += 1
            copy = self._folder / str(self._count) / PACKAGE
        shutil.copytree(
            self._root, copy, ignore=shutil.ignore_patterns(*NOT_SOURCE, "compiled"), symlinks=True
        )
        return copy

    def _test(self, copy: Path, tests: Sequence[str]) -> Outcome:
        status, lines = self._run(copy, "pytest", "-q", "-x", "-p", "no:xdist", *tests)
        if status == _TESTS_FAILED:
            return Outcome(True, tests[0] if len(tests) == 1 else "\n".join(lines))
        if status == 0:
            return Outcome(False, "all tests pass")
        return Outcome(False, "\n".join([f"pytest ended with {status}", *lines]))

    def _explore(self, copy: Path, exploration: Exploration) -> Outcome:
        version, target, runs = exploration
        words = [version, str(runs), *([target] if target else [])]
        status, lines = self._run(copy, f"{PACKAGE}.tests.mutants.exploring", *words)
        attacked = f"{version}, {target}" if target else version
        if status == _PROMISE_BROKE and lines and len(lines[-1].split()) == 2:
            promise, count = lines[-1].split()
            return Outcome(True, f"{promise} in run {count} of {attacked}")
        if status == 0:
            return Outcome(False, f"every promise was kept in {runs} runs of {attacked}")
        return Outcome(False, "\n".join([f"the exploration ended with {status}", *lines]))

    def _run(self, copy: Path, module: str, *arguments: str) -> tuple[int, list[str]]:
        """Status and last lines of a module of Python that sees the copy and no other tree."""
        environment = {**os.environ, VARIABLE: "pure", "PYTHONPATH": str(copy.parent)}
        # The copy is used again and again: compiling all of it each time takes longer.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        with self._lock:
            if self._is_stopped:
                raise Stopped
            program = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                cwd=copy,
                env=environment,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            self._running.add(program)
        try:
            text, _ = program.communicate(timeout=_LIMIT_S)
        except subprocess.TimeoutExpired:
            program.kill()
            text, _ = program.communicate()
        finally:
            with self._lock:
                self._running.discard(program)
        if self._is_stopped:
            raise Stopped
        return program.returncode, text.splitlines()[-_TOLD_LINES:]
