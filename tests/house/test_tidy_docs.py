"""House rules of the documents: titles, links, names of fragments, and plain prose."""

from __future__ import annotations

import posixpath
import re
import tomllib
from pathlib import Path

import pytest
from fakekafka.docs import trace_gallery
from fakekafka.tests.support.documents import FENCE, anchors

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
FRAGMENTS = "changelog.d/"


def prose_lines(text: str) -> list[str]:
    """Return all lines, with fenced code replaced by empty lines and inline code blanked."""
    lines, inside = [], False
    for line in text.splitlines():
        if FENCE.match(line):
            inside = not inside
            lines.append("")
        else:
            lines.append("" if inside else re.sub(r"`[^`]*`", "``", line))
    return lines


def title_findings(path: str, text: str) -> list[str]:
    """Return a finding unless a document has exactly one H1."""
    titles = [line for line in prose_lines(text) if line.startswith("# ")]
    return [] if len(titles) == 1 else [f"{path}: {len(titles)} titles (lines with one #), not 1"]


def link_findings(path: str, text: str, files: dict[str, str], others: set[str]) -> list[str]:
    """Return relative links to files or headings that do not exist."""
    found = []
    for number, line in enumerate(prose_lines(text), 1):
        for target in LINK.findall(line):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            here = posixpath.dirname(path)
            resolved = posixpath.normpath(posixpath.join(here, file)) if file else path
            is_folder = any(name.startswith(resolved.rstrip("/") + "/") for name in files)
            if resolved not in files and resolved not in others and not is_folder:
                found.append(f"{path}:{number}: {target} leads nowhere")
            elif anchor and anchor not in anchors(files.get(resolved, "")):
                found.append(f"{path}:{number}: {target}: no such heading")
    return found


def fragment_findings(path: str, types: set[str]) -> list[str]:
    """Return a finding unless a changelog fragment is named ``<short-name>.<type>.md``."""
    name = path.removeprefix(FRAGMENTS)
    if name == "README.md" or re.fullmatch(
        rf"\+?[a-z0-9-]+\.({'|'.join(sorted(types))})\.md", name
    ):
        return []
    return [f"{path}: name it <short-name>.<type>.md with a type of {', '.join(sorted(types))}"]


def _documents(texts: dict[str, str]) -> dict[str, str]:
    return {
        path: text
        for path, text in texts.items()
        if path.endswith(".md") and (not path.startswith(FRAGMENTS) or path.endswith("/README.md"))
    }


def test_every_document_has_one_title(texts: dict[str, str]) -> None:
    """Each document has one H1, and its sections start at H2."""
    found = [finding for item in _documents(texts).items() for finding in title_findings(*item)]
    assert found == [], "\n" + "\n".join(found)


def test_relative_links_resolve(texts: dict[str, str], root: Path) -> None:
    """No link within the repository is dead."""
    binaries = {p.relative_to(root).as_posix() for p in (root / "docs").rglob("*") if p.is_file()}
    binaries |= {f"docs/{path}" for path in trace_gallery.site_paths()}  # made with the site
    found = [
        finding
        for path, text in _documents(texts).items()
        for finding in link_findings(path, text, texts, binaries)
    ]
    assert found == [], "\n" + "\n".join(found)


def test_changelog_fragments_have_a_known_type(texts: dict[str, str]) -> None:
    """Towncrier ignores a fragment whose type it does not know; here it fails."""
    config = tomllib.loads(texts["pyproject.toml"])["tool"]["towncrier"]
    types = {entry["directory"] for entry in config["type"]}
    paths = [path for path in texts if path.startswith(FRAGMENTS)]
    assert [finding for path in paths for finding in fragment_findings(path, types)] == []


@pytest.mark.parametrize(
    ("text", "count"), [("# A\n## B\n```\n# no title\n```\n", 0), ("## A\n", 1), ("# A\n# B\n", 1)]
)
def test_titles_are_counted_outside_code(text: str, count: int) -> None:
    """A shell comment in a code block is no title."""
    assert len(title_findings("a.md", text)) == count


@pytest.mark.parametrize(
    ("link", "count"),
    [
        ("[x](b.md)", 0),
        ("[x](../README.md)", 0),
        ("[x](b.md#a-heading)", 0),
        ("[x](#own)", 0),
        ("![x](img/p.svg)", 0),
        ("[x](https://example.org/b.md)", 0),
        ("`[x](nowhere.md)`", 0),
        ("[x](sub)", 0),
        ("[x](nowhere.md)", 1),
        ("[x](b.md#no-heading)", 1),
        ("![x](img/q.svg)", 1),
    ],
)
def test_dead_links_are_found(link: str, count: int) -> None:
    """Links to files, folders, pictures and headings are checked."""
    text = f"# T\n## Own\n{link}\n"
    files = {
        "docs/a.md": text,
        "docs/b.md": "# A `heading`\n",
        "README.md": "",
        "docs/sub/c.md": "",
    }
    assert len(link_findings("docs/a.md", text, files, {"docs/img/p.svg"})) == count


