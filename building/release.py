"""``make dist`` and ``make release``: build the distributions from committed files alone.

``dist`` builds the source distribution and both wheels from a copy of the last commit, so that
no other file of the checkout gets into them, except modules compiled from the same source. It
installs each in an empty environment and starts a cluster there. ``release`` makes the commit of
the new version first: it collects the fragments into the changelog, writes the version into its
files, commits and tags.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from fakekafka import builds
from fakekafka.building.archives import unpack

ROOT = Path(__file__).resolve().parent.parent
MEGABYTE = 10**6
INSTALLED_MB_MAX = {"pure": 40, "compiled": 70, "source": 40}
"""Maximum size of an installation with its dependencies, in megabytes, by kind of distribution."""
VERSION = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")
VERSIONED = {
    "version.py": r'^__version__ = "(.*)"$',
    "pyproject.toml": r'^version = "(.*)"',
    "CITATION.cff": r"^version: (.*)$",
}
"""Files that name the version, with a pattern that matches it."""


class ReleaseError(Exception):
    """Raised if a release cannot be made; the message says why, and what would be right."""


@dataclass(frozen=True)
class Tried:
    """A distribution that was installed in an empty environment."""

    file: Path
    kind: str
    """One of pure, compiled and source."""
    installed_bytes: int
    said: str
    """Version and output of the trial program."""


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise ReleaseError(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


def require_clean_tree(root: Path) -> None:
    """Raise ``ReleaseError`` if the checkout has uncommitted changes."""
    changed = _git(root, "status", "--porcelain").splitlines()
    if changed:
        names = ", ".join(line[3:] for line in changed[:5])
        more = f" and {len(changed) - 5} more" if len(changed) > 5 else ""
        raise ReleaseError(f"commit or remove what is not committed first: {names}{more}")


def exported_source(root: Path, target: Path) -> Path:
    """Copy the files of the last commit below ``target``; returns their folder."""
    source = target / "fakekafka"
    source.mkdir(parents=True)
    archive = target / "source.tar"
    _git(root, "archive", "--format=tar", f"--output={archive}", "HEAD")
    with tarfile.open(archive) as files:
        unpack(files, source)
    archive.unlink()
    return source


def copy_build(root: Path, source: Path) -> bool:
    """Copy the checkout's compiled modules to a copy of its source, and return True, if their
    manifest says that they were compiled from this source: compiling again takes minutes."""
    manifest = builds.read_manifest(root / "compiled")
    if manifest is None or builds.find_problem(source, manifest):
        return False
    ignored = shutil.ignore_patterns(builds.SEEN)
    shutil.copytree(root / "compiled", source / "compiled", ignore=ignored)
    return True


def build(source: Path, target: Path, checkout: Path) -> list[Path]:
    """Build the source distribution, the pure wheel and the compiled wheel."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    command = (sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target))
    for options in (("--sdist",), ("--wheel",)):
        _run([*command, *options, str(source)], source)
    copy_build(checkout, source)
    _run([*command, "--wheel", "-C", "compiled=yes", str(source)], source)
    files = sorted(target.iterdir())
    if len(files) != 3:
        raise ReleaseError(f"three distributions were to be built, not {[f.name for f in files]}")
    return files


def check(files: Sequence[Path]) -> None:
    """Check the metadata and the description with twine."""
    _run([sys.executable, "-m", "twine", "check", "--strict", *map(str, files)], ROOT)


def try_out(file: Path) -> Tried:
    """Install a distribution and its dependencies in an empty environment; start a cluster there.

    Raises ``ReleaseError`` if the installation is too large.
    """
    kind = "source" if file.suffix == ".gz" else "pure" if "none-any" in file.name else "compiled"
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        _run([sys.executable, "-m", "venv", "--without-pip", str(where / "venv")], where)
        scripts = where / "venv" / ("Scripts" if os.name == "nt" else "bin")
        inside = str(scripts / "python")
        pip = (sys.executable, "-m", "pip", "--python", inside, "--disable-pip-version-check")
        _run([*pip, "install", "--quiet", str(file)], where)
        packages = Path(
            _run([inside, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], where)
        )
        size = sum(f.stat().st_size for f in packages.rglob("*") if f.is_file())
        program = str(shutil.copy(ROOT / "building" / "try_out.py", where))
        said = _run([inside, program], where)
        version = _run([str(scripts / "fakekafka"), "--version"], where)
        _run([str(scripts / "fakekafka"), "demo", "--runs", "2"], where)
    if size > INSTALLED_MB_MAX[kind] * MEGABYTE:
        raise ReleaseError(
            f"{file.name} takes {size / MEGABYTE:.1f} MB with its dependencies; "
            f"the limit is {INSTALLED_MB_MAX[kind]} MB"
        )
    return Tried(file, kind, size, f"{version}: {said}")


