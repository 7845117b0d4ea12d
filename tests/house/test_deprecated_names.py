"""Deprecated public names announce their removal, and are removed by then."""

from __future__ import annotations

import re

from fakekafka.tests.support.imports import in_package
from fakekafka.tests.support.paths import ROOT
from fakekafka.version import __version__

ENDING = "goes in fakekafka "
REASON = re.compile(r"\S+ is called \S+ now; the old name goes in fakekafka (\d+)\.(\d+)")


def wrong_reasons(texts: dict[str, str], version: str) -> list[str]:
    """Return warnings that do not name the successor and the release of removal, or whose release
    has come.
    """
    major, minor = map(int, version.split(".")[:2])
    wrong = []
    for path, text in texts.items():
        for line in text.splitlines() if in_package(path) else ():
            found = REASON.search(line)
            if ENDING in line and (not found or (int(found[1]), int(found[2])) <= (major, minor)):
                wrong.append(line.strip())
    return wrong


def test_an_old_name_is_removed_in_the_announced_release(texts: dict[str, str]) -> None:
    """Until then the warning names the successor."""
    assert wrong_reasons(texts, __version__) == []


def test_an_old_name_that_stayed_too_long_is_found() -> None:
    """It is found from the announced release on, and so is a name without a successor."""
    late = '"old is called new now; the old name goes in fakekafka 0.4"'
    vague = '"old goes in fakekafka 0.9"'
    texts = {"testing/a.py": f"{late}\n{vague}\n", "tests/b.py": late}
    assert wrong_reasons(texts, "0.3.2") == [vague]
    assert wrong_reasons(texts, "0.4.0") == wrong_reasons(texts, "1.0.0") == [late, vague]


def test_the_reference_of_the_api_states_the_deprecation_policy() -> None:
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    assert "the old name keeps working for two minor releases" in page
