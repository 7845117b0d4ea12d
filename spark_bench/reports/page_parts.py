"""Common parts of report pages, each of which is a self-contained HTML file.

Pages are dark if the reader's system is; on a phone wide tables scroll on their own. Every text
from outside goes through ``escaped``.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

STYLE = """
:root { color-scheme: light dark; --text: #1c1e21; --back: #fff; --line: #d6d9de; --soft: #f3f4f6;
  --dim: #5b6470; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e8eb; --back: #15181c; --line: #3a4048; --soft: #1f242a; --dim: #a2abb6; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back);
  margin: 0 auto; max-width: 1200px; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.7rem; margin: 0 0 .2rem; } h2 { font-size: 1.25rem; margin: 2.4rem 0 .4rem; }
p.about { color: var(--dim); margin: .2rem 0 .8rem; }
.wide { overflow-x: auto; margin-bottom: 1rem; } .figure { height: 440px; }
.figure.crowded { height: 620px; }
td:first-child { min-width: 11rem; }
table { border-collapse: collapse; font-size: .88rem; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: left;
  vertical-align: top; } th { background: var(--soft); }
.number { text-align: right; font-variant-numeric: tabular-nums; }
code { background: var(--soft); padding: .1rem .3rem; border-radius: 4px; font-size: .85em; }
"""


def escaped(value: object) -> str:
    """Escape a value for HTML."""
    return html.escape(str(value))


def head(title: str, style: str = "") -> list[str]:
    """Return the lines of a page up to the start of its body; ``style`` extends the common one."""
    return [
        "<!doctype html>", '<html lang="en">', "<head>", '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escaped(title)}</title>", f"<style>{STYLE}{style}</style>", "</head>", "<body>",
    ]  # fmt: skip


def table(heads: Iterable[str], rows: Iterable[Iterable[str]], numbers_from: int) -> list[str]:
    """Return the lines of a table. Cells are HTML; from column ``numbers_from`` on, numbers."""
    lines = ['<div class="wide"><table>']
    names = "".join(
        f'<th class="number">{head}</th>' if place >= numbers_from else f"<th>{head}</th>"
        for place, head in enumerate(heads)
    )
    lines.append(f"<thead><tr>{names}</tr></thead><tbody>" if names else "<tbody>")
    for row in rows:
        cells = (
            f'<td class="number">{cell}</td>' if place >= numbers_from else f"<td>{cell}</td>"
            for place, cell in enumerate(row)
        )
        lines.append(f"<tr>{''.join(cells)}</tr>")
    lines.append("</tbody></table></div>")
    return lines