@pytest.mark.parametrize(
    ("name", "count"),
    [("README.md", 0), ("serve.feature.md", 0), ("12.fix.md", 0), ("a.md", 1), ("a.news.md", 1)],
)
def test_fragment_names_are_checked(name: str, count: int) -> None:
    """The name includes the type."""
    assert len(fragment_findings(FRAGMENTS + name, {"feature", "fix"})) == count


PATHS = re.compile(r"`((?:\.ci|[a-z_]+)/[\w/.-]*[\w/])`")
PATHS_OF = ("README.md", "CONTRIBUTING.md", "docs/ARCHITECTURE.md")


def path_findings(path: str, text: str, root: Path) -> list[str]:
    """Return files and folders that a page names in code and that do not exist."""
    named = PATHS.findall(text)
    written = [name for name in named if not name.startswith("out/")]
    return [f"{path}: there is no {name}" for name in written if not (root / name).exists()]


@pytest.mark.parametrize("path", PATHS_OF)
def test_files_that_are_named_exist(path: str, texts: dict[str, str], root: Path) -> None:
    """Documents are updated when a module moves."""
    assert path_findings(path, texts[path], root) == []


def test_a_file_that_is_not_there_is_found(tmp_path: Path) -> None:
    """Names of folders may end with a slash; code that is no path is ignored."""
    (tmp_path / "wire").mkdir()
    text = "`wire/` `wire/gone.py` `docs/gone/` `a / b` `CP-1` `wire`"
    assert path_findings("a.md", text, tmp_path) == [
        "a.md: there is no wire/gone.py",
        "a.md: there is no docs/gone/",
    ]


LONGEST_SENTENCE_WORDS = 45
UNNAMED_SUBJECTS = ("nobody", "somebody", "anybody")
ARCHAIC_WORDS = (
    *("albeit", "hereby", "lest", "nought", "shall", "thence", "thereby", "therein", "thereof"),
    *("thereupon", "therewith", "unto", "whence", "wherein", "whereof", "wherewith", "whosoever"),
)
BANNED = re.compile(rf"\b({'|'.join((*UNNAMED_SUBJECTS, *ARCHAIC_WORDS))})\b", re.IGNORECASE)
NO_PROSE = re.compile(r"\s*([|#]|<!--|:::)")
NEW_PARAGRAPH = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.|[AB]\d\.) )")


def word_findings(path: str, text: str) -> list[str]:
    """Return archaic words and pronouns that hide the subject, outside of code."""
    return [
        f"{path}:{number}: {match.group(0)!r}: use a plain word, and name the subject"
        for number, line in enumerate(prose_lines(text), 1)
        for match in BANNED.finditer(line)
    ]


def sentence_findings(path: str, text: str) -> list[str]:
    """Return sentences that are too long; a semicolon or a colon ends a sentence, too."""
    lines = ["" if NO_PROSE.match(line) else line for line in prose_lines(text)]
    paragraphs = [" ".join(part.split()) for part in NEW_PARAGRAPH.split("\n".join(lines))]
    sentences = [part for text in paragraphs for part in re.split(r"(?<=[.!?:;])\s+", text)]
    return [
        f"{path}: {len(sentence.split())} words in one sentence: {sentence[:60]}..."
        for sentence in sentences
        if len(sentence.split()) > LONGEST_SENTENCE_WORDS
    ]


def test_prose_is_plain(texts: dict[str, str]) -> None:
    """Documents and change notes name their subjects, in sentences of a readable length."""
    pages = {path: text for path, text in texts.items() if path.endswith(".md")}
    findings = [
        finding
        for item in pages.items()
        for finding in word_findings(*item) + sentence_findings(*item)
    ]
    assert findings == [], "\n" + "\n".join(findings)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("The broker answers.", 0),
        ("Nobody leads, lest it be lost.", 2),
        ("`nobody` is a name", 0),
        ("```\nnobody\n```", 0),
    ],
)
def test_words_that_hide_the_subject_are_found(text: str, count: int) -> None:
    """Words in code are allowed."""
    assert len(word_findings("a.md", text)) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("a " * 45, 0),
        ("a " * 46, 1),
        ("a " * 30 + "b. " + "c " * 30, 0),
        ("a\n" * 46, 1),
        ("- " + "a " * 30 + "\n- " + "b " * 30, 0),
        ("| " + "a " * 60 + "|", 0),
    ],
)
def test_sentences_that_are_too_long_are_found(text: str, count: int) -> None:
    """A sentence may span lines; each item of a list counts by itself, and tables do not count."""
    assert len(sentence_findings("a.md", text)) == count
