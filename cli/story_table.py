"""A story as text: after each step the partition, every replica's log, and answers to clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..scenarios.story.logs import format_epochs
from ..scenarios.story.state import StoryState, broker_name, format_isr

if TYPE_CHECKING:
    from ..scenarios.story.play import StepResult, StoryResult


def story_lines(result: StoryResult) -> list[str]:
    """Return the steps of one run and its outcome as lines."""
    names = {broker_id: name for name, broker_id in result.story.names.items()}
    name_width = max(map(len, names.values()))
    log_width = max(
        (len(replica.log) for step in result.steps for replica in step.state.replicas.values()),
        default=0,
    )
    lines: list[str] = []
    before: StepResult | None = None
    for number, step in enumerate(result.steps):
        state = step.state
        lines.append(f"{number:2} {step.name}")
        lines.append(
            f"     leader {broker_name(state.leader, names)}, epoch {state.leader_epoch}, "
            f"isr {format_isr(state.isr, names)}"
        )
        for broker_id, replica in state.replicas.items():
            epochs = format_epochs(replica.epochs)
            line = (
                f"     {names[broker_id]:{name_width}} {replica.role:8} {replica.log:{log_width}} "
                f"HW {replica.high_watermark}{' on disk' if replica.role == 'off' else ''}"
                f"{f'  epochs {epochs}' if epochs else ''}"
            )
            lines.append(line)
        lines += [f"     {text}" for text in news(state, None if before is None else before.state)]
        before = step
    if result.outcome is not None:
        lines.append(f"   {outcome_text(result)}")
    return lines


def news(state: StoryState, before: StoryState | None) -> list[str]:
    """Return lines about the answers to clients since the previous step; neighbours with the same
    answer share a line."""
    told: list[tuple[list[str], str]] = []
    for name, answer in state.answers.items():
        if before is not None and before.answers.get(name) == answer:
            continue
        short = answer.partition(" at ")[0] if answer.startswith("acknowledged") else answer
        if told and told[-1][1] == short:
            told[-1][0].append(name)
        else:
            told.append(([name], short))
    lines = []
    for values, answer in told:
        if len(values) == 1:
            lines.append(f"{values[0]}: {state.answers[values[0]]}")
        elif len(values) == 2:
            lines.append(f"{values[0]}, {values[1]}: {answer}")
        else:
            lines.append(f"{values[0]}..{values[-1]}: {answer}")
    return lines


def outcome_text(result: StoryResult) -> str:
    """Return the outcome, which is derived from the last state of the run, in one line."""
    assert result.outcome is not None
    return "=> " + "; ".join(result.outcome.sentences)


def story_json(result: StoryResult) -> dict[str, Any]:
    """Return the steps and the outcome of one run as plain data."""
    names = {broker_id: name for name, broker_id in result.story.names.items()}
    outcome = result.outcome
    return {
        "kafka_version": result.kafka_version,
        "steps": [
            {
                "name": step.name,
                "at_ms": step.at_ms,
                "leader": broker_name(step.state.leader, names),
                "leader_epoch": step.state.leader_epoch,
                "isr": [broker_name(broker_id, names) for broker_id in step.state.isr],
                "replicas": {
                    names[broker_id]: {
                        "role": replica.role,
                        "log": replica.log,
                        "log_end_offset": len(replica.records),
                        "high_watermark": replica.high_watermark,
                        "epochs": [list(entry) for entry in replica.epochs],
                    }
                    for broker_id, replica in step.state.replicas.items()
                },
                "answers": step.state.answers,
            }
            for step in result.steps
        ],
        "outcome": None
        if outcome is None
        else {
            "lost": list(outcome.lost),
            "duplicated": list(outcome.duplicated),
            "differ_at": outcome.differ_at,
            "text": "; ".join(outcome.sentences),
        },
    }
