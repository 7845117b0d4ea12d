"""Draws docs/img/rooms.svg: the package's folders in layers, and their imports.

python docs/draw_rooms.py            write the picture
python docs/draw_rooms.py --check    change nothing; exit 1 if the picture is stale

Folders and imports are read from the source; nothing is drawn by hand.
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.sax.saxutils import escape

from fakekafka.tests.support.imports import FLOORS, import_graph

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "img" / "rooms.svg"

WIDTH, TOP, ROW, GAP = 900, 96, 30, 5
NAME_X, ROOM_X, GRID_X, CELL = 14, 132, 596, 24
CHARACTER, ROOM_PADDING, ROOM_GAP = 7.2, 12, 5
CORES = {"election", "zkfake", "replication", "statemachines", "coordinators"}
FILL, CORE_FILL, ROOM_FILL, DOT, GREY = "#eef2fb", "#e6f4ea", "#ffffff", "#3f51b5", "#57606a"


def sources() -> dict[str, str]:
    """Return the text of every file of the package, by path."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for floor in FLOORS
        for path in sorted((ROOT / floor).rglob("*.py"))
    }


def rooms(texts: dict[str, str]) -> dict[str, list[str]]:
    """Return the names of the folders directly inside each folder."""
    found: dict[str, set[str]] = {floor: set() for floor in FLOORS}
    for path in texts:
        parts = path.split("/")
        if len(parts) > 2:
            found[parts[0]].add(parts[1])
    return {floor: sorted(names) for floor, names in found.items()}


def uses(texts: dict[str, str]) -> set[tuple[str, str]]:
    """Return the pairs of folders in which the first imports the second."""
    return {
        (module.split(".")[0], target.split(".")[0])
        for module, targets in import_graph(texts).items()
        for target in targets
        if module.split(".")[0] != target.split(".")[0]
    }


def draw(texts: dict[str, str]) -> str:
    """Return the picture as SVG: a row per folder, the lowest layer at the bottom, a dot for an
    import."""
    order = list(reversed(FLOORS))
    inside, pairs = rooms(texts), uses(texts)
    height = TOP + len(order) * (ROW + GAP) + 30
    bottom = TOP + len(order) * (ROW + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'aria-label="The folders of the package and their imports" font-family="sans-serif" '
        'font-size="12" fill="#1f2328">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{NAME_X}" y="{TOP - 14}" font-weight="bold">folder</text>',
        f'<text x="{ROOM_X}" y="{TOP - 14}" font-weight="bold">folders inside it</text>',
    ]
    for column, floor in enumerate(order):
        x = GRID_X + column * CELL + CELL / 2
        parts.append(
            f'<text transform="translate({x + 4:g} {TOP - 10}) rotate(-60)" '
            f'fill="{GREY}">{floor}</text>'
        )
        parts.append(f'<path d="M{x:g} {TOP} V{bottom - GAP}" stroke="#d8dee4"/>')
    for row, floor in enumerate(order):
        y = TOP + row * (ROW + GAP)
        parts += _row(y, floor, inside[floor])
        for column, other in enumerate(order):
            x = GRID_X + column * CELL + CELL / 2
            if other == floor:
                parts.append(
                    f'<rect x="{x - 6:g}" y="{y + ROW / 2 - 6:g}" width="12" height="12" '
                    'fill="#d0d7de"/>'
                )
            elif (floor, other) in pairs:
                parts.append(f'<circle cx="{x:g}" cy="{y + ROW / 2:g}" r="5" fill="{DOT}"/>')
    legend = "green: no clock, thread, socket or random number. A dot: the row's folder imports"
    parts.append(
        f'<text x="{NAME_X}" y="{height - 12}" fill="{GREY}">{legend} the column\'s folder.</text>'
    )
    return "\n".join([*parts, "</svg>", ""])


def _row(y: int, floor: str, names: list[str]) -> list[str]:
    fill = CORE_FILL if floor in CORES else FILL
    right = GRID_X - 12
    found = [
        f'<rect x="4" y="{y}" width="{right - 4}" height="{ROW}" rx="4" fill="{fill}"/>',
        f'<text x="{NAME_X}" y="{y + ROW / 2 + 4:g}" font-weight="bold">{escape(floor)}</text>',
    ]
    x, top = float(ROOM_X), y + 6
    for name in names:
        width = len(name) * CHARACTER + ROOM_PADDING
        found.append(
            f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" height="18" rx="3" '
            f'fill="{ROOM_FILL}" stroke="#d0d7de"/>'
        )
        found.append(f'<text x="{x + ROOM_PADDING / 2:.1f}" y="{top + 13}">{escape(name)}</text>')
        x += width + ROOM_GAP
    return found


def main(arguments: list[str]) -> int:
    """Write or check the picture; return status 0, 1 if it is stale, 2 for wrong usage."""
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    text = draw(sources())
    current = PICTURE.read_text(encoding="utf-8") if PICTURE.exists() else ""
    if current == text:
        return 0
    name = PICTURE.relative_to(ROOT)
    if arguments:
        print(f"{name} is stale: run `make docs`", file=sys.stderr)
        return 1
    PICTURE.write_text(text, encoding="utf-8")
    print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
