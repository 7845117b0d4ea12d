"""The figures of a report as PNG files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...protocol.errors import UsageError
from .figures import Curve, Figure, wrapped

_INCHES = (9.0, 5.0)
_DASHES = ("-", "--", ":", "-.")
"""Line styles: where curves of equal values cover each other, lower ones show through the gaps."""
_MARKERS = ("o", "s", "D", "P", "X", "^")


def draw(figures: list[Figure], folder: Path) -> list[Path]:
    """Write ``KEY.png`` for each figure; raise ``UsageError`` if matplotlib is not installed."""
    try:
        import matplotlib.figure
    except ImportError:
        raise UsageError("pictures need matplotlib: pip install 'fakekafka[spark]'") from None
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for figure in figures:
        drawing = matplotlib.figure.Figure(figsize=_INCHES, layout="constrained")
        axes = drawing.add_subplot()
        _draw(axes, figure)
        path = folder / f"{figure.key}.png"
        drawing.savefig(path, dpi=110)
        written.append(path)
    return written


def _draw(axes: Any, figure: Figure) -> None:
    for curve in figure.curves:
        curve.x = [wrapped(one, "\n") for one in curve.x]
    if any(isinstance(one, str) for one in figure.curves[0].x):
        axes.tick_params(axis="x", labelsize="x-small")
    bottoms: dict[Any, float] = {}
    bars = [curve for curve in figure.curves if curve.kind == "bars"]
    for number, curve in enumerate(figure.curves):
        if curve.kind == "bars":
            _draw_bars(axes, figure, curve, bars.index(curve), len(bars), bottoms)
        elif curve.kind == "points":
            _draw_points(axes, curve, number)
        else:
            marker = _MARKERS[number % len(_MARKERS)] if curve.is_short else None
            (line,) = axes.plot(
                curve.x, curve.y, label=curve.name, linewidth=1.5, marker=marker,
                fillstyle="none", linestyle=_DASHES[number % len(_DASHES)],
            )  # fmt: skip
            if curve.kind == "band":
                axes.fill_between(curve.x, curve.low, curve.high, alpha=0.2, color=line.get_color())
    if figure.log_x:
        axes.set_xscale("log")
    if figure.log_y:
        axes.set_yscale("log")
    axes.set_title(figure.title)
    axes.set_xlabel(figure.x_title)
    axes.set_ylabel(figure.y_title)
    axes.grid(alpha=0.3)
    names = [curve.name for curve in figure.curves if curve.name]
    if len(names) > 1:
        axes.legend(fontsize="small")


def _draw_bars(
    axes: Any, figure: Figure, curve: Curve, place: int, count: int, bottoms: dict[Any, float]
) -> None:
    if figure.stacked:
        begin = [bottoms.get(x, 0.0) for x in curve.x]
        axes.bar(curve.x, curve.y, bottom=begin, label=curve.name)
        for x, y in zip(curve.x, curve.y, strict=True):
            bottoms[x] = bottoms.get(x, 0.0) + y
        return
    width = 0.8 / count
    at = [number + (place - (count - 1) / 2) * width for number in range(len(curve.x))]
    axes.bar(at, curve.y, width=width, label=curve.name)
    axes.set_xticks(range(len(curve.x)), curve.x)


def _draw_points(axes: Any, curve: Curve, number: int) -> None:
    errors = None
    if curve.low:
        errors = [
            [0.0 if low is None else y - low for y, low in zip(curve.y, curve.low, strict=True)],
            [0.0 if high is None else high - y for y, high in zip(curve.y, curve.high,
                                                                  strict=True)],
        ]  # fmt: skip
    marker = "o" if number == 0 else "x"
    axes.errorbar(curve.x, curve.y, yerr=errors, fmt=marker, capsize=4, label=curve.name)
