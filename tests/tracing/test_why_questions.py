"""Questions "why did this (not) happen": the chain of causes names the fault or the rule.

The table is that of the page in the gallery (docs/trace_questions.py). A question about something
that did not happen is asked about the event at which it finally happened, as the cause of that
event had been missing.
"""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from fakekafka.docs.trace_questions import (
    OPEN_TRANSACTION,
    QUESTIONS,
    RUNS,
    Question,
    answer_to,
    trace_of,
)
from fakekafka.tests.support.paths import ROOT
from fakekafka.tracing.events import ROOT_KINDS
from fakekafka.tracing.text import format_event

pytestmark = pytest.mark.xdist_group("trace questions")


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.text)
def test_the_causes_name_the_fault_or_the_rule(question: Question) -> None:
    """Each answer has the expected causes in order, in at most ten lines."""
    chain = answer_to(question)
    told = "\n".join(format_event(event) for event in chain)
    at = 0
    for name in question.names:
        at = told.find(name, at)
        assert at >= 0, f"{name!r} does not come next in\n{told}"
    assert len(chain) <= 10, told


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.text)
def test_each_line_of_an_answer_happened_before_the_line_above(question: Question) -> None:
    """Each answer goes back in time to a fault, a step, a client's operation or the start."""
    chain = answer_to(question)
    for later, earlier in pairwise(chain):
        assert earlier.seq < later.seq
        assert earlier.time_us <= later.time_us
    assert chain[-1].kind in ROOT_KINDS


def test_twenty_different_questions_cover_all_runs() -> None:
    """Every question is unique, covers a run, and cites a rule on an existing page."""
    assert len({question.text for question in QUESTIONS}) == len(QUESTIONS) >= 20
    assert {question.run for question in QUESTIONS} == {*RUNS, OPEN_TRANSACTION}
    for question in QUESTIONS:
        page, _, part = question.rule.partition("#")
        text = (ROOT / "docs" / "kafka" / page).read_text(encoding="utf-8")
        titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        assert not part or part in [re.sub(r"\W+", "-", title.lower()) for title in titles]


def test_an_old_election_does_not_explain_an_acknowledgement_before_it() -> None:
    """A record acknowledged before any fault is not explained by an earlier election."""
    trace = trace_of("leader_crash_acks_all")
    chain = trace.why("kind == client_ok and why == 'offset 0'")
    assert chain[-1].kind == "client_invoke"
    assert all(event.kind not in ("crash", "expire") for event in chain)
