"""pyright knows the types of everything in the shipped modules."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from fakekafka.tests.support.paths import ROOT, own_programs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]  # a first run reads all that is imported


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with the package as installed, since pyright follows no import hook."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for package in project["tool"]["setuptools"]["packages"]:
        folder = tmp_path.joinpath(*package.split("."))
        folder.mkdir(parents=True, exist_ok=True)
        for path in ROOT.joinpath(*package.split(".")[1:]).glob("*.py"):
            shutil.copy(path, folder)
    shutil.copy(ROOT / "py.typed", tmp_path / "fakekafka")
    return tmp_path


@pytest.mark.skipif(not shutil.which("node"), reason="pyright runs on Node, which is not here")
def test_the_type_of_everything_is_known(installed: Path) -> None:
    """A checker infers little of an installed package: an unknown type is ``Any`` to its users."""
    environment = {**os.environ, **own_programs(), "PYTHONPATH": str(installed)}
    command = [sys.executable, "-m", "pyright", "--outputjson", "--ignoreexternal"]
    done = subprocess.run(
        [*command, "--verifytypes", "fakekafka"],
        capture_output=True,
        text=True,
        cwd=installed,
        env=environment,
    )
    completeness = json.loads(done.stdout)["typeCompleteness"]
    symbols = completeness["symbols"]
    assert len(symbols) > 10_000
    causes = {
        symbol["name"]: found["message"]
        for symbol in symbols
        for found in symbol["diagnostics"]
        if not symbol["isTypeKnown"] and "partially unknown" not in found["message"]
    }
    assert causes == {}
    assert [symbol["name"] for symbol in symbols if not symbol["isTypeKnown"]] == []
    assert completeness["completenessScore"] == 1
