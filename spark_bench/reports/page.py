"""The report as a self-contained HTML file: what was run, figures, tables, outliers."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from ...protocol.errors import UsageError
from ..tables.schema import BUCKET_RULE
from .figures import Figure, figures, wrapped
from .page_parts import escaped, head, table
from .results import FAILED, bounded_columns
from .source import ReportConfiguration, ReportSource, number_in
from .statistics import Reading

_SHOWN_NUMBERS = 14
_COLUMNS_PER_TABLE = 7
"""Maximum number of columns with numbers in a table, as more do not fit on a small laptop."""
_SLOWEST = 5
_BROKEN = 20
_SCRIPT = """
const figures = JSON.parse(document.getElementById("figures").textContent);
function drawAll() {
  const style = getComputedStyle(document.documentElement);
  const text = style.getPropertyValue("--text"), line = style.getPropertyValue("--line");
  for (const figure of figures) {
    const axis = {gridcolor: line, zerolinecolor: line, automargin: true};
    const layout = {paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: {color: text}, margin: {t: 50, r: 20},
      legend: {orientation: "h", y: 1.02, yanchor: "bottom", x: 0, traceorder: "normal"},
      modebar: {bgcolor: "rgba(0,0,0,0)", color: line, activecolor: text},
      ...figure.layout, xaxis: {...axis, ...figure.layout.xaxis},
      yaxis: {...axis, ...figure.layout.yaxis}};
    Plotly.react(figure.key, figure.data, layout, {responsive: true, displaylogo: false});
  }
}
drawAll();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
"""


def write_page(source: ReportSource, path: Path) -> list[Figure]:
    """Write the page and return its figures. Raises ``UsageError`` if plotly is not installed."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise UsageError("a report needs plotly: pip install 'fakekafka[spark]'") from None
    figures_shown = list(figures(source))
    data = json.dumps([_plotly(figure) for figure in figures_shown]).replace("</", "<\\/")
    parts = [
        *head(f"{source.suite}: a batch of fakekafka"), *_facts_section(source),
        *_headline_table(source),
    ]  # fmt: skip
    for figure in figures_shown:
        parts += [
            f"<h2>{escaped(figure.title)}</h2>",
            f'<p class="about">{escaped(figure.about)}</p>',
            f'<div class="wide"><div class="{_size(figure)}" id="{figure.key}"></div></div>',
        ]
        if figure.key == "published":
            parts += _published_table(source)
    parts += [*_slowest_runs(source), *_failed_runs(source), *_method(source)]
    parts += [
        f'<script type="application/json" id="figures">{data}</script>',
        f"<script>{get_plotlyjs()}</script>", f"<script>{_SCRIPT}</script>", "</body>", "</html>",
    ]  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(parts), encoding="utf-8")
    return figures_shown


def _size(figure: Figure) -> str:
    """Return the CSS classes of a figure: the names of many configurations are vertical, and need
    room below the drawing."""
    is_crowded = sum(isinstance(label, str) for label in figure.curves[0].x) > 6
    return "figure crowded" if is_crowded else "figure"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 999.5 or value == int(value) else f"{value:,.3g}"


def _facts_section(source: ReportSource) -> list[str]:
    facts, machine = source.facts, source.facts["machine"]
    rows = source.rows
    ok = sum(row["status"] == "ok" for row in rows)
    varied = facts["varied"]
    fixed = {
        name: value
        for name, value in source.configurations[0].parameters.items()
        if name not in varied
    }
    seconds = sum(source.tables.cost("arrow")["wall_ms"].to_pylist()) / 1000
    facts_rows = [
        ("runs", f"{len(rows):,} of {facts['runs']:,}; {ok:,} kept every promise"),
        ("seeds", f"{facts['seeds'][0]} to {facts['seeds'][1]}, the same for every configuration"),
        ("varied", ", ".join(varied) or "nothing but the seed"),
        ("the same everywhere", ", ".join(f"{name}={value}" for name, value in fixed.items())),
        ("budget of a run", ", ".join(f"{k} {v:,g}" if v < 1e6 else f"{k} {v:,.0f}"
                                      for k, v in facts["budget"].items() if v)),
        ("carried out by", f"{facts['engine']} on {machine['cores']} cores, Python "
         f"{machine['python']}, {machine['system']}; {seconds:,.1f} s of one core"),
        ("batch", facts["batch_id"]),
    ]  # fmt: skip
    return [
        f"<h1>{escaped(source.suite)}</h1>",
        f'<p class="about">{escaped(facts["about"])}. Simulated clusters in virtual time.</p>',
        *table((), (map(escaped, row) for row in facts_rows), 9),
    ]


