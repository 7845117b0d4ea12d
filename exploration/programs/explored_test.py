"""A user's test, collected once by pytest and run many times under faults."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import io
import linecache
import logging
import os
import site
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, NamedTuple

import pytest
from _pytest.config import Config, _prepareconfig
from _pytest.main import Session

from ...builds import CODE_ROOT
from ...protocol.errors import UsageError
from ...testing import pytest_plugin
from ...testing.programs import async_tests, explored
from ...testing.simulation import Simulation
from ..invariants.invariant import Violation
from .conductor import Conductor, Endless
from .program_faults import chosen_kinds

REAL_LIMIT_S = 120.0
"""Maximum real time in seconds for one run of a test."""
_TERMINATED = 143
_PACKAGE = Path(CODE_ROOT)
_REPORT_CHARACTERS_MAX = 4000
_RUNS_END = "RunsEnd"


class Failure(NamedTuple):
    """The failure of one run of a test."""

    text: str
    """Description in one line, which begins in the same way for failures of the same kind."""
    report: str
    """pytest's report of the failure."""
    promise: str
    """Name of the test, or ``RunsEnd`` for a test that does not end."""

    def violation(self, at_ms: float) -> Violation:
        return Violation(self.promise, self.text, at_ms)


class ExploredTest:
    """A test in a pytest session; its module and its fixtures of a wider scope are set up once.

    Raises ``UsageError`` unless there is exactly one such test, which can be explored.
    """

    def __init__(self, test: str) -> None:
        self.test: str = test
        self._output = io.StringIO()
        self._failure: tuple[pytest.ExceptionInfo[BaseException], str] | None = None
        self._skipped = ""
        self._collection_error = ""
        self._conductor: Conductor | None = None
        self._level = logging.CRITICAL
        with self._quiet():
            self._config = self._configure()
            self._session = Session.from_config(self._config)
            self._config.hook.pytest_sessionstart(session=self._session)
            self.item: Any = self._collect()
        self.item.add_marker(pytest.mark.kafka_faults(self))
        self._sibling = pytest.Function.from_parent(
            self.item.parent, name="the next run", callobj=lambda: None
        )  # as the next item, it keeps fixtures of a wider scope alive
        if "caplog" in self.item.fixturenames:
            self._level = logging.NOTSET
        self.spared: frozenset[str] = frozenset({async_tests.NAME} if self._is_program else ())
        """Names of programs that no fault affects: an async test itself."""

    # -- pytest --------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _quiet(self) -> Iterator[None]:
        """Suppress all output within this context, and logging unless a fixture captures it."""
        before = logging.root.manager.disable
        logging.disable(self._level)
        try:
            with contextlib.redirect_stdout(self._output), contextlib.redirect_stderr(self._output):
                yield
        finally:
            logging.disable(before)
            self._output.seek(0)
            self._output.truncate()

    def _configure(self) -> Config:
        # A failed program may leave clients open, as an exiting process does. The garbage collector
        # then warns about them in any later run, which has nothing to do with them.
        plugins = ["-p", "no:cacheprovider", "-p", "no:unraisableexception"]
        options = ["-s", "-q", *plugins, self.test]
        has_workers = importlib.util.find_spec("xdist") is not None
        for more in (["-n0"], []) if has_workers else ([],):
            try:
                config = _prepared([*more, *options], self)
            except pytest.UsageError as error:
                if more:
                    continue
                raise UsageError(f"pytest refuses its options: {error}") from error
            return config
        raise AssertionError

    def _collect(self) -> Any:
        try:
            self._config.hook.pytest_collection(session=self._session)
        except pytest.UsageError as error:
            path, _, name = self.test.partition("::")
            if self._collection_error:
                raise UsageError(
                    f"{path} cannot be collected:\n{self._collection_error}"
                ) from error
            if not Path(path).exists():
                raise UsageError(f"there is no file {path}") from error
            raise UsageError(f"{path} has no test {name}{self._test_names_hint(path)}") from error
        if self._collection_error:
            raise UsageError(f"{self.test} cannot be collected:\n{self._collection_error}")
        items = self._session.items
        if not items:
            raise UsageError(f"pytest finds no test at {self.test}")
        if len(items) > 1:
            folder = self.test.partition("::")[0]
            names = [f"{folder}::{item.nodeid.partition('::')[2]}" for item in items[:12]]
            more = f"\n  and {len(items) - len(names)} more" if len(items) > len(names) else ""
            listed = "\n".join(f"  {name}" for name in names)
            raise UsageError(f"{self.test} is {len(items)} tests; name one:\n{listed}{more}")
        (item,) = items
        if "kafka_simulation" not in getattr(item, "fixturenames", ()):
            raise UsageError(
                f"{self.test} does not use the fixture kafka_simulation, whose cluster is attacked"
            )
        return item

    def _test_names_hint(self, path: str) -> str:
        """Return the part of an error message that names the tests in a file."""
        names = [item.nodeid.partition("::")[2] for item in self._tests_of(path)]
        return f"; it has {', '.join(names[:12])}" if names else ""

    def _tests_of(self, path: str) -> list[Any]:
        try:
            found: list[Any] = list(self._session.perform_collect([path]))
        except pytest.UsageError:
            found = []
        return found

    def pytest_configure(self, config: pytest.Config) -> None:
        config.stash[explored.EXPLORED] = True
        config.option.kafka_trace = "never"

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._collection_error = report.longreprtext

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        error = call.excinfo
        if error is not None and isinstance(error.value, pytest.skip.Exception):
            self._skipped = str(error.value)
        elif error is not None and self._failure is None:
            self._failure = error, str(report.longreprtext)
        return report

    def close(self) -> None:
        """End the session and tear down the fixtures of a wider scope."""
        with self._quiet(), contextlib.suppress(Exception):
            self._session._setupstate.teardown_exact(None)
            self._config._ensure_unconfigure()

    # -- what faults.Director asks -------------------------------------------------------------

    @property
    def arguments(self) -> dict[str, Any]:
        return {} if self._conductor is None else self._conductor.arguments

    def begin(self, simulation: Simulation) -> None:
        if self._conductor is not None:
            self._conductor.begin(simulation)

    # -- runs ----------------------------------------------------------------------------------

    @property
    def _is_program(self) -> bool:
        return self.item.get_closest_marker(async_tests.MARK) is not None

    @property
    def waits_by_sleeping(self) -> bool:
        """True for an async test, whose waits cannot be seen from outside."""
        return self._is_program

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of faults permitted for the test; ``UsageError`` for unknown kinds in its mark."""
        mark = self.item.get_closest_marker("kafka_explore")
        given = {} if mark is None else mark.kwargs
        if (mark is not None and mark.args) or not {"only", "without"}.issuperset(given):
            raise UsageError("the mark kafka_explore takes only=[...] and without=[...]")
        return chosen_kinds(given.get("only"), given.get("without", ()))

    @property
    def name(self) -> str:
        """Name of the test function."""
        return str(self.item.originalname)

    @property
    def case(self) -> str | None:
        """Id of the test's case; None if the test is not parametrized."""
        callspec = getattr(self.item, "callspec", None)
        return None if callspec is None else str(callspec.id)

    def run(self, conductor: Conductor) -> Failure | None:
        """Run the test once; return its failure, or None if it passes.

        Raises ``UsageError`` if the test is skipped.
        """
        self._failure, self._skipped, self._conductor = None, "", conductor
        pytest_plugin.forget(self.item)
        with self._quiet(), _real_time_limit():
            self.item.ihook.pytest_runtest_protocol(item=self.item, nextitem=self._sibling)
        failure, self._failure = self._failure, None
        if self._skipped:
            raise UsageError(f"{self.test} is skipped: {self._skipped}")
        if failure is None:
            return None
        error, report = failure
        if isinstance(error.value, SystemExit) and error.value.code == _TERMINATED:
            raise error.value
        return _failure_of(self.name, error.value, report)


