"""``async def`` tests with the mark ``kafka_program``, run in suites of their own."""

from __future__ import annotations

import re

import pytest
from fakekafka.tests.support.pytest_suites import run

SUITE = """
import asyncio
import random
import pytest

pytestmark = [pytest.mark.kafka(topics={"orders": 1}), pytest.mark.kafka_program]

async def test_of_an_hour(kafka_simulation, tmp_path):
    assert tmp_path.is_dir()
    await asyncio.sleep(3599)
    assert kafka_simulation.now_ms > 3_599_000

class TestsOfAClass:
    @pytest.mark.parametrize("number", [1, 2])
    async def test_method(self, number):
        reader, writer = await asyncio.open_connection("kafka", 9092)
        writer.close()
        assert number == 1

def test_without_await(kafka_simulation):
    assert kafka_simulation.topics() == ["orders"]
"""


def test_an_async_test_runs_in_virtual_time(suite: pytest.Pytester) -> None:
    """Async tests take fixtures and parameters and run in virtual time, beside other tests."""
    result = run(suite, SUITE)
    result.assert_outcomes(passed=3, failed=1)
    text = "\n".join(result.outlines)
    assert "assert 2 == 1" in text
    assert re.search(r"raised in test, seed 0, at 0\.0\d+ virtual s", text)
    assert "reproduce it with" in text
    assert "::TestsOfAClass::test_method[2]'" in text


def test_the_command_line_sets_the_number_of_seeds(suite: pytest.Pytester) -> None:
    """``--kafka-seeds`` repeats marked tests, and the command to reproduce one contains it."""
    result = run(suite, SUITE, "--kafka-seeds", "3")
    result.assert_outcomes(passed=9, failed=3)
    text = "\n".join(result.outlines)
    assert "seed 2; trace kept" in text
    assert " --kafka-seeds 3 '" in text
    assert "test_method[seed2-2]'" in text


def test_the_old_name_of_the_option_works_with_a_warning(suite: pytest.Pytester) -> None:
    """``--fakekafka-seeds`` still works for two minor releases; ``--kafka-seeds`` overrides it."""
    result = run(suite, SUITE, "--fakekafka-seeds", "2")
    result.assert_outcomes(passed=6, failed=2, warnings=1)
    text = "\n".join(result.outlines)
    assert "DeprecationWarning: --fakekafka-seeds is called --kafka-seeds now" in text
    assert " --fakekafka-seeds 2 '" in text
    both = run(suite, SUITE, "--fakekafka-seeds=3", "--kafka-seeds=1")
    both.assert_outcomes(passed=3, failed=1, warnings=1)


def test_seeds_of_a_mark_override_the_command_line(suite: pytest.Pytester) -> None:
    """Seeds of a mark take precedence over ``--kafka-seeds``, as other arguments of a test do."""
    result = run(
        suite,
        """
        import pytest

        @pytest.mark.kafka(seeds=[7, 9])
        @pytest.mark.kafka_program
        async def test_one(kafka_simulation):
            assert kafka_simulation.seed in (7, 9)
        """,
        "--kafka-seeds=5",
    )
    result.assert_outcomes(passed=2)


def test_a_test_that_exceeds_its_timeout_fails_with_a_message(suite: pytest.Pytester) -> None:
    """A test that exceeds the mark's ``timeout_s``, in virtual seconds, fails with a message."""
    result = run(
        suite,
        """
        import asyncio
        import pytest

        @pytest.mark.kafka_program(timeout_s=5)
        async def test_one():
            await asyncio.sleep(10)
        """,
    )
    result.assert_outcomes(failed=1)
    text = "\n".join(result.outlines)
    assert "main_has_ended" in text
    assert "5000 virtual ms" in text


@pytest.mark.parametrize("hash_seed", ["5", None])
def test_a_failed_program_reports_the_hash_seed(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, hash_seed: str | None
) -> None:
    """A failed program reports PYTHONHASHSEED, as the order of its sets depends on it."""
    if hash_seed is None:
        monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    else:
        monkeypatch.setenv("PYTHONHASHSEED", hash_seed)
    result = run(
        suite,
        """
        import pytest

        @pytest.mark.kafka_program
        async def test_program():
            raise ValueError("no bank")

        def test_without_programs(kafka_simulation):
            raise ValueError("no bank")
        """,
    )
    text = "\n".join(result.outlines)
    if hash_seed is None:
        assert text.count("PYTHONHASHSEED was not set") == 1
    else:
        assert re.search(r"^    PYTHONHASHSEED=5 pytest .+::test_program$", text, re.MULTILINE)
        assert text.count("PYTHONHASHSEED") == 1