def _headline_table(source: ReportSource) -> list[str]:
    numbers = source.numbers()[:_SHOWN_NUMBERS]
    count = max(1, math.ceil(len(numbers) / _COLUMNS_PER_TABLE))
    per_table = math.ceil(len(numbers) / count)
    tables = []
    for begin in range(0, max(1, len(numbers)), max(1, per_table)):
        columns = numbers[begin : begin + per_table]
        heads = ["configuration", "runs", *(_head(source, name) for name in columns)]
        rows = []
        for configuration in source.configurations:
            cells = [
                escaped(configuration.label or "the defaults"),
                f"{configuration.ok}&nbsp;of&nbsp;{len(configuration.rows)}",
            ]
            rows.append([*cells, *(_cell(configuration, name) for name in columns)])
        tables += table(heads, rows, 1)
    return [
        "<h2>Medians over the seeds</h2>",
        '<p class="about">With the 95 % interval of the median, and the worst seed below. Point at '
        "a name to read what it is.</p>",
        *tables,
    ]


def _head(source: ReportSource, name: str) -> str:
    """Return the head of a column, whose name may wrap after each of its words."""
    wrappable = escaped(name).replace("_", "_<wbr>")
    return f'<span title="{escaped(source.doc(name))}">{wrappable}</span>'


def _cell(configuration: ReportConfiguration, name: str) -> str:
    observed = configuration.observed(name)
    if not observed.values and not observed.bounds:
        return f"no value in {observed.failed} failed runs" if observed.failed else ""
    text = f"<b>{_reading(observed.percentile(50))}</b>"
    interval = observed.interval(50)
    if interval is not None and interval[0] != interval[1]:
        text += f"<br>{_reading(interval[0])} to {_reading(interval[1])}"
    text += f"<br>max&nbsp;{_reading(observed.percentile(100))}"
    return text + (f"<br>{observed.incomplete}" if observed.incomplete else "")


def _reading(reading: Reading) -> str:
    if reading.value is None:
        return "unknown"
    return ("more&nbsp;than&nbsp;" if reading.is_bound else "") + _number(reading.value)


def _published_table(source: ReportSource) -> list[str]:
    rows = [
        (
            escaped(pair.title),
            escaped(pair.source),
            " / ".join(map(_number, pair.measured)),
            " / ".join(map(_number, pair.published)),
            f"{pair.ratio:.2f}",
            f"{pair.published_ratio:.2f}",
            f"{pair.off:+.0%}",
        )
        for pair in source.published()
    ]
    heads = ("what", "published in", "this batch, s", "published, s", "ratio", "published", "off")
    return table(heads, rows, 2)


def _slowest_runs(source: ReportSource) -> list[str]:
    """Return the section about the worst runs; failed and open ones come first."""
    name = source.headline
    ranked = []
    for row in source.rows:
        value = number_in(row, name)
        is_bound = name in bounded_columns(row)
        if value is not None or row["status"] in FAILED:
            ranked.append((value is None, is_bound, value or 0.0, row["run_id"], row))
    ranked.sort(key=lambda one: (*(-part for part in one[:3]), one[3]))
    cells = [
        (
            "unknown" if is_unknown else _reading(Reading(value, is_bound)),
            f"<code>{escaped(_trace_command(row))}</code>",
        )
        for is_unknown, is_bound, value, _, row in ranked[:_SLOWEST]
    ]
    return [
        f"<h2>The runs with the largest {escaped(name)}</h2>",
        '<p class="about">Each command records its run; <code>fakekafka trace story FILE</code> '
        "then tells what happened.</p>",
        *table((escaped(name), "command"), cells, 9),
    ]


def _trace_command(row: dict[str, Any]) -> str:
    """Return the command that records a run, made from the one that repeats it."""
    command = str(row["reproduce"]).replace("bench run", "bench trace", 1)
    return command.replace(" --runs 1 --no-matrix --engine serial", "")


