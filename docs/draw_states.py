"""Draws the controller's state machines: docs/img/partition-states.svg and replica-states.svg.

The states and arrows come from the tables of legal transitions; only the places are chosen here.
Used by generate.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from xml.sax.saxutils import escape

from fakekafka.statemachines.machines.transitions import (
    PARTITION_PREDECESSORS,
    REPLICA_PREDECESSORS,
    PartitionState,
    ReplicaState,
    State,
)

COLUMN, ROW, BOX_HEIGHT, MARGIN, LOOP_ROOM = 230, 96, 36, 12, 30
CHARACTER, BOX_PADDING = 7.4, 20
SIDE_BY_SIDE = 6
"""Half the distance between the two arrows of states with transitions in both directions."""
ARROW_LENGTH = 9
FILL, LINE, TEXT = "#eef2fb", "#3f51b5", "#1f2328"

PARTITION_PLACES = {
    PartitionState.NON_EXISTENT: (0, 0),
    PartitionState.NEW: (1, 0),
    PartitionState.ONLINE: (2, 0),
    PartitionState.OFFLINE: (1, 1),
}
REPLICA_PLACES = {
    ReplicaState.NON_EXISTENT: (0, 0),
    ReplicaState.NEW: (1, 0),
    ReplicaState.ONLINE: (2, 0),
    ReplicaState.OFFLINE: (2, 1),
    ReplicaState.DELETION_INELIGIBLE: (3, 1),
    ReplicaState.DELETION_STARTED: (2, 2),
    ReplicaState.DELETION_SUCCESSFUL: (1, 2),
}
"""Column and row of each state."""

Point = tuple[float, float]


def pictures() -> dict[str, str]:
    """Return the pictures of both state machines as SVG, by file name."""
    return {
        "partition-states.svg": draw(
            "The states of a partition", PARTITION_PREDECESSORS, PARTITION_PLACES
        ),
        "replica-states.svg": draw("The states of a replica", REPLICA_PREDECESSORS, REPLICA_PLACES),
    }


def draw(
    label: str,
    predecessors: Mapping[State, tuple[State, ...]],
    places: Mapping[State, tuple[int, int]],
) -> str:
    """Return a picture with a box per state and an arrow per legal transition; a transition to the
    same state is a loop above or below the box."""
    boxes = {state: _Box(str(state), *places[state]) for state in predecessors}
    below = max(row for _, row in places.values())
    width = max(box.x + box.half_width for box in boxes.values()) + MARGIN
    loops_below = any(
        state in sources and places[state][1] == below > 0
        for state, sources in predecessors.items()
    )
    height = max(box.y for box in boxes.values()) + BOX_HEIGHT / 2 + MARGIN
    height += LOOP_ROOM if loops_below else 0
    parts: list[str] = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" role="img" aria-label="{escape(label)}" font-family="sans-serif" '
        f'font-size="13" fill="{TEXT}">',
        f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>',
    ]
    for target, sources in predecessors.items():
        for source in sources:
            one, other = boxes[source], boxes[target]
            if source is target:
                parts += _loop(one, below=places[source][1] > 0)
            else:
                both_ways = target in predecessors[source]
                parts += _arrow(*_ends(one, other, SIDE_BY_SIDE if both_ways else 0))
    parts += [box.drawn() for box in boxes.values()]
    return "\n".join([*parts, "</svg>", ""])


class _Box:
    """The box of a state; ``x`` and ``y`` are its centre."""

    def __init__(self, name: str, column: int, row: int) -> None:
        self.name = name
        self.half_width = (len(name) * CHARACTER + BOX_PADDING) / 2
        self.x = MARGIN + COLUMN * (column + 0.5) - 20
        self.y = MARGIN + LOOP_ROOM + BOX_HEIGHT / 2 + ROW * row

    def edge(self, from_: Point, toward: Point) -> Point:
        """Return the point where a line from inside leaves the box."""
        dx, dy = toward[0] - from_[0], toward[1] - from_[1]
        steps = []
        if dx:
            side = self.x + math.copysign(self.half_width, dx)
            steps.append((side - from_[0]) / dx)
        if dy:
            side = self.y + math.copysign(BOX_HEIGHT / 2, dy)
            steps.append((side - from_[1]) / dy)
        step = min(steps)
        return from_[0] + dx * step, from_[1] + dy * step

    def drawn(self) -> str:
        left, top = self.x - self.half_width, self.y - BOX_HEIGHT / 2
        return (
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{2 * self.half_width:.1f}" '
            f'height="{BOX_HEIGHT}" rx="6" fill="{FILL}" stroke="{LINE}"/>'
            f'<text x="{self.x:.1f}" y="{self.y + 4.5:.1f}" text-anchor="middle">'
            f"{escape(self.name)}</text>"
        )


def _ends(source: _Box, target: _Box, aside: float) -> tuple[Point, Point]:
    """Return the points where an arrow leaves one box and enters the other; the arrow is moved to
    its right by ``aside``."""
    dx, dy = target.x - source.x, target.y - source.y
    length = math.hypot(dx, dy)
    right = -dy / length * aside, dx / length * aside
    start = source.x + right[0], source.y + right[1]
    end = target.x + right[0], target.y + right[1]
    return source.edge(start, end), target.edge(end, start)


def _arrow(start: Point, end: Point) -> list[str]:
    return [
        f'<path d="M{start[0]:.1f} {start[1]:.1f} L{end[0]:.1f} {end[1]:.1f}" stroke="{LINE}"/>',
        _head(end, math.atan2(end[1] - start[1], end[0] - start[0])),
    ]


def _head(tip: Point, direction: float) -> str:
    corners = [
        (
            tip[0] - ARROW_LENGTH * math.cos(direction + turn),
            tip[1] - ARROW_LENGTH * math.sin(direction + turn),
        )
        for turn in (-0.4, 0.4)
    ]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (tip, *corners))
    return f'<polygon points="{points}" fill="{LINE}"/>'


def _loop(box: _Box, below: bool) -> list[str]:
    """Return an arrow from a box to itself, at the left end of its upper or lower side."""
    sign = 1 if below else -1
    side = box.y + sign * BOX_HEIGHT / 2
    left, right = box.x - box.half_width + 14, box.x - box.half_width + 40
    far = side + sign * LOOP_ROOM
    return [
        f'<path d="M{left:.1f} {side:.1f} C{left - 6:.1f} {far:.1f} {right + 6:.1f} {far:.1f} '
        f'{right:.1f} {side:.1f}" fill="none" stroke="{LINE}"/>',
        _head((right, side), -sign * (math.pi / 2 + 0.15)),
    ]
