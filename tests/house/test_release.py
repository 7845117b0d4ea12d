"""``make dist`` and ``make release`` use committed files only, and need a new version."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import date
from pathlib import Path

import pytest
from fakekafka import builds
from fakekafka.building import release
from fakekafka.building.release import ReleaseError
from fakekafka.tests.support.paths import ROOT

pytestmark = pytest.mark.slow

FILES = (*release.VERSIONED, "CHANGELOG.md")


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder and return its output."""
    done = subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with the files that a release changes, and one fragment."""
    root = tmp_path / "checkout"
    (root / "changelog.d").mkdir(parents=True)
    for name in FILES:
        shutil.copy(ROOT / name, root / name)
    (root / "changelog.d" / "+elections.fix.md").write_text("An election ends.\n")
    (root / ".gitignore").write_text("build/\n")
    git(root, "init", "--quiet")
    git(root, "config", "user.name", "fakekafka contributors")
    git(root, "config", "user.email", "contributors@example.org")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "Elections end")
    return root


def test_a_release_gathers_the_fragments_names_its_version_and_is_tagged(checkout: Path) -> None:
    """All places have the version, the fragment is removed, and everything is committed."""
    release.prepare(checkout, "7.8.9")
    assert release.versions(checkout) == {
        "version.py": ["7.8.9"],
        "pyproject.toml": ["7.8.9", "7.8.9"],
        "CITATION.cff": ["7.8.9"],
    }
    section = (checkout / "CHANGELOG.md").read_text().partition("## 7.8.9 (")[2]
    assert "An election ends." in section.partition("\n## ")[0]
    assert list(checkout.glob("changelog.d/*")) == []
    assert git(checkout, "tag", "--points-at", "HEAD") == "v7.8.9"
    assert git(checkout, "status", "--porcelain") == ""


def test_a_section_that_was_written_by_hand_gets_its_date(checkout: Path) -> None:
    """A section with a narrative has to include all fragments first."""
    changelog = checkout / "CHANGELOG.md"
    changelog.write_text("# Changelog\n\n## 7.8.9 (unreleased)\n\nA story.\n")
    git(checkout, "commit", "--all", "--quiet", "-m", "A story")
    with pytest.raises(
        ReleaseError, match=r"work \+elections\.fix\.md into the section of 7\.8\.9"
    ):
        release.prepare(checkout, "7.8.9")
    git(checkout, "rm", "--quiet", "changelog.d/+elections.fix.md")
    git(checkout, "commit", "--quiet", "-m", "Told")
    release.prepare(checkout, "7.8.9")
    assert changelog.read_text() == f"# Changelog\n\n## 7.8.9 ({date.today()})\n\nA story.\n"


@pytest.mark.parametrize("version", ["3.9", "v1.0.0", "1.0.0-beta", ""])
def test_an_invalid_version_is_refused(checkout: Path, version: str) -> None:
    """The error shows an example."""
    with pytest.raises(ReleaseError, match=r"is no version; it would be like 0\.3\.0"):
        release.prepare(checkout, version)


def test_a_version_is_released_once(checkout: Path) -> None:
    """A second release of a version is refused, as its tag exists."""
    release.prepare(checkout, "7.8.9")
    with pytest.raises(ReleaseError, match=r"v7\.8\.9 is released already"):
        release.prepare(checkout, "7.8.9")


def test_uncommitted_files_are_named(checkout: Path) -> None:
    """Neither a release nor distributions are made with uncommitted files."""
    (checkout / "notes.txt").write_text("mine")
    with pytest.raises(ReleaseError, match=r"not committed first: notes\.txt"):
        release.prepare(checkout, "7.8.9")
    with pytest.raises(ReleaseError, match=r"not committed first: notes\.txt"):
        release.make_distributions(checkout)


def test_without_a_change_there_is_nothing_to_release(checkout: Path) -> None:
    """A release needs a fragment or a section written by hand."""
    (checkout / "changelog.d" / "+elections.fix.md").unlink()
    git(checkout, "commit", "--all", "--quiet", "-m", "No fragment")
    with pytest.raises(ReleaseError, match="nothing to release"):
        release.prepare(checkout, "7.8.9")


def test_distributions_are_made_of_committed_files_alone(checkout: Path, tmp_path: Path) -> None:
    """Files in ignored folders, such as modules of an earlier build, are left out."""
    (checkout / "build").mkdir()
    (checkout / "build" / "deleted_module.py").write_text("")
    source = release.exported_source(checkout, tmp_path / "export")
    names = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    assert names == {*FILES, ".gitignore", "changelog.d/+elections.fix.md"}


def test_compiled_modules_are_reused_for_the_source_that_they_were_compiled_from(
    checkout: Path, tmp_path: Path
) -> None:
    """The compiled wheel takes the checkout's modules if no source file differs by its digest."""
    source = release.exported_source(checkout, tmp_path / "export")
    assert not release.copy_build(checkout, source)
    compiled = checkout / "compiled"
    compiled.mkdir()
    (compiled / "module.so").write_bytes(b"compiled")
    (compiled / builds.SEEN).write_text("sizes and times of the checkout's files")
    manifest = {"suffix": builds.SUFFIX, "modules": [], "sources": {"version.py": "another"}}
    (compiled / "manifest.json").write_text(json.dumps(manifest))
    assert not release.copy_build(checkout, source)
    assert not (source / "compiled").exists()
    manifest["sources"] = {"version.py": builds.digest(source / "version.py")}
    (compiled / "manifest.json").write_text(json.dumps(manifest))
    assert release.copy_build(checkout, source)
    copied = {path.name for path in (source / "compiled").iterdir()}
    assert copied == {"module.so", "manifest.json"}


def test_all_places_name_one_version() -> None:
    """This checkout has the same version everywhere."""
    assert len({version for found in release.versions(ROOT).values() for version in found}) == 1
