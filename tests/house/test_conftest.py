"""The rules that tests/conftest.py lays on every run."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parent.parent / "conftest.py"
RUN = ("-p", "no:fakekafka", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:xdist")


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """A small suite under a copy of the real conftest."""
    pytester.makeconftest(CONFTEST.read_text(encoding="utf-8"))
    return pytester


def test_messages_are_immutable_in_tests() -> None:
    """A test that changes a message it has sent fails at once."""
    from fakekafka.protocol.values import LeaderAndIsr

    value = LeaderAndIsr(1, 0, (1,), 0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.leader = 2  # type: ignore[misc]
    assert hash(value) == hash(LeaderAndIsr(1, 0, (1,), 0))


def test_messages_are_plain_outside_of_tests() -> None:
    """Nobody pays for freezing in a program: the field is assigned, and nothing is asked for it."""
    script = (
        "from fakekafka.protocol.values import LeaderAndIsr\n"
        "value = LeaderAndIsr(1, 0, (1,), 0)\n"
        "assert type(value).__setattr__ is object.__setattr__\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)


def test_an_early_import_of_the_package_is_refused(
    suite: pytest.Pytester,
) -> None:
    """Loading the package before the conftest, unfrozen, ends the run with the reason."""
    suite.makepyfile(early="import fakekafka.protocol.values")
    suite.makepyfile("def test_nothing(): pass")
    suite.syspathinsert()
    result = suite.runpytest_subprocess(*RUN, "-p", "early")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*was imported before tests/conftest.py could freeze*"])


SKIPPING = """
    import pytest

    @pytest.mark.skip(reason="no java")
    def test_by_mark(): pass

    def test_by_call(): pytest.skip("no chromium")

    @pytest.mark.xfail(strict=True)
    def test_expected_to_fail(): assert False
"""


def test_skips_fail_where_nothing_may_be_skipped(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With FAKEKAFKA_NO_SKIP=1 a skip is a failure that repeats its reason; xfail stays."""
    monkeypatch.setenv("FAKEKAFKA_NO_SKIP", "1")
    suite.makepyfile(SKIPPING)
    result = suite.runpytest_subprocess(*RUN)
    outcomes = result.parseoutcomes()
    assert outcomes.get("skipped", 0) == 0
    assert outcomes["xfailed"] == 1
    assert outcomes.get("failed", 0) + outcomes.get("errors", 0) == 2
    result.stdout.fnmatch_lines_random(["*nothing may be skipped*no java*", "*no chromium*"])


def test_a_module_skipped_as_a_whole_fails_too(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pytest.importorskip` at the top of a file cannot hide the file's tests."""
    monkeypatch.setenv("FAKEKAFKA_NO_SKIP", "1")
    suite.makepyfile("import pytest; pytest.importorskip('no_such_package')")
    result = suite.runpytest_subprocess(*RUN)
    assert result.ret != pytest.ExitCode.OK
    result.stdout.fnmatch_lines_random(["*nothing may be skipped*no_such_package*"])


def test_skips_are_allowed_elsewhere(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the variable a skip stays a skip."""
    monkeypatch.delenv("FAKEKAFKA_NO_SKIP", raising=False)
    suite.makepyfile(SKIPPING)
    suite.runpytest_subprocess(*RUN).assert_outcomes(skipped=2, xfailed=1)
