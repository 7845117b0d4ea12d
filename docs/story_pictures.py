"""Draws a story as SVG: a row per step, a column per broker, once for each version.

Boxes are records, coloured by leader epoch; a blue line is the high watermark. Used by
draw_stories.py, which runs the stories.
"""

from __future__ import annotations

import itertools
from xml.sax.saxutils import escape

from fakekafka.cli.story_table import news, outcome_text
from fakekafka.scenarios.story.logs import runs_of
from fakekafka.scenarios.story.play import StepResult, StoryResult
from fakekafka.scenarios.story.state import ReplicaState

MARGIN, LANE_GAP, PANEL_GAP, LANE_LEAST = 14, 26, 40, 118
SINGLE, RANGE, RANGE_RECORDS = 34, 70, 4
BOX_HEIGHT, CHARACTER, BOLD_CHARACTER = 24, 6.6, 7.5
EPOCH_COLOURS = ("#cfe3ff", "#ffdf9e", "#dccbff", "#ffc4d0", "#bfead0")
BLUE, GREY, GREEN, RED, LINE = "#0969da", "#57606a", "#1a7f37", "#cf222e", "#8c959f"


Spans = tuple[tuple[int, int], ...]
"""Offsets at which boxes begin and end, the same for all replicas and steps of a picture."""


def spans_of(runs: list[StoryResult]) -> Spans:
    """Return a box per record, but a single box for each long stretch of records in which no run of
    records or high watermark ends in any step."""
    cuts = {0}
    for replica in (r for run in runs for step in run.steps for r in step.state.replicas.values()):
        cuts.add(replica.high_watermark)
        offset = 0
        for group in runs_of(list(replica.records)):
            offset += len(group)
            cuts.add(offset)
    found: list[tuple[int, int]] = []
    ordered = sorted(cuts)
    for start, end in itertools.pairwise(ordered):
        whole = end - start >= RANGE_RECORDS
        found += [(start, end)] if whole else [(offset, offset + 1) for offset in range(start, end)]
    return tuple(found)


def width_of(spans: Spans, length: int) -> int:
    """Return the width of the boxes up to an offset."""
    return sum(SINGLE if end - start == 1 else RANGE for start, end in spans if end <= length)


class Sheet:
    """An SVG under construction, which keeps track of its width."""

    def __init__(self, spans: Spans) -> None:
        self.spans = spans
        self.rules: list[int] = []  # y at which each row begins
        self.parts: list[str] = []
        self.right = 0.0

    def text(self, x: float, y: float, text: str, more: str = "", size: int = 12) -> None:
        character = BOLD_CHARACTER if "bold" in more else CHARACTER
        self.right = max(self.right, x + len(text) * character * size / 12)
        more = f" {more}" if more else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}"{more}>{escape(text)}</text>'
        )

    def box(
        self, x: float, y: float, width: float, fill: str, more: str = "", stroke: str = LINE
    ) -> None:
        self.right = max(self.right, x + width)
        thick = "" if stroke == LINE else ' stroke-width="2"'
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BOX_HEIGHT}" '
            f'fill="{fill}" stroke="{stroke}"{thick}{" " + more if more else ""}/>'
        )

    def line(self, path: str, colour: str, width: float = 1) -> None:
        self.parts.append(
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}"/>'
        )


def draw(name: str, runs: list[StoryResult]) -> str:
    """Return the picture of a story as SVG text, with its runs side by side."""
    names = {broker_id: broker for broker, broker_id in runs[0].story.names.items()}
    spans = spans_of(runs)
    lanes = {
        broker_id: max(
            [
                width_of(spans, len(step.state.replicas[broker_id].records))
                for run in runs
                for step in run.steps
                if broker_id in step.state.replicas
            ]
            + [LANE_LEAST]
        )
        for broker_id in sorted(names)
    }
    panel = sum(lanes.values()) + LANE_GAP * (len(lanes) - 1)
    sheet = Sheet(spans)
    y = _legend(sheet, runs)
    for index, run in enumerate(runs):
        x = MARGIN + index * (panel + PANEL_GAP)
        sheet.text(x, y, f"kafka_version {run.kafka_version}", 'font-weight="bold"', 13)
        for broker_id, left in _lefts(lanes, x).items():
            sheet.text(left, y + 20, f"broker {names[broker_id]}", f'fill="{GREY}"')
    y += 32
    width = MARGIN + len(runs) * (panel + PANEL_GAP) - PANEL_GAP
    columns = max(40, int((max(width, 560) - MARGIN) / CHARACTER))
    for number in range(len(runs[0].steps)):
        y = _row(sheet, runs, number, lanes, panel, y, columns)
    for line in range(max(len(_outcome_lines(run, panel)) for run in runs)):
        for index, run in enumerate(runs):
            x = MARGIN + index * (panel + PANEL_GAP)
            lines = _outcome_lines(run, panel)
            if line < len(lines):
                sheet.text(x, y + 20, lines[line], f'fill="{_colour(run)}" font-weight="bold"')
        y += 17
    return _finish(sheet, name, runs, y + 22)


def _lefts(lanes: dict[int, int], x: float) -> dict[int, float]:
    """Return the left edge of each broker's column in a panel that begins at ``x``."""
    found = {}
    for broker_id, width in lanes.items():
        found[broker_id] = x
        x += width + LANE_GAP
    return found


