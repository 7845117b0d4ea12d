"""``make wheel``: both wheels are installed in empty environments, and each starts a cluster."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pykka
import pytest
from fakekafka import builds
from fakekafka.building.wheels import main
from fakekafka.tests.support.paths import NOT_SOURCE, ROOT

pytestmark = [pytest.mark.compiled, pytest.mark.slow]

START = """
import fakekafka
with fakekafka.Cluster(brokers=3) as cluster:
    cluster.create_topic("orders", partitions=1, replication_factor=3)
    cluster.produce("orders", [b"one", b"two"])
    print(fakekafka.builds.told_version(), fakekafka.__file__)
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Both wheels, built in a copy of the tree."""
    copy = tmp_path_factory.mktemp("source") / "fakekafka"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*NOT_SOURCE))
    assert main(copy) == 0
    assert list(copy.glob("*.egg-info")) == []  # a second installation, for whoever runs there
    return sorted((copy / "dist").iterdir(), key=lambda wheel: "none-any" not in wheel.name)


def said_after_installation(wheel: Path, where: Path) -> str:
    """Return the output of a cluster started by the wheel in an environment of its own."""
    venv.create(where / "venv", with_pip=False)
    python = where / "venv" / "bin" / "python"
    options = ("--quiet", "--no-deps", "--no-index", "--disable-pip-version-check")
    install = (sys.executable, "-m", "pip", "--python", python, "install", *options, wheel)
    subprocess.run(install, check=True, cwd=where)
    # The libraries come from this environment: nothing is downloaded.
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = subprocess.check_output([python, "-c", ask], text=True).strip()
    (Path(packages) / "libraries.pth").write_text(str(Path(pykka.__file__).parents[1]))
    environment = {k: v for k, v in os.environ.items() if k != builds.VARIABLE}
    return subprocess.run(
        [python, "-c", START],
        cwd=where, env=environment, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip


def test_each_wheel_starts_a_cluster(wheels: list[Path], tmp_path: Path) -> None:
    """One wheel is for every platform, the other for this one, and each says which it is."""
    assert [wheel.name.endswith("-py3-none-any.whl") for wheel in wheels] == [True, False]
    told = []
    for number, wheel in enumerate(wheels):
        where = tmp_path / str(number)
        where.mkdir()
        told.append(said_after_installation(wheel, where))
        assert str(where) in told[-1]
    assert "(pure Python)" in told[0]
    assert f"({builds.running})" in told[1]
