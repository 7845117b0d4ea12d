"""docs/stories: pictures drawn from runs, and pages that show what the commands really print."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from fakekafka.cli.main import main
from fakekafka.docs import draw_stories
from fakekafka.docs.story_pictures import offsets_that_differ
from fakekafka.scenarios.file import load_scenario
from fakekafka.tests.support.paths import ROOT
from fakekafka.tests.support.present import present

PAGES = ROOT / "docs" / "stories"
COMMAND = re.compile(
    r"^```console\n\$ fakekafka (run [^|\n]*?)(?: \| tail -n (\d+))?\n(.*?)^```", re.M | re.S
)
SVG = "{http://www.w3.org/2000/svg}"


def blocks() -> list[tuple[str, str, str | None, str]]:
    pages = sorted(page for page in PAGES.glob("*.md") if page.name != "index.md")
    return [(page.name, *found) for page in pages for found in COMMAND.findall(page.read_text())]


@pytest.mark.slow
@pytest.mark.parametrize(("page", "command", "tail", "shown"), blocks())
def test_a_page_shows_what_its_command_prints(
    page: str,
    command: str,
    tail: str,
    shown: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The command on a page, typed at the root of a checkout, prints the lines on the page."""
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert shown.splitlines() == lines[-int(tail) if tail else 0 :]


def test_every_story_has_a_page_with_a_command_and_a_picture() -> None:
    told = [name for _, _, scenarios in draw_stories.STORIES for name in scenarios]
    examples = sorted((ROOT / "examples" / "scenarios").glob("*.toml"))
    assert sorted(told) == [path.stem for path in examples if load_scenario(path).story is not None]
    for page, title, scenarios in draw_stories.STORIES:
        text = (PAGES / page).read_text()
        assert text.startswith(f"# {title}\n")
        assert all(f"{name}.toml" in text for name in scenarios)
        assert f"({scenarios[0]}.svg)" in text
        assert COMMAND.search(text)


def test_every_picture_is_shown() -> None:
    text = "".join(page.read_text() for page in PAGES.glob("*.md"))
    assert {path.name for path in PAGES.glob("*.svg")} == set(re.findall(r"\((\w+\.svg)\)", text))


@pytest.mark.parametrize("path", sorted(PAGES.glob("*.svg")), ids=lambda path: path.stem)
def test_a_picture_has_a_row_per_step_and_a_column_per_broker(path: Path) -> None:
    """A picture has a row per step and a column per broker, and no part lies outside the
    picture."""
    picture = ElementTree.parse(path).getroot()
    width, height = map(float, picture.attrib["viewBox"].split()[2:])
    texts = [(element.text or "", element.attrib) for element in picture.iter(f"{SVG}text")]
    story = present(load_scenario(ROOT / "examples" / "scenarios" / f"{path.stem}.toml").story)
    versions = draw_stories.PICTURES[path.stem]
    for number, step in enumerate(story.steps):
        assert any(text.startswith(f"{number}  {step.name[:30]}") for text, _ in texts)
    for name in story.names:
        assert sum(text == f"broker {name}" for text, _ in texts) == len(versions)
    for text, attributes in texts:
        x, size = float(attributes["x"]), float(attributes["font-size"])
        length = len(text) * size * 0.55
        left = x - length / 2 if attributes.get("text-anchor") == "middle" else x
        assert left >= 0
        assert left + length <= width, text
        assert float(attributes["y"]) < height
    for box in picture.iter(f"{SVG}rect"):
        assert float(box.attrib.get("x", 0)) + float(box.attrib["width"]) <= width


def test_a_picture_shows_where_the_logs_differ() -> None:
    """The last row has red boxes in the picture of 0.10, and none in that of 3.9."""
    for version, is_wrong in (("0.10", True), ("3.9", False)):
        last = draw_stories.story_of("kip_101_divergence", version).steps[-1]
        assert bool(offsets_that_differ(last)) is is_wrong
    both = draw_stories.picture("kip_101_divergence")
    assert both.count('fill="none" stroke="#cf222e" stroke-width="2"') == 4


def test_stale_output_is_renewed() -> None:
    page = (PAGES / "kip-101-divergence.md").read_text()
    stale = page.replace("A follower [m0/0 m1/0] HW 2", "A follower [m0/0] HW 1")
    assert stale != page
    assert draw_stories.renewed(stale) == page
