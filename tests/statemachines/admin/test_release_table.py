"""The table of a release's configurations is read on first use."""

from __future__ import annotations

import subprocess
import sys

_TABLES_READ = """
from fakekafka import Simulation
from fakekafka.protocol.release_configs import release_configs
with Simulation(brokers=3) as simulation:
    print(release_configs.cache_info().currsize)
    simulation.create_topic("plain")
    print(release_configs.cache_info().currsize)
"""


def test_a_start_reads_no_table() -> None:
    """It has hundreds of lines, which would slow down the start of every process."""
    command = [sys.executable, "-c", _TABLES_READ]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)
    assert done.stdout.split() == ["0", "1"]
