"""What a type checker says of programs that use the public face wrongly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fakekafka.tests.support.paths import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]  # a first run reads the whole package

MISUSES = {
    "from fakekafka import Clustr": 'has no attribute "Clustr"',
    "fakekafka.Cluster(broker=3)": 'Unexpected keyword argument "broker"',
    "fakekafka.Simulation(seed='1')": 'Argument "seed" to "Simulation" has incompatible type',
    "fakekafka.Cluster().produce(b'orders', b'x')": 'Argument 1 to "produce"',
    "fakekafka.Cluster().broker(1).kil()": 'has no attribute "kil"',
}


def test_misuses_are_errors_to_mypy(tmp_path: Path) -> None:
    """Each on its line, and nothing else is: names that are loaded late have their types, too."""
    lines = ["import fakekafka", "with fakekafka.Cluster(brokers=3) as cluster:"]
    lines += ["    cluster.broker(1).kill()", *MISUSES]
    program = tmp_path / "program.py"
    program.write_text("\n".join(lines) + "\n")
    settings = tmp_path / "mypy.ini"
    settings.write_text(f"[mypy]\nstrict = True\nmypy_path = {ROOT / '.venv' / 'src'}\n")
    command = [sys.executable, "-m", "mypy", "--config-file", str(settings), str(program)]
    command += ["--cache-dir", str(ROOT / ".mypy_cache"), "--follow-imports", "silent"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    told = [line for line in done.stdout.splitlines() if line.startswith("program.py:")]
    said: dict[int, str] = {}
    for line in told:
        number = int(line.split(":")[1])
        said[number] = said.get(number, "") + line
    assert sorted(said) == [4 + number for number in range(len(MISUSES))], done.stdout
    for number, words in enumerate(MISUSES.values()):
        assert words in said[4 + number]
