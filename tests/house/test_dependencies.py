"""The requirements in pyproject.toml are used and pinned."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import distributions

import pytest
from fakekafka.tests.support.paths import ROOT
from packaging.specifiers import SpecifierSet

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IMPORT = re.compile(r"^\s*(?:from|import) (\w+)", re.MULTILINE)
IMPORTED_AS = {
    "PyJWT": "jwt",
    "confluent-kafka": "confluent_kafka",
    "opentelemetry-proto": "opentelemetry",
    "time-machine": "time_machine",
}
NOT_IMPORTED_HERE = {"pandas": "pyspark imports it for tables of Arrow"}


def _asked_for() -> list[str]:
    """Return the names of the requirements of the package and of its users' extras."""
    extras = PROJECT["optional-dependencies"]
    texts = [
        *PROJECT["dependencies"],
        *(t for name in extras if name != "dev" for t in extras[name]),
    ]
    return [re.split(r"[^\w-]", text, maxsplit=1)[0] for text in texts]


@pytest.mark.parametrize("name", _asked_for())
def test_a_dependency_is_imported(name: str) -> None:
    """An installation contains no package that is not used."""
    folders = {path.parent for path in ROOT.glob("*/__init__.py")}
    shipped = [path for folder in folders for path in folder.rglob("*.py")]
    imported = {
        found
        for path in shipped
        if path.relative_to(ROOT).parts[0] not in ("tests", "benchmarks", "build")
        for found in IMPORT.findall(path.read_text(encoding="utf-8"))
    }
    assert (IMPORTED_AS.get(name, name) in imported) != (name in NOT_IMPORTED_HERE)


def _normal(name: str) -> str:
    """Spell a name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_constraints_name_everything_that_is_installed() -> None:
    """A later installation gets the tested releases of all packages, also of indirect
    requirements.
    """
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {_normal(line.partition("==")[0]) for line in lines if "==" in line}
    installed = {_normal(found.metadata["Name"]) for found in distributions()}
    assert installed - pinned - {"fakekafka", "pip"} == set()


def test_installed_packages_support_the_oldest_supported_python() -> None:
    """This includes the first release of that Python: Debian 12 has 3.11.2."""
    oldest = PROJECT["requires-python"].removeprefix(">=") + ".0"
    asks = {
        found.metadata["Name"]: SpecifierSet(found.metadata["Requires-Python"] or "")
        for found in distributions()
    }
    assert {name: str(asked) for name, asked in asks.items() if oldest not in asked} == {}
