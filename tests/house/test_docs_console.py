"""Parsing, comparing and updating the ```console blocks of the pages.

That the pages show what their commands print is checked with the generated pages
(test_generated_docs.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from fakekafka.docs import console_blocks as blocks


def test_every_block_of_the_pages_can_be_run_or_says_why_not() -> None:
    found = {page.name: page.read_text(encoding="utf-8") for page in blocks.pages()}
    assert {"simulation.md", "traces.md", "benchmarks.md", "cli.md"} <= set(found)
    assert {name: problems for name in found if (problems := blocks.problems_of(found[name]))} == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("```console\n$ rm -r out\n```\n", "line 2: 'rm -r out': only fakekafka, python"),
        ("Text.\n\n```console\nhello\n```\n", "line 4: the block must begin with a command"),
        ("<!-- console: not run -->\n```console\n$ x\n```\n", "line 3: *needs a reason"),
    ],
)
def test_a_block_that_cannot_be_run_is_named(text: str, problem: str) -> None:
    (found,) = blocks.problems_of(text)
    for words in problem.split("*"):
        assert words in found


@pytest.mark.parametrize(
    ("shown", "same"),
    [
        (["one", "two", "three"], True),
        ([], True),
        (["one", "..."], True),
        (["  ...", "three"], True),
        (["one", "...", "two", "three"], True),
        (["o...e", "two", "...ee"], True),
        (["one", "two"], False),
        (["one", "...", "one", "..."], False),
        (["two", "..."], False),
        (["one", "t.o", "three"], False),
    ],
)
def test_dots_stand_for_omitted_output(shown: list[str], same: bool) -> None:
    assert blocks.agrees(shown, ["one", "two", "three"]) is same


PAGE = """# A page

```console
$ fakekafka run x -o y
$ fakekafka trace story y
...
  12 ms  broker-1 is killed
...
  70 ms  unavailable for 58 ms
took ... s
```

<!-- console: not run (real time) -->
```console
$ fakekafka demo
4711
```
"""


def test_a_page_is_updated_only_if_its_output_differs() -> None:
    """Gaps and open texts stay, and so does the output of commands that are not run."""
    now = ["   3 ms  broker-1 starts", "  13 ms  broker-1 is killed", "  14 ms  it is noticed",
           "  72 ms  unavailable for 59 ms", "took 5 s"]  # fmt: skip
    ran: list[str] = []

    def run(command: str) -> list[str]:
        ran.append(command)
        return now if "story" in command else ["anything"]

    text, differences = blocks.renewed_page(PAGE, run)
    assert ran == ["fakekafka run x -o y", "fakekafka trace story y"]
    assert text == PAGE.replace("12 ms  broker-1", "13 ms  broker-1").replace(
        "70 ms  unavailable for 58", "72 ms  unavailable for 59"
    )
    (difference,) = differences
    assert difference.startswith("line 5: $ fakekafka trace story y\n")
    assert "-  12 ms  broker-1 is killed\n+  13 ms  broker-1 is killed" in difference
    assert blocks.renewed_page(text, run) == (text, [])


@pytest.mark.slow
def test_the_commands_of_a_page_share_a_folder(tmp_path: Path) -> None:
    """A command can read what an earlier one recorded; the error of a failed command has its
    output.
    """
    run = blocks.runner(tmp_path)
    scenario = "examples/scenarios/min_isr.toml"
    recorded = run(f"fakekafka run {scenario} --kafka-version 3.9 -o run.fktrace")
    assert recorded[-1] == "  recorded: fakekafka trace show run.fktrace"
    assert run("fakekafka trace story run.fktrace")
    with pytest.raises(ValueError, match=r"left with 2:\nerror: no.toml"):
        run("fakekafka run no.toml")
