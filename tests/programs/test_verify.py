"""Verification of runs in other processes: by scripts, by pytest, and of all kinds of programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fakekafka.tests.programs.kinds.comparing import compare
from fakekafka.tests.programs.kinds.runs import KINDS
from fakekafka.tests.support.pytest_suites import run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def python(script: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    environment.pop("FAKEKAFKA_PINNED", None)
    return subprocess.run(
        [sys.executable, str(script), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


SCRIPT = """
import asyncio, os, random, sys
import fakekafka

async def the_same(count):
    for _ in range(count):
        await asyncio.sleep(random.random())
    return count

async def texts():
    for name in {"alpha", "beta", "gamma", "delta", "epsilon", "zeta"}:
        await asyncio.sleep(len(name))

async def addresses():
    things = {object(): number for number in range(50)}
    for thing in set(things):
        await asyncio.sleep(things[thing] / 100)

async def process():
    await asyncio.sleep(os.getpid() / 1e5)

def fault(simulation):
    simulation.broker(1).kill()

if __name__ == "__main__":
    assert fakekafka.simulate(the_same, 5, brokers=1, faults={1: fault}, verify=True) == 5
    for main in (texts, addresses, process):
        try:
            fakekafka.simulate(main, brokers=1, verify=True)
        except fakekafka.RunsDiffer as error:
            print(str(error).replace(chr(10), " "))
"""


def test_a_script_verifies_its_program(tmp_path: Path) -> None:
    """The error names the line and says whether texts, an address or the process decides."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = python(script, PYTHONHASHSEED="3")
    assert done.returncode == 0, done.stderr
    texts, addresses, process = done.stdout.splitlines()
    for told, line in ((texts, 12), (addresses, 17), (process, 20)):
        assert f"{script}:{line} in " in told
        assert "hash seed 3: " in told
        assert "hash seed 4: " in told
    assert "the order of a set of strings is the reason" in texts
    assert "it may be an address" in addresses
    assert "a process id" in process


def test_a_script_that_runs_when_it_is_imported_is_reported(tmp_path: Path) -> None:
    """The other process imports the script to find main, and would run it again."""
    script = tmp_path / "script.py"
    script.write_text(
        "import asyncio\nimport fakekafka\nasync def main():\n    await asyncio.sleep(1)\n"
        "fakekafka.simulate(main, brokers=1, verify=True)\n"
    )
    assert "write it under `if __name__ == '__main__':`" in python(script).stderr


def test_a_pinned_script_has_the_same_orders_in_every_process(tmp_path: Path) -> None:
    """Under Python 3.11 the hash of None is equal, too, as its address is fixed on Linux."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys, fakekafka\nprint('begins', flush=True)\nfakekafka.pin_hash_seed(6)\n"
        "print(hash('a'), hash(None), sys.argv[1:], os.environ['PYTHONHASHSEED'])\n"
    )
    printed = [
        python(script, "an argument", PYTHONHASHSEED=seed).stdout for seed in ("1", "random")
    ]
    assert printed[0] == printed[1]
    assert printed[0].splitlines()[:-1] == ["begins", "begins"]
    assert printed[0].endswith(" ['an argument'] 6\n")


SUITE = """
import asyncio, os, random
import pytest

pytestmark = [pytest.mark.kafka(brokers=1), pytest.mark.kafka_program]

@pytest.mark.kafka(seeds=[3])
@pytest.mark.kafka_program(verify=True)
async def test_the_same(kafka_simulation, tmp_path):
    await asyncio.sleep(random.random())

@pytest.mark.kafka_program(verify=True)
async def test_texts(kafka_simulation):
    for name in {"alpha", "beta", "gamma", "delta", "epsilon", "zeta"}:
        kafka_simulation.note("saw", name=name)

async def nap():
    await asyncio.sleep(os.getpid() / 1e5)

def test_process(kafka_simulation):
    kafka_simulation.program(nap).result()

async def test_first_process_only(kafka_simulation):
    assert os.environ.get("SECOND") is None

@pytest.mark.kafka_program(verify=False)
async def test_not_verified(kafka_simulation):
    await asyncio.sleep(os.getpid() / 1e5)

@pytest.fixture(autouse=True)
def second(monkeypatch):
    if "FAKEKAFKA_VERIFIED" in os.environ:
        monkeypatch.setenv("SECOND", "1")
"""


def test_pytest_verifies_tests_with_the_mark(suite: pytest.Pytester) -> None:
    """Tests whose mark asks for it are verified, and others pass in spite of a difference."""
    result = run(suite, SUITE)
    result.assert_outcomes(passed=4, failed=1)
    text = "\n".join(result.outlines)
    assert "in test_texts" in text
    assert "the order of a set of strings is the reason" in text


def test_pytest_verifies_all_programs_if_an_option_says_so(suite: pytest.Pytester) -> None:
    """All programs are verified except those whose mark says otherwise."""
    result = run(suite, SUITE, "--kafka-verify", "-k", "not texts")
    result.assert_outcomes(passed=2, failed=2)
    text = "\n".join(result.outlines)
    assert "in nap" in text
    assert "test_first_process_only passes here, and fails in another process" in text
    assert "assert '1' is None" in text


def test_pytest_runs_under_the_hash_seed_of_its_ini_file(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a hash seed of the ini file, texts have the same order in the second process."""
    monkeypatch.delenv("FAKEKAFKA_PINNED", raising=False)
    suite.makeini("[pytest]\naddopts = -p no:cacheprovider\nkafka_hash_seed = 11\n")
    suite.makepyfile(
        SUITE + "\ndef test_seed():\n    assert os.environ['PYTHONHASHSEED'] == '11'\n"
    )
    result = suite.runpytest_subprocess("-k", "test_texts or test_seed", "-v")
    result.assert_outcomes(passed=2)


def test_every_kind_of_program_is_in_the_table() -> None:
    folder = Path(__file__).parent / "kinds"
    assert set(KINDS) == {path.stem for path in folder.glob("*.py")} - {
        "__init__", "__main__", "comparing", "runs",
    }  # fmt: skip
    assert len(KINDS) == 12


def test_programs_of_all_kinds_run_equally_in_every_process() -> None:
    """A few seeds run in a few processes; `make sameness` runs more."""
    outcomes = compare(sys.executable, seeds=3, processes=3)
    assert outcomes.runs == 12 * 3 * 3
    assert outcomes.differing == []
    assert outcomes.failures == []
