"""The rules that tests/conftest.py imposes on every run."""

from __future__ import annotations

import dataclasses
import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fakekafka.tests.support.examples import EXAMPLES_VARIABLE, examples
from fakekafka.tests.support.paths import ROOT

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
    """Outside of tests fields are assigned without the cost of a check."""
    script = (
        "from fakekafka.protocol.values import LeaderAndIsr\n"
        "value = LeaderAndIsr(1, 0, (1,), 0)\n"
        "assert type(value).__setattr__ is object.__setattr__\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)


def test_an_early_import_of_the_package_is_refused(suite: pytest.Pytester) -> None:
    """If the package is imported before the conftest could freeze it, the run ends with
    the reason.
    """
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


FAILING = """
    import pytest
    from hypothesis import given, strategies as st

    @given(st.integers())
    def test_small(number): assert number < 1000

    @pytest.mark.parametrize("name", ["a b", "c"])
    def test_other(name): assert name == "c"
"""


@pytest.fixture
def fresh_suite(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A suite that runs with the profile ``fresh``."""
    monkeypatch.setenv("HYPOTHESIS_PROFILE", "fresh")
    monkeypatch.delenv(EXAMPLES_VARIABLE, raising=False)
    return suite


@pytest.mark.slow
def test_fresh_examples_end_with_the_command_that_repeats_a_failure(
    fresh_suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command names the seed, each failed test without its parameters, and the number of
    examples.

    The report also has the example itself, which can be written down as a test.
    """
    monkeypatch.setenv(EXAMPLES_VARIABLE, "3")
    fresh_suite.makepyfile(test_numbers=FAILING)
    result = fresh_suite.runpytest_subprocess(*RUN, "--hypothesis-seed=77")
    assert result.outlines[-1] == (
        f"to repeat it: {EXAMPLES_VARIABLE}=3 make fresh SEED=77 "
        "ARGS='test_numbers.py::test_small test_numbers.py::test_other'"
    )
    result.stdout.fnmatch_lines(["*@reproduce_failure*"])


@pytest.mark.slow
def test_fresh_examples_differ_from_seed_to_seed(fresh_suite: pytest.Pytester) -> None:
    """Two seeds try different numbers, and one seed the same; a passing run prints no command."""
    fresh_suite.makepyfile(
        """
        from hypothesis import given, strategies as st
        tried = []

        @given(st.integers())
        def test_any(number): tried.append(number)

        def test_tell(): print("tried", hash(tuple(tried)))
        """
    )
    found: set[str] = set()
    for seed in ("1", "2", "2"):
        result = fresh_suite.runpytest_subprocess(*RUN, "-s", f"--hypothesis-seed={seed}")
        result.assert_outcomes(passed=2)
        assert "to repeat it" not in result.stdout.str()
        found.update(line for line in result.outlines if "tried" in line)
    assert len(found) == 2


def test_fresh_examples_leave_files_without_hypothesis_unread(fresh_suite: pytest.Pytester) -> None:
    """Reading all files would take longer than the examples."""
    fresh_suite.makepyfile(
        test_examples="from hypothesis import given\ndef test_it(): pass",
        test_broken="raise ValueError",
    )
    fresh_suite.runpytest_subprocess(*RUN).assert_outcomes(passed=1)


def test_every_test_that_draws_examples_has_the_mark(texts: dict[str, str]) -> None:
    """``make fresh`` selects tests by the mark. Hypothesis sets it, except on tests that call it in
    their bodies.
    """
    calling = [
        path
        for path, text in texts.items()
        if path.startswith("tests/")
        and path != "tests/house/test_conftest.py"
        and re.search(r"^ +(@given\(|run_state_machine_as_test\()", text, re.MULTILINE)
    ]
    assert calling != []
    assert [path for path in calling if "@pytest.mark.hypothesis" not in texts[path]] == []


def test_make_fresh_says_its_seed_before_anything_else() -> None:
    """The seed is the given one or a random one; ``oracle-random`` keeps its own default."""
    told = []
    for arguments in (["SEED=77"], [], []):
        done = subprocess.run(
            ["make", "-s", "fresh", "BIN=bin", "STAMP=", *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        told.append(done.stdout.splitlines()[0])
    assert told[0] == "make fresh SEED=77"
    assert all(re.fullmatch(r"make fresh SEED=\d+", line) for line in told)
    assert told[1] != told[2]


@pytest.mark.parametrize(("text", "count"), [(None, 7), ("", 7), ("1", 7), ("100", 700)])
def test_a_variable_multiplies_the_examples(
    text: str | None, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unset or empty variable changes nothing."""
    monkeypatch.delenv(EXAMPLES_VARIABLE, raising=False)
    if text is not None:
        monkeypatch.setenv(EXAMPLES_VARIABLE, text)
    assert examples(7) == count


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "many"])
def test_a_strange_number_of_examples_is_refused(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a run without examples would pass."""
    monkeypatch.setenv(EXAMPLES_VARIABLE, text)
    with pytest.raises(ValueError, match=f"{EXAMPLES_VARIABLE}={text}"):
        examples(7)


PARTS = re.findall(
    r"PURE_TESTS\).* -m '?([^'$]+?)'? \$\(ARGS\)", (ROOT / "Makefile").read_text(encoding="utf-8")
)
"""The selections of ``make test`` and then of ``make test-slow``."""


@pytest.mark.parametrize(
    "marks", [dict(zip(("slow", "clients", "serial"), given, strict=True)) for given in
              itertools.product((False, True), repeat=3)]
)  # fmt: skip
def test_every_test_is_in_one_part_of_the_suite(marks: dict[str, bool]) -> None:
    """This holds for all marks; ``serial`` without ``slow`` is refused."""
    assert len(PARTS) == 4
    chosen = [eval(part, dict(marks)) for part in PARTS]
    assert chosen.count(True) == 1
    assert chosen[0] is not marks["slow"]


@pytest.mark.parametrize(
    ("marks", "told"),
    [
        ("pytest.mark.serial", "*test_marks.py::test_it: mark it slow, too*"),
        ("[getattr(pytest.mark, 'clients')]", "*::test_it: write pytest.mark.clients into*"),
    ],
)
def test_marks_by_which_a_part_would_miss_a_test_are_refused(
    suite: pytest.Pytester, marks: str, told: str
) -> None:
    suite.makepyfile(
        test_marks=f"import pytest\npytestmark = {marks}\ndef test_it(): pass", test_other=""
    )
    result = suite.runpytest_subprocess(*RUN)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([told])


def test_files_without_the_selected_mark_are_not_read(suite: pytest.Pytester) -> None:
    """Reading all files takes longer than the few tests that need the machine to themselves."""
    suite.makepyfile(
        test_alone="import pytest\n@pytest.mark.slow\n@pytest.mark.serial\ndef test_it(): pass",
        test_broken="raise ValueError",
    )
    suite.runpytest_subprocess(*RUN, "-m", "slow and serial").assert_outcomes(passed=1)
    suite.runpytest_subprocess(*RUN, "-m", "slow and not serial").assert_outcomes(errors=1)
