"""The errors of type checkers in programs that misuse the public API."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fakekafka.tests.support.paths import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]  # a first run reads the whole package

MISUSES = {
    "from fakekafka import Clustr": ('has no attribute "Clustr"', '"Clustr" is unknown'),
    "fakekafka.Cluster(broker=3)": ('keyword argument "broker"', 'No parameter named "broker"'),
    "fakekafka.Simulation(seed='1')": ('Argument "seed" to "Simulation"', 'parameter "seed"'),
    "fakekafka.Cluster().produce(b'orders', b'x')": ('Argument 1 to "produce"', "parameter "),
    "fakekafka.Cluster().ask(1, 'Metadata')": ('Argument 2 to "ask"', 'parameter "request"'),
    "fakekafka.Cluster().broker(1).kil()": ('has no attribute "kil"', 'access attribute "kil"'),
    "fakekafka.Simulation().producer(linger=5)": ('did you mean "linger_ms"', 'named "linger"'),
    # A name that goes, from the class that has it.
    "fakekafka.Simulation().group_consumer('g', ['t']).rebalances[0].at_ms": (
        "at_ms is called time_ms now",
        "at_ms is called time_ms now",
    ),
}
"""Each misuse with words of the errors of mypy and of pyright."""
RIGHT = """import fakekafka
from fakekafka.protocol import data
with fakekafka.Cluster(brokers=3) as cluster:
    cluster.broker(1).kill()
    names: list[str | None] = [t.name for t in cluster.ask(1, data.MetadataRequest(None)).topics]
    taken: data.ProduceResponse | None = cluster.ask(1, data.ProduceRequest(0, 1000, ()))
    first: bytes | None = cluster.records("orders")[0].value
with fakekafka.Simulation(1) as simulation:
    kinds: list[str] = [event.kind for event in simulation.events]
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text("\n".join([RIGHT, *MISUSES]) + "\n")
    return path


def judge(said: dict[int, str], which: int, whole: str) -> None:
    """Check that each misuse is reported on its line, and nothing else: names loaded late have
    types, too.
    """
    first = RIGHT.count("\n") + 2
    assert sorted(said) == [first + number for number in range(len(MISUSES))], whole
    for number, words in enumerate(MISUSES.values()):
        assert words[which] in said[first + number]


def test_misuses_are_errors_to_mypy(program: Path) -> None:
    settings = program.with_name("mypy.ini")
    lines = ["[mypy]", "strict = True", "enable_error_code = deprecated"]
    settings.write_text("\n".join([*lines, f"mypy_path = {ROOT / '.venv' / 'src'}", ""]))
    command = [sys.executable, "-m", "mypy", "--config-file", str(settings), str(program)]
    command += ["--cache-dir", str(ROOT / ".mypy_cache"), "--follow-imports", "silent"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=program.parent)
    said: dict[int, str] = {}
    for line in done.stdout.splitlines():
        if line.startswith("program.py:"):
            number = int(line.split(":")[1])
            said[number] = said.get(number, "") + line
    judge(said, 0, done.stdout)


@pytest.mark.skipif(not shutil.which("node"), reason="pyright runs on Node, which is not here")
def test_misuses_are_errors_to_pyright(program: Path) -> None:
    settings = program.with_name("pyrightconfig.json")
    paths = {"extraPaths": [str(ROOT / ".venv" / "src")]}
    settings.write_text(json.dumps({**paths, "reportDeprecated": "warning"}))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run([*command, "."], capture_output=True, text=True, cwd=program.parent)
    said: dict[int, str] = {}
    for found in json.loads(done.stdout)["generalDiagnostics"]:
        number = found["range"]["start"]["line"] + 1
        said[number] = said.get(number, "") + found["message"]
    judge(said, 1, done.stdout)
