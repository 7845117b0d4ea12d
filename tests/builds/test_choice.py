"""Choice of the build: the compiled one if it exists and was made of the present source."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fakekafka import builds
from fakekafka.spark_bench.engines.spark_worker import package_zip


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of one module with a compiled build."""
    (tmp_path / "log.py").write_text("offset = 0\n")
    (tmp_path / "compiled").mkdir()
    describe(tmp_path, builds.SUFFIX)
    return tmp_path


def describe(package: Path, suffix: str) -> None:
    sources = {"log.py": builds.digest(package / "log.py")}
    manifest = {"suffix": suffix, "modules": ["fakekafka.log"], "sources": sources}
    (package / "compiled" / "manifest.json").write_text(json.dumps(manifest))


def test_the_compiled_build_runs_while_its_source_is_the_same(package: Path) -> None:
    """The pure build can be requested nevertheless."""
    assert builds.choose(package, "") == ("compiled: 1 modules", ["fakekafka.log"])
    assert builds.choose(package, "compiled") == ("compiled: 1 modules", ["fakekafka.log"])
    assert builds.choose(package, "pure") == ("pure Python", [])


def test_a_stale_build_is_used_in_no_part(package: Path) -> None:
    """One changed file makes the whole build stale, and the version names it."""
    (package / "log.py").write_text("offset = 1\n")
    words = "the compiled build is stale, as log.py changed"
    assert builds.choose(package, "") == (f"pure Python; {words}", [])
    with pytest.raises(ImportError, match=words):
        builds.choose(package, "compiled")


def test_a_source_is_compared_again_when_its_size_or_time_changes(package: Path) -> None:
    """A changed size or time alone is enough; a changed time of equal source is harmless."""
    assert builds.choose(package, "compiled")[1] == ["fakekafka.log"]
    assert (package / "compiled" / builds.SEEN).exists()
    log = package / "log.py"
    os.utime(log, ns=(1, 1))
    assert builds.choose(package, "compiled")[1] == ["fakekafka.log"]
    log.write_text("offset = 1\n")
    assert builds.choose(package, "")[1] == []
    log.write_text("offset = 0\n")
    assert builds.choose(package, "compiled")[1] == ["fakekafka.log"]


def test_a_deleted_source_makes_a_build_stale(package: Path) -> None:
    """Otherwise the deleted module would still be importable."""
    (package / "log.py").unlink()
    assert builds.choose(package, "")[1] == []


def test_the_build_of_another_python_is_not_used(package: Path) -> None:
    """A folder that several Python versions share has one build."""
    describe(package, ".of-another.so")
    words = "pure Python; the compiled build is for .of-another.so"
    assert builds.choose(package, "") == (words, [])


def test_without_a_compiled_build_the_source_runs(tmp_path: Path) -> None:
    """Requesting the compiled build is an error then."""
    assert builds.choose(tmp_path, "") == ("pure Python", [])
    with pytest.raises(ImportError, match="there is no compiled build"):
        builds.choose(tmp_path, "compiled")
    with pytest.raises(ImportError, match="'fast'; it can be pure or compiled"):
        builds.choose(tmp_path, "fast")


def test_in_an_archive_the_source_runs(tmp_path: Path) -> None:
    """A Spark worker inherits the driver's requested build, but has only the source."""
    archive = tmp_path / "fakekafka.zip"
    archive.write_bytes(package_zip())
    ask = f"import sys; sys.path.insert(0, {str(archive)!r}); from fakekafka import builds; "
    done = subprocess.run(
        [sys.executable, "-c", ask + "print(builds.told_version(), builds.__file__)"],
        cwd=tmp_path,
        env={**os.environ, builds.VARIABLE: "compiled"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert "(pure Python; what is imported from an archive" in done.stdout
    assert str(archive) in done.stdout


def test_only_compiled_modules_are_found_in_the_build(tmp_path: Path) -> None:
    """Other modules are found as usual."""
    modules = builds.CompiledModules(tmp_path, ["fakekafka.log"])
    found = modules.find_spec("fakekafka.log", None)
    assert found is not None
    assert found.origin == str(tmp_path / f"fakekafka.log{builds.SUFFIX}")
    assert modules.find_spec("fakekafka.other", None) is None
