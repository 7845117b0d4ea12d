"""The glossary explains words that the code has, and names the file where each is at home."""

from __future__ import annotations

import re

from fakekafka.tests.support.paths import ROOT

ROW = re.compile(r"^\| \*\*(.+?)\*\* \| (.+) \| `(.+?)` \|$", re.MULTILINE)
PAGE = ROOT / "docs" / "reference" / "glossary.md"
WORDED_OTHERWISE = {
    "derived release": "the behaviour of the others is derived",
    "judged release": "JUDGED",
    "core": "cores",
}
"""Word to how its file has it."""


def test_each_word_of_the_glossary_is_in_the_file_that_it_names() -> None:
    """A word that was renamed leaves the page, or takes its new name."""
    rows = ROW.findall(PAGE.read_text())
    assert len(rows) >= 25
    for word, _, path in rows:
        text = (ROOT / path).read_text().lower()
        assert WORDED_OTHERWISE.get(word, word).lower() in text, f"{word} is not in {path}"


def test_the_words_are_in_order_and_explained_once() -> None:
    """A reader finds them without a search."""
    words = [word for word, _, _ in ROW.findall(PAGE.read_text())]
    assert words == sorted(set(words))
