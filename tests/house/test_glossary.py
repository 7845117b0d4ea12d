"""The glossary explains words of the code, and names the file that defines each."""

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
"""The form of a word in its file, if that differs."""


def test_each_word_of_the_glossary_is_in_the_file_that_it_names() -> None:
    """A word that was renamed in the code is renamed on the page, too."""
    rows = ROW.findall(PAGE.read_text())
    assert len(rows) >= 25
    for word, _, path in rows:
        text = (ROOT / path).read_text().lower()
        assert WORDED_OTHERWISE.get(word, word).lower() in text, f"{word} is not in {path}"


def test_the_words_are_in_order_and_explained_once() -> None:
    """The words are sorted, so that a reader can look them up."""
    words = [word for word, _, _ in ROW.findall(PAGE.read_text())]
    assert words == sorted(set(words))
