"""Every ```python block of the documents runs, in the order of its page; so do the examples.

The blocks of a page share one fresh interpreter, as for a reader who types them in. A block that
defines tests is run by pytest instead. A block followed by an ```output block must print exactly
that. A block may be excluded only with a reason in its first line: ``# doc: skip (reason)``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest
from _pytest.mark.structures import ParameterSet
from fakekafka.docs import draw_failover
from fakekafka.tests.support.paths import ROOT

ENABLED = True
"""True if the real pages are run."""

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
SKIP = re.compile(r"^# doc: skip(?: \((.+)\))?$")
TIMEOUT_S = 110
SPARK_TIMEOUT_S = 400
"""Timeout in seconds of a page that starts Spark: alone it takes 30 seconds for the JVM and its
tasks, on a busy machine minutes.
"""


@dataclass(frozen=True)
class Block:
    """A block of Python in a document."""

    line: int
    code: str
    output: str | None

    @property
    def defines_tests(self) -> bool:
        return re.search(r"^(async )?def test_", self.code, re.MULTILINE) is not None

    @property
    def is_skipped(self) -> bool:
        return SKIP.match(self.code.split("\n", 1)[0]) is not None

    @property
    def skip_reason(self) -> str | None:
        match = SKIP.match(self.code.split("\n", 1)[0])
        return match.group(1) if match else None


def python_blocks(text: str) -> list[Block]:
    """Return the Python blocks of a Markdown page, each with the output block that follows it."""
    fences = list(FENCE.finditer(text))
    blocks = []
    for index, fence in enumerate(fences):
        if fence.group(1) != "python":
            continue
        follower = fences[index + 1] if index + 1 < len(fences) else None
        expected = None
        follows = follower is not None and follower.group(1) == "output"
        if follower is not None and follows and not text[fence.end() : follower.start()].strip():
            expected = follower.group(2)
        blocks.append(Block(text.count("\n", 0, fence.start()) + 2, fence.group(2), expected))
    return blocks


def page_program(page: str, blocks: list[Block]) -> str:
    """Return a program that runs the blocks in one namespace and compares their output."""
    plain = [block for block in blocks if not block.is_skipped and not block.defines_tests]
    steps = [(block.line, block.code, block.output) for block in plain]
    return PROGRAM.format(page=page, steps=steps)


PROGRAM = """\
import contextlib, io, sys
names = {{"__name__": "__main__"}}
for line, code, expected in {steps!r}:
    program = compile("\\n" * (line - 1) + code, {page!r}, "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(program, names)
    if expected is not None and printed.getvalue() != expected:
        sys.exit(f"{page}:{{line}}: printed {{printed.getvalue()!r}}, the page says {{expected!r}}")
"""


def run_page(page: str, text: str, folder: Path) -> None:
    """Run a page's blocks; the traceback of a failure has the line numbers of the page."""
    blocks = python_blocks(text)
    bare = [f"{page}:{b.line}" for b in blocks if b.is_skipped and not b.skip_reason]
    assert bare == [], "a skipped block needs a reason: # doc: skip (reason)"
    timeout_s = SPARK_TIMEOUT_S if starts_spark(text) else TIMEOUT_S
    _run([sys.executable, "-c", page_program(page, blocks)], folder, timeout_s)
    tests = [block for block in blocks if block.defines_tests and not block.is_skipped]
    for block in tests:
        file = folder / f"test_line_{block.line}.py"
        file.write_text(block.code, encoding="utf-8")
        _run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)], folder)


def starts_spark(text: str) -> bool:
    """Return whether a page's code starts Spark."""
    return any("from pyspark" in block.code for block in python_blocks(text))


def _run(command: list[str], folder: Path, timeout_s: float = TIMEOUT_S) -> None:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    assert done.returncode == 0, f"\n{done.stdout}{done.stderr}"


def real_pages() -> list[ParameterSet]:
    """Return the pages with Python blocks."""
    pages = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        if python_blocks(text):
            timeout_s = (SPARK_TIMEOUT_S if starts_spark(text) else TIMEOUT_S) + 10
            marks = [pytest.mark.timeout(timeout_s)]
            if starts_spark(text):
                marks.append(pytest.mark.slow)
            pages.append(pytest.param(page, id=page.relative_to(ROOT).as_posix(), marks=marks))
    return pages


if ENABLED:

    @pytest.mark.parametrize("page", real_pages())
    def test_the_code_of_a_page_runs(page: Path, tmp_path: Path) -> None:
        """What the documents show is what happens."""
        name = page.relative_to(ROOT).as_posix()
        run_page(name, page.read_text(encoding="utf-8"), tmp_path)


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "examples").glob("*.py")))
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    """Every example succeeds in an empty folder."""
    _run([sys.executable, str(ROOT / "examples" / name)], tmp_path)


def test_the_picture_is_drawn_from_a_run() -> None:
    """It has a lane per broker, a leader before and after, and a gap at least as long as the
    session.
    """
    facts = draw_failover.observe()
    begin_ms, end_ms = draw_failover.gap(facts)
    assert end_ms - begin_ms > draw_failover.SESSION_TIMEOUT_MS * 2 / 3
    assert sum(role == "leader" for seen in facts.roles.values() for _, role in seen) == 2
    picture = ElementTree.fromstring(draw_failover.draw(facts))
    texts = [element.text for element in picture.iter() if element.tag.endswith("text")]
    assert {"broker 1", "broker 2", "broker 3"} <= set(texts)
    assert 0 <= facts.high_watermark[-1][1] - len(facts.acknowledged) <= 1


def test_every_block_of_the_documents_is_python(texts: dict[str, str]) -> None:
    """A block that cannot be compiled is found without running anything."""
    for path, text in texts.items():
        if path == "README.md" or (path.startswith("docs/") and path.endswith(".md")):
            for block in python_blocks(text):
                compile("\n" * (block.line - 1) + block.code, path, "exec")


GOOD = """# A page

```python
x = 20
```

Then:

```python
print(x + 1)
```

```output
21
```

```python
# doc: skip (needs a broker of your own)
raise SystemExit("not run")
```

```python
def test_of_a_reader(tmp_path):
    assert tmp_path.is_dir()
```

```console
$ not python
```
"""


def test_a_good_page_passes(tmp_path: Path) -> None:
    """Names carry over, output is compared, pytest runs tests, and skips have a reason."""
    run_page("good.md", GOOD, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("print(x + 1)", "print(y)", r'File "good.md", line 10'),
        ("\n21\n", "\n22\n", r"good.md:10: printed '21\\n', the page says '22\\n'"),
        (" (needs a broker of your own)", "", "needs a reason"),
        ("is_dir()", "is_file()", "1 failed"),
    ],
)
def test_a_bad_page_fails(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    """Each failure names the page and the line."""
    with pytest.raises(AssertionError, match=complaint):
        run_page("good.md", GOOD.replace(old, new), tmp_path)


def test_blocks_know_their_line() -> None:
    """The line of a block is that of its first line of code."""
    assert [block.line for block in python_blocks(GOOD)] == [4, 10, 18, 23]
