"""The report of an exploration as a single HTML page, in the style of the reports of batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..spark_bench.reports.page_parts import escaped, head, table
from .coverage import RUNS_PER_SAMPLE, SAMPLED_KINDS, summarize
from .explorer import ClusterExploration
from .findings import ShortFind, known_defect, shortening, summary
from .history import TARGETS

_STYLE = """
body { max-width: 960px; }
article { border: 1px solid var(--line); border-left: 4px solid #dc3912; border-radius: 4px;
  margin: 1rem 0; padding: .2rem 1rem .8rem; } article.known { border-left-color: #9aa3ad; }
h3 { font-size: 1.05rem; margin: .6rem 0 .2rem; overflow-wrap: anywhere; }
p, li, td { overflow-wrap: anywhere; } ol { font-family: ui-monospace, monospace;
  font-size: .85rem; padding-left: 2.2rem; } li.wait { color: var(--dim); }
pre { background: var(--soft); border-radius: 4px; font-size: .85rem; overflow-x: auto;
  padding: .5rem .7rem; } summary { cursor: pointer; }
"""


def write_page(exploration: ClusterExploration, findings: Sequence[ShortFind], path: Path) -> None:
    """Write the content of ``findings.write_report``, with the steps of each find."""
    title = f"Fault exploration of Kafka {exploration.settings.kafka_version}"
    parts = [*_counts(exploration, findings), "<h2>Finds</h2>"]
    if not findings:
        parts.append("<p>None: every promise was kept.</p>")
    for finding in findings:
        parts += _find(finding)
    parts += _reached(exploration)
    path.write_text(page(title, summary(exploration), parts), encoding="utf-8")


def page(title: str, about: Iterable[str], parts: Iterable[str]) -> str:
    """Return the page of an exploration; ``parts`` are lines of HTML."""
    lines = [
        *head(title, _STYLE),
        f"<h1>{escaped(title)}</h1>",
        *(f'<p class="about">{escaped(line)}</p>' for line in about),
        *parts,
    ]
    return "\n".join([*lines, "</body>", "</html>", ""])


def _counts(exploration: ClusterExploration, findings: Sequence[ShortFind]) -> Iterator[str]:
    known = sum(bool(finding.violation.known) for finding in findings)
    broken = Counter(finding.violation.promise for finding in findings)
    yield from table(
        (),
        (
            ("runs", f"{len(exploration.done):,} of {exploration.settings.runs:,}"),
            ("kinds of violation", f"{len(findings)}; {known} of them known defects of Kafka"),
            ("broken promises", escaped(", ".join(sorted(broken)) or "none")),
            ("runs that reached something new", f"{len(exploration.pool):,}"),
        ),
        9,
    )
    yield "<h2>Runs by target</h2>"
    by_target = sorted(exploration.by_target.items())
    yield from table(
        ("target", "runs"), ((escaped(name), f"{runs:,}") for name, runs in by_target), 1
    )


def _find(finding: ShortFind) -> Iterator[str]:
    """Yield HTML about a find: its promise, what was seen, its steps, and how to repeat it."""
    violation = finding.violation
    yield f'<article class="{"known" if violation.known else "unknown"}">'
    yield f"<h3>{escaped(violation.promise)}</h3>"
    yield f'<p class="about">{escaped(_meaning(violation.promise))}</p>'
    yield f"<p><b>Seen</b> in {finding.runs:,} runs: {escaped(violation.text)}</p>"
    yield f"<p>{escaped(known_defect(violation) or 'Nothing known explains it.')}</p>"
    made = shortening(finding.shrink_runs)
    yield f"<p><b>Steps</b>: {finding.steps} faults and actions{made}</p><ol>"
    for step in finding.history.steps or ():
        yield f'<li class="{"wait" if step.verb == "wait" else "done"}">{escaped(step)}</li>'
    yield f"</ol><pre>{escaped(finding.history.command)}</pre></article>"


def _meaning(promise: str) -> str:
    """Return the description of a promise, as ``fakekafka explore promises`` prints it."""
    for kind in TARGETS.values():
        for one in kind.promises:
            if one.name() == promise:
                return " ".join((one.__doc__ or "").partition("\n\n")[0].split())
    return ""


def _reached(exploration: ClusterExploration) -> Iterator[str]:
    yield "<h2>What was reached</h2>"
    looked = " and ".join(f"{kind}s" for kind in SAMPLED_KINDS)
    yield (
        f'<p class="about">Only one run in {RUNS_PER_SAMPLE}, chosen by its seed, inspects '
        f"{escaped(looked)}.</p>"
    )
    rows = []
    for reached in summarize(exploration.reached, exploration.settings.kafka_version):
        never = ""
        if reached.unreached:
            names = escaped(", ".join(reached.unreached))
            never = f"<details><summary>{len(reached.unreached)} names</summary>{names}</details>"
        of = "" if reached.total is None else f"{reached.total:,}"
        rows.append((escaped(reached.kind), f"{reached.reached:,}", of, never))
    yield from table(("kind", "reached", "of", "never"), rows, 9)
