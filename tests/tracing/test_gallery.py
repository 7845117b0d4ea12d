"""The documentation's gallery: five traces with pages and pictures, made by one command."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from fakekafka.cli.main import main
from fakekafka.docs import trace_gallery
from fakekafka.docs.trace_gallery import EXHIBITS, Exhibit, recorded
from fakekafka.scenarios.run import run_from_header
from fakekafka.tests.support.paths import ROOT
from fakekafka.tracing.events import TraceError
from fakekafka.tracing.format import TRAILER, pack_trailer, read_trailer
from fakekafka.tracing.trace_file import TraceReader
from fakekafka.tracing.verify import verify

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("trace gallery")]

each_exhibit = pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.name)


def test_one_command_writes_the_traces_and_each_is_verified_in_another_process(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each trace is repeated from its header in another process with identical events."""
    assert trace_gallery.main([str(tmp_path)]) == 0
    told = capfd.readouterr().out
    assert len(re.findall(r"^verified: \d+ events, fingerprint \w{64}$", told, re.M)) == 5
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{exhibit.name}{kind}" for exhibit in EXHIBITS for kind in (".fktrace", ".html")
    }


@each_exhibit
def test_a_flipped_bit_is_refused(exhibit: Exhibit, tmp_path: Path) -> None:
    """A flipped bit anywhere in a file is refused, with its place where frames reveal it."""
    data = recorded(exhibit.name)[0]
    path = tmp_path / "flipped.fktrace"
    for place in (*range(0, len(data) - 60, len(data) // 25), len(data) - 1):
        flipped = bytearray(data)
        flipped[place] ^= 0x10
        path.write_bytes(flipped)
        told = r"flipped\.fktrace: (not a trace|wrong checksum .* at byte \d+|cut off)|has no end"
        with pytest.raises(TraceError, match=told):
            _read_all(path)


def test_a_wrong_fingerprint_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``verify`` reports a wrong fingerprint in a file whose events all match."""
    data = recorded("controlled-shutdown")[0]
    trailer = read_trailer(data, "the file")
    assert trailer is not None
    offset, digest = trailer
    path = tmp_path / "wrong.fktrace"
    path.write_bytes(data[: -TRAILER.size] + pack_trailer(offset, digest[::-1]))
    with pytest.raises(SystemExit) as ended:
        main(["trace", "verify", str(path)])
    assert ended.value.code == 1
    assert "every event is the same: the fingerprint in the file is damaged" in (
        capsys.readouterr().out
    )


def test_a_damaged_trailer_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``verify`` refuses a file whose trailer fails its checksum."""
    data = bytearray(recorded("controlled-shutdown")[0])
    data[-20] ^= 0x10
    path = tmp_path / "damaged.fktrace"
    path.write_bytes(data)
    with pytest.raises(SystemExit) as ended:
        main(["trace", "verify", str(path)])
    assert ended.value.code == 2
    assert "wrong checksum of the trailer" in capsys.readouterr().err


def _read_all(path: Path) -> None:
    with TraceReader(path) as trace:
        trace.check()
        if trace.problem is not None:
            raise TraceError(trace.problem)


@each_exhibit
def test_a_truncated_file_is_readable_but_not_verified(exhibit: Exhibit, tmp_path: Path) -> None:
    """A truncated file is readable up to the truncation and cannot be verified."""
    data = recorded(exhibit.name)[0]
    path = tmp_path / "cut.fktrace"
    path.write_bytes(data[: len(data) * 17 // 20])
    with TraceReader(path) as trace:
        assert re.search(r"cut off inside the frame at byte \d+", trace.problem or "")
        assert 0 < len(trace) < len(recorded(exhibit.name)[1])
        with pytest.raises(TraceError, match="not whole"):
            verify(trace, run_from_header)


def test_a_run_with_another_seed_fails_verification() -> None:
    """A run with another seed fails verification, which names the first event that differs."""
    trace = recorded("controlled-shutdown")[1]
    same = verify(trace.stored, run_from_header)
    assert same.holds
    assert same.difference is None
    other = verify(trace.stored, lambda header, sink: run_from_header({**header, "seed": 1}, sink))
    assert not other.holds
    assert other.difference is not None
    assert re.match(r"#\d+: ", other.difference.describe())


@each_exhibit
def test_a_page_has_all_there_is_to_look_at(exhibit: Exhibit) -> None:
    """Each page links every moment of the trace and has the story, the pictures and commands."""
    text = trace_gallery.page(exhibit)
    links = re.findall(rf"\({exhibit.name}-trace\.html#s=(\d+)&p=Why\)", text)
    assert len(links) == len(exhibit.moments)
    assert f"](../stories/{exhibit.scenario}.svg)" in text
    assert (ROOT / "docs" / "stories" / f"{exhibit.scenario}.svg").exists()
    assert f"fakekafka run {exhibit.scenario} --kafka-version {exhibit.version}" in text
    assert text.count(" ms  ") >= 7
    picture = ElementTree.fromstring(trace_gallery.picture(exhibit))
    chain = recorded(exhibit.name)[1].why(exhibit.at)
    dots = picture.findall("{http://www.w3.org/2000/svg}circle")
    assert len(dots) == len(chain) >= 4


@each_exhibit
def test_the_gallery_contains_no_path_of_the_machine_that_made_it(exhibit: Exhibit) -> None:
    """Traces and pages contain no path of the machine that made them and load nothing remote."""
    data, trace = recorded(exhibit.name)
    assert trace.header["reproduce"].startswith(f"fakekafka run {exhibit.scenario} --seed 0")
    page = trace_gallery.web_page(exhibit.name)
    for content in (data, page):
        assert str(ROOT).encode() not in content
    assert not re.search(rb"(src|href)=[\"\']?https?:", page)


def test_the_index_leads_to_every_page() -> None:
    """The index links every page, and the site's navigation has every page."""
    text = trace_gallery.index()
    assert all(f"]({exhibit.name}.md)" in text for exhibit in EXHIBITS)
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for path in trace_gallery.site_paths():
        assert not path.endswith(".md") or f"- {path}\n" in nav


@each_exhibit
def test_a_picture_describes_each_change_in_words_that_fit(exhibit: Exhibit) -> None:
    """A picture names the changed leader, role or ISR without message numbers or packets, and is as
    wide as its longest line.
    """
    picture = ElementTree.fromstring(trace_gallery.picture(exhibit))
    texts = [text for text in picture.iter() if text.tag.endswith("text")]
    said = [text.text or "" for text in texts]
    assert not any(re.search(r"\b(op|xid)=|\bm\d+\b|ServerPacket|0x", line) for line in said)
    if exhibit.name == "leader-crash":
        assert "orders-0 role: follower → leader" in said
    width = float(picture.get("width", "0"))
    for text in texts:
        at = float(text.get("x", "0"))
        each = 7 if text.get("font-weight") else 6
        if text.get("text-anchor") is None:
            assert at + len(text.text or "") * each <= width
