"""Tests that a client's packages leave out: they come from a clone of its repository."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path

from fakekafka.building.archives import unpack

from .machine import SuiteError, cache_folder
from .suite import Suite

VARIABLE = "FAKEKAFKA_CHECKOUTS"
"""Names a folder with clones, each under the name of its repository."""


def is_there(suite: Suite) -> bool:
    """Return whether a suite needs no clone, or has one."""
    return not suite.repository or _clone(suite).exists()


def _clone(suite: Suite) -> Path:
    return Path(os.environ.get(VARIABLE, "")) / suite.repository.rpartition("/")[2]


def source(suite: Suite, *paths: str) -> Path:
    """Return a fresh folder with what a release's tag has at some paths, or with all of it."""
    tag = f"v{suite.version}"
    clone = _clone(suite)
    if VARIABLE not in os.environ or not clone.exists():
        name = suite.repository.rpartition("/")[2]
        raise SuiteError(
            f"its tests are in no package: {VARIABLE} has to name a folder in which {name} is a "
            f"clone of github.com/{suite.repository} with the tag {tag}"
        )
    command = ["git", "-C", str(clone), "archive", "--format=tar", tag, *paths]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise SuiteError(f"{clone} has no {tag}: {done.stderr.decode(errors='replace').strip()}")
    folder = cache_folder(f"{suite.name}-{suite.version}") / "source"
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as packed:
        unpack(packed, folder)
    return folder