def _prepared(arguments: list[str], plugin: object) -> Config:
    """Return a configuration of pytest with the plugin of this package."""
    config = _prepareconfig(arguments, [plugin])
    if not config.pluginmanager.is_registered(pytest_plugin):  # blocked by an ini file
        config._ensure_unconfigure()
        config = _prepareconfig(arguments, [plugin, pytest_plugin])
    config._do_configure()
    return config


def explored_test(test: str) -> ExploredTest:
    """Return a test, which this process collects only once, in the current folder."""
    key = test, os.getcwd()
    found = _Collected.tests.get(key)
    if found is None:
        found = _Collected.tests[key] = ExploredTest(test)
    return found


@contextlib.contextmanager
def closing_explored_tests() -> Iterator[None]:
    """Close and forget all collected tests of this process at the end of this context."""
    try:
        yield
    finally:
        for explored in _Collected.tests.values():
            explored.close()
        _Collected.tests.clear()


class _Collected:
    tests: ClassVar[dict[tuple[str, str], ExploredTest]] = {}


# -- a limit of real time --------------------------------------------------------------------------


@contextlib.contextmanager
def _real_time_limit() -> Iterator[None]:
    """Raise ``_RealEndless`` in this context if it takes longer than ``REAL_LIMIT_S``."""
    owner = threading.get_ident()

    def end() -> None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(owner), ctypes.py_object(_RealEndless)
        )

    timer = threading.Timer(REAL_LIMIT_S, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class _RealEndless(Endless):
    def __init__(self) -> None:
        super().__init__(f"the test has not ended within {REAL_LIMIT_S:g} real s")


# -- failures --------------------------------------------------------------------------------------


def _failure_of(test: str, error: BaseException, report: str) -> Failure:
    report = report[-_REPORT_CHARACTERS_MAX:]
    first = " ".join((str(error).splitlines() or [""])[0].split())
    if isinstance(error, Endless):
        return Failure(first, report, _RUNS_END)
    last, line = _place_of(error.__traceback__)
    if isinstance(error, AssertionError) and last == "checks":
        return Failure(first, report, test)  # the message of a check already names the kind
    if isinstance(error, AssertionError):
        return Failure(f"{line or 'an assertion'} does not hold; {first}", report, test)
    return Failure(f"{type(error).__name__} at {line or 'the test'}; {first}", report, test)


def _place_of(traceback: TracebackType | None) -> tuple[str, str]:
    """Return the name of the module that raised an error, and the last line of the user's code."""
    raised, line = "", ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        path = Path(code.co_filename)
        raised = path.stem
        if _is_user_code(path):
            line = linecache.getline(code.co_filename, traceback.tb_lineno).strip()
        traceback = traceback.tb_next
    return raised, line


def _is_user_code(path: Path) -> bool:
    text = os.fspath(path)
    if text.startswith("<") or path.is_relative_to(_PACKAGE / "testing"):
        return False
    elsewhere = (*site.getsitepackages(), os.path.dirname(os.__file__))
    inside = any(path.is_relative_to(folder) for folder in elsewhere)
    own = path.is_relative_to(_PACKAGE) and not _is_example_or_test(path)
    return not inside and not own


def _is_example_or_test(path: Path) -> bool:
    """Return True for the examples and tests of a checkout, which are inside the package."""
    return path.relative_to(_PACKAGE).parts[0] in ("examples", "tests")