def _failed_runs(source: ReportSource) -> list[str]:
    rows = [row for row in source.rows if row["status"] != "ok"]
    unfinished = [f"<p>{escaped(line)}.</p>" for line in source.unfinished()]
    if not rows and unfinished:
        return ["<h2>Promises</h2>", "<p>Every run kept every promise that it came to.</p>",
                *unfinished]  # fmt: skip
    if not rows:
        return [
            "<h2>Promises</h2>",
            "<p>Every run ended, and kept every promise: no acknowledged record was lost or stored "
            "twice where Kafka promises that, and all replicas were the same.</p>",
        ]
    cells = [
        (
            escaped(row["status"]),
            escaped(row["problems"]),
            f"<code>{escaped(row['reproduce'])}</code>",
        )
        for row in rows[:_BROKEN]
    ]
    remaining = len(rows) - len(cells)
    remaining_note = (
        [f"<p>{remaining} more are in the table <code>runs</code>.</p>"] if remaining else []
    )
    return [f"<h2>{len(rows)} runs that are not ok</h2>", *unfinished,
            *remaining_note, *table(("status", "problem", "command"), cells, 9)]  # fmt: skip


def _method(source: ReportSource) -> list[str]:
    return [
        "<h2>Method</h2>",
        "<p>Response times count from the moment at which a record arrived. In an open loop "
        "records arrive on a schedule that no outage holds up, so an outage counts in full; "
        "metrics of closed loops are named so. "
        "What had not ended when a run did, and records that were given up, rank as worst: their "
        "percentiles are lower bounds. Runs that failed rank as worst, too. "
        "What arrives during the warm-up is not measured. "
        "Intervals are over runs, because values inside one run depend on each other. Histograms: "
        f"{escaped(BUCKET_RULE)} Virtual time passes only where the model says so: compare "
        "configurations, and do not take a figure for that of your machines.</p>",
        f'<p class="about">Made from the tables in {escaped(source.tables.directory.name)}.</p>',
    ]


def _plotly(figure: Figure) -> dict[str, Any]:
    data: list[dict[str, Any]] = []
    for number, curve in enumerate(figure.curves):
        x = [wrapped(one, "<br>") for one in curve.x]
        common: dict[str, Any] = {"name": curve.name, "x": x, "y": curve.y}
        if curve.kind == "bars":
            data.append({"type": "bar", **common})
        elif curve.kind == "points":
            marker = {"symbol": "circle" if number == 0 else "x-thin-open", "size": 9,
                      "color": _COLOURS[number], "line": {"width": number * 2}}  # fmt: skip
            points = {"type": "scatter", "mode": "markers", "marker": marker, **common}
            if curve.low:
                points["error_y"] = {
                    "type": "data",
                    "symmetric": False,
                    "array": [0 if high is None else high - y for y, high in
                              zip(curve.y, curve.high, strict=True)],
                    "arrayminus": [0 if low is None else y - low for y, low in
                                   zip(curve.y, curve.low, strict=True)],
                }  # fmt: skip
            data.append(points)
        else:
            data += _lines(curve, number, common)
    return {
        "key": figure.key,
        "data": data,
        "layout": {
            "xaxis": _axis(figure.x_title, figure.log_x),
            "yaxis": _axis(figure.y_title, figure.log_y),
            **({"barmode": "stack"} if figure.stacked else {}),
        },
    }


_COLOURS = ("#3366cc", "#dc3912", "#109618", "#ff9900", "#990099", "#0099c6", "#dd4477", "#66aa00",
            "#b82e2e", "#316395", "#994499", "#22aa99")  # fmt: skip
_DASHES = ("solid", "dash", "dot", "dashdot")
_SYMBOLS = ("circle-open", "square-open", "diamond-open", "cross-open", "x-open",
            "triangle-up-open")  # fmt: skip


def _lines(curve: Any, number: int, common: dict[str, Any]) -> list[dict[str, Any]]:
    colour = _COLOURS[number % len(_COLOURS)]
    # Curves of equal values cover each other: the lower ones show through the gaps.
    shape = {"color": colour, "dash": _DASHES[number % len(_DASHES)]}
    line = {"type": "scatter", "mode": "lines", "line": shape, **common}
    if curve.is_short:
        symbol = _SYMBOLS[number % len(_SYMBOLS)]
        size = 8 + 3 * (number % len(_SYMBOLS))  # so that symbols of equal values are nested
        marker = {"symbol": symbol, "size": size, "color": colour, "line": {"width": 2}}
        line |= {"mode": "lines+markers", "marker": marker}
    if curve.kind != "band":
        return [line]
    edge = {"type": "scatter", "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip",
            "showlegend": False, "x": curve.x}  # fmt: skip
    return [
        {**edge, "y": curve.low},
        {**edge, "y": curve.high, "fill": "tonexty", "fillcolor": colour + "33"},
        line,
    ]


def _axis(title: str, is_logarithmic: bool) -> dict[str, Any]:
    axis: dict[str, Any] = {"title": {"text": title}}
    return {**axis, "type": "log"} if is_logarithmic else axis