def _legend(sheet: Sheet, runs: list[StoryResult]) -> int:
    epochs = sorted(
        {
            record.epoch
            for run in runs
            for step in run.steps
            for replica in step.state.replicas.values()
            for record in replica.records
        }
    )
    x = float(MARGIN)
    for epoch in epochs:
        sheet.box(x, 10, 16, EPOCH_COLOURS[epoch % len(EPOCH_COLOURS)])
        sheet.text(x + 22, 27, f"epoch {epoch}")
        x += 84
    sheet.line(f"M{x + 6:.1f} 8 v28", BLUE, 2.5)
    sheet.text(x + 16, 27, "high watermark")
    if any(offsets_that_differ(step) for run in runs for step in run.steps):
        x += 136
        sheet.box(x, 10, 16, "#ffffff", stroke=RED)
        sheet.text(x + 22, 27, "not what the leader has")
    return 62


def _row(
    sheet: Sheet,
    runs: list[StoryResult],
    number: int,
    lanes: dict[int, int],
    panel: int,
    y: int,
    columns: int,
) -> int:
    """Draw a step: its text, then every replica of every panel; return the y of the next row."""
    sheet.rules.append(y)
    for line in _wrapped(f"{number}  {runs[0].steps[number].name}", columns):
        sheet.text(MARGIN, y + 18, line)
        y += 17
    told_lines = 0
    for index, run in enumerate(runs):
        step = run.steps[number]
        before = run.steps[number - 1] if number else None
        x = MARGIN + index * (panel + PANEL_GAP)
        differing = offsets_that_differ(step)
        for broker_id, left in _lefts(lanes, x).items():
            if broker_id in step.state.replicas:
                replica = step.state.replicas[broker_id]
                in_sync = broker_id in step.state.isr
                _replica(sheet, replica, in_sync, differing.get(broker_id, set()), left, y)
        told = _told(step, before, panel)
        told_lines = max(told_lines, len(told))
        for line_number, line in enumerate(told):
            sheet.text(x, y + 72 + 15 * line_number, line, f'fill="{GREY}"', 11)
    return y + 66 + 15 * told_lines


def offsets_that_differ(step: StepResult) -> dict[int, set[int]]:
    """Return the offsets at which each broker that is up has a different record from the leader."""
    leader = step.state.replicas.get(step.state.leader)
    found: dict[int, set[int]] = {}
    if leader is None or leader.role == "off":
        return found
    for broker_id, replica in step.state.replicas.items():
        pairs = enumerate(zip(replica.records, leader.records, strict=False))
        offsets = {offset for offset, (one, other) in pairs if one != other}
        if offsets and replica.role != "off":
            found[broker_id] = offsets
    return found


def _replica(
    sheet: Sheet, replica: ReplicaState, in_sync: bool, differing: set[int], x: float, y: float
) -> None:
    role = "not told yet" if replica.role == "none" else replica.role
    weight = ' font-weight="bold"' if replica.role == "leader" else ""
    colour = RED if replica.role == "off" else "#1f2328"
    sheet.text(x, y + 20, role, f'fill="{colour}"{weight}', 11)
    if in_sync:
        sheet.text(x + LANE_LEAST - 46, y + 20, "in ISR", f'fill="{GREEN}"', 11)
    top = y + 28
    faded = 'opacity="0.45"' if replica.role == "off" else ""
    middle = f'text-anchor="middle" {faded}'.strip()
    outlined = []
    for start, end in sheet.spans:
        if end > len(replica.records):
            break
        first, last = replica.records[start], replica.records[end - 1]
        left, width = x + width_of(sheet.spans, start), SINGLE if end - start == 1 else RANGE
        sheet.box(left, top, width, EPOCH_COLOURS[first.epoch % len(EPOCH_COLOURS)], faded)
        label = first.value if end - start == 1 else f"{first.value}..{last.value}"
        sheet.text(left + width / 2, top + 16, label, middle, 11)
        if differing.intersection(range(start, end)):
            outlined.append((left, width))
    for left, width in outlined:  # drawn last, so that they cover the neighbours' borders
        sheet.box(left, top, width, "none", stroke=RED)
    if replica.role != "off":
        at = x + width_of(sheet.spans, replica.high_watermark)
        sheet.line(f"M{at:.1f} {top - 4} v{BOX_HEIGHT + 8}", BLUE, 2.5)


def _told(step: StepResult, before: StepResult | None, panel: int) -> list[str]:
    lines = news(step.state, None if before is None else before.state)
    return [part for line in lines for part in _wrapped(line, int(panel / 6.2))]


def _outcome_lines(run: StoryResult, panel: int) -> list[str]:
    assert run.outcome is not None
    columns = int(panel / BOLD_CHARACTER)
    return [part for text in run.outcome.sentences for part in _wrapped(text, columns)]


def _colour(run: StoryResult) -> str:
    outcome = run.outcome
    assert outcome is not None
    wrong = outcome.lost or outcome.duplicated or outcome.differ_at is not None
    return RED if wrong else GREEN


def _wrapped(text: str, columns: int) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > columns:
            lines.append("    " + word if text[0].isdigit() else word)
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines


def _finish(sheet: Sheet, name: str, runs: list[StoryResult], height: int) -> str:
    ends = "; ".join(f"{run.kafka_version}: {outcome_text(run)[3:]}" for run in runs)
    width = int(sheet.right) + MARGIN
    for y in sheet.rules:
        sheet.line(f"M{MARGIN} {y} H{width - MARGIN}", "#d0d7de")
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
            f'width="{width}" aria-label="{escape(name)}, step by step. {escape(ends)}" '
            'font-family="sans-serif" fill="#1f2328" xml:space="preserve">',
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            *sheet.parts,
            "</svg>",
            "",
        ]
    )
