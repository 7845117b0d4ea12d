"""Conditions under which every test runs: frozen messages, Hypothesis profiles, no silent skips.

Nothing here may depend on ``PYTHONHASHSEED``: the package promises the same trace whatever it is,
so the suite leaves it random on purpose. Never parametrise over a set: the workers of pytest-xdist
would then collect different orders.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest
from fakekafka import builds
from fakekafka.tests.support.examples import EXAMPLES_VARIABLE, examples
from hypothesis import HealthCheck, settings

_VALUES_MODULE = "fakekafka.protocol.values"
_PLUGIN_MODULE = "fakekafka.testing.pytest_plugin"


def _freeze_messages() -> None:
    """Let messages be frozen from here on, as ``frozen`` values are in every program."""
    from fakekafka.protocol.declaring import methods

    plain = methods.declare_class
    methods.declare_class = lambda cls, is_frozen, is_value=True: plain(
        cls, is_frozen=is_value, is_value=is_value
    )


_ARE_MESSAGES_FROZEN = _VALUES_MODULE not in sys.modules
_freeze_messages()

pytest_plugins = ["pytester"]
if importlib.util.find_spec(_PLUGIN_MODULE) is not None:
    pytest_plugins.append(_PLUGIN_MODULE)  # pyproject.toml switches its entry point off

settings.register_profile(
    "dev",
    max_examples=examples(25),
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
for _name, _is_always_the_same in (("ci", True), ("fresh", False)):
    settings.register_profile(
        _name,
        settings.get_profile("dev"),
        max_examples=examples(100),
        stateful_step_count=50,
        derandomize=_is_always_the_same,
        database=None,
        print_blob=True,
    )
_PROFILE = os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev")
settings.load_profile(_PROFILE)

_WRITTEN_OUT = ("clients", "serial")
"""Marks that stand in the file of each test that has them."""
_REPEATED_MAX = 10
"""So many failed tests are named to be repeated; where there are more, all tests are."""


def pytest_configure() -> None:
    if not _ARE_MESSAGES_FROZEN:
        raise pytest.UsageError(
            f"{_VALUES_MODULE} was imported before tests/conftest.py could freeze messages, so "
            "a test that changes one would not be found. Find the plugin or -p option that imports "
            "fakekafka early."
        )


def pytest_report_header() -> str:
    hash_seed = os.environ.get("PYTHONHASHSEED", "random")
    skips = "fail" if _skips_fail() else "allowed"
    return (
        f"fakekafka ({builds.running}): messages frozen, hypothesis {_PROFILE}, "
        f"hash seed {hash_seed}, skips {skips}"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep all Spark tests in one worker: a second JVM would cost more than it saves. And leave
    out the tests that are about the other build."""
    _check_marks(items)
    other = "pure" if builds.is_compiled else "compiled"
    left_out = [item for item in items if item.get_closest_marker(other) is not None]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.get_closest_marker(other) is None]
    for item in items:
        if item.get_closest_marker("spark") is not None:
            item.add_marker(pytest.mark.xdist_group("spark"))


def _check_marks(items: list[pytest.Item]) -> None:
    """Refuse marks by which a part of the suite would miss a test."""
    texts = {item.path: "" for item in items}
    for item in items:
        for name in _WRITTEN_OUT:
            if item.get_closest_marker(name) is None:
                continue
            texts[item.path] = texts[item.path] or item.path.read_text(encoding="utf-8")
            if f"mark.{name}" not in texts[item.path]:
                raise pytest.UsageError(
                    f"{item.nodeid}: write pytest.mark.{name} into the file, as others are not "
                    "read when such tests are asked for"
                )
        if item.get_closest_marker("serial") and not item.get_closest_marker("slow"):
            raise pytest.UsageError(
                f"{item.nodeid}: mark it slow, too: make test runs none that is serial"
            )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files unread that hold no test that is asked for: reading all takes longer than some
    parts of the suite. With fresh examples only files are read that use Hypothesis."""
    needed = [f"mark.{name}" for name in _WRITTEN_OUT if name in _needed_marks(config)]
    if _PROFILE == "fresh":
        needed.append("from hypothesis")
    if not needed or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    return None if all(words in text for words in needed) else True


def _needed_marks(config: pytest.Config) -> set[str]:
    """Marks without which ``-m`` selects no test, such as ``serial`` in ``slow and serial``."""
    return set(config.getoption("markexpr").split(" and "))


def _repeating_command(seed: str, failed: Iterable[str]) -> str:
    """What a shell is given to run failed tests with the same examples again."""
    times = os.environ.get(EXAMPLES_VARIABLE)
    command = f"{EXAMPLES_VARIABLE}={times} " if times else ""
    command += f"make fresh SEED={seed}"
    # All parameters of a test: brackets and what is between them mean something to a shell.
    tests = list(dict.fromkeys(name.partition("[")[0] for name in failed))
    return f"{command} ARGS='{' '.join(tests)}'" if len(tests) <= _REPEATED_MAX else command


@pytest.hookimpl(wrapper=True, tryfirst=True)  # around the summary, so that this line is the last
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    yield
    seed = session.config.getoption("--hypothesis-seed")
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if _PROFILE != "fresh" or seed is None or reporter is None:
        return
    reports = reporter.stats.get("failed", []) + reporter.stats.get("error", [])
    if reports:
        reporter.write_line(
            f"to repeat it: {_repeating_command(seed, [report.nodeid for report in reports])}"
        )


def _skips_fail() -> bool:
    return os.environ.get("FAKEKAFKA_NO_SKIP") == "1"


def _fail_instead_of_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not _skips_fail() or not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = (
        f"{report.nodeid}: nothing may be skipped here (FAKEKAFKA_NO_SKIP=1): {reason}"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _fail_instead_of_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _fail_instead_of_skip(report)
    return report