def _run(command: Sequence[str], folder: Path) -> str:
    """Return what a command prints; ``ReleaseError`` with the end of its output if it fails."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=_outside_the_checkout()
    )
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
        raise ReleaseError(f"{' '.join(command)} ended with {done.returncode}:\n{last}")
    return done.stdout.strip()


def _outside_the_checkout() -> dict[str, str]:
    """Return the environment without the variables through which a program finds this checkout."""
    return {k: v for k, v in os.environ.items() if k not in ("FAKEKAFKA_BUILD", "PYTHONPATH")}


def make_distributions(root: Path) -> list[Tried]:
    """Build all distributions into ``dist``, check them and try them out."""
    require_clean_tree(root)
    with tempfile.TemporaryDirectory() as folder:
        files = build(exported_source(root, Path(folder)), root / "dist", root)
    check(files)
    return [try_out(file) for file in files]


def versions(root: Path) -> dict[str, list[str]]:
    """Return the versions that each file in ``VERSIONED`` names."""
    return {
        name: re.findall(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        for name, pattern in VERSIONED.items()
    }


def write_version(root: Path, version: str) -> None:
    """Write the version into every file that names it."""
    for name, pattern in VERSIONED.items():
        path = root / name
        text = path.read_text(encoding="utf-8")
        changed = re.sub(
            pattern, lambda found: found[0].replace(found[1], version), text, flags=re.MULTILINE
        )
        path.write_text(changed, encoding="utf-8")


def prepare(root: Path, version: str) -> None:
    """Write the changelog and the version, commit both, and tag the commit.

    Raises ``ReleaseError`` for an invalid version, for one that is already released, for a
    checkout that is not clean, and if no fragment describes a change.
    """
    if not VERSION.fullmatch(version):
        raise ReleaseError(f"{version!r} is no version; it would be like 0.3.0 or 0.3.0rc1")
    require_clean_tree(root)
    tag = f"v{version}"
    if tag in _git(root, "tag", "--list").splitlines():
        raise ReleaseError(f"{tag} is released already; choose another version")
    fragments = sorted(path.name for path in (root / "changelog.d").glob("+*.md"))
    changelog = root / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    by_hand = f"## {version} (unreleased)"
    if by_hand in text:
        if fragments:
            raise ReleaseError(f"work {', '.join(fragments)} into the section of {version} first")
        today = f"## {version} ({date.today()})"
        changelog.write_text(text.replace(by_hand, today), encoding="utf-8")
    elif fragments:
        towncrier = (sys.executable, "-m", "towncrier", "build", "--yes", "--version", version)
        _run([*towncrier, "--dir", str(root)], root)
    else:
        raise ReleaseError("changelog.d has no fragment: there is nothing to release")
    write_version(root, version)
    _git(root, "add", "--all")
    _git(root, "commit", "--allow-empty", "--quiet", "-m", f"Release {version}")
    _git(root, "tag", "--annotate", "-m", f"fakekafka {version}", tag)


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Make the distributions; given a version, commit and tag that release first."""
    parser = argparse.ArgumentParser(description="Build what a stranger installs, and try it out.")
    parser.add_argument("--version", help="release this version")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.version is not None:
            prepare(root, chosen.version)
            print(f"committed and tagged v{chosen.version}; pushing the tag publishes it")
        for tried in make_distributions(root):
            size = tried.installed_bytes / MEGABYTE
            print(f"dist/{tried.file.name}  {size:.1f} MB installed  {tried.said}")
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
