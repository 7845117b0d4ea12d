"""The nine questions: the answers of their scenarios for every emulated version."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import pytest
from fakekafka.cli.main import main
from fakekafka.election import strategies
from fakekafka.protocol.errors import UsageError
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.scenarios.questions.catalogue import QUESTIONS, Answer, answer
from fakekafka.scenarios.questions.probe import Finding
from fakekafka.statemachines.machines import partition_machine as partition_state_machine
from fakekafka.tests.support.paths import ROOT

every_version = pytest.mark.parametrize("version", JUDGED_VERSIONS)


@pytest.fixture(autouse=True)
def _plain_output(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


@cache
def found(number: int, version: str) -> Finding:
    finding = answer(number, [version]).findings[version]
    assert finding.contradictions == []
    return finding


@every_version
def test_question_1_every_legal_change_is_seen_and_no_other(version: str) -> None:
    """A partition shows the four states and the 8 legal changes of 16
    (docs/kafka/partition-states.md); a refused change leaves the state."""
    facts = found(1, version).facts
    assert facts["seen"] == facts["legal"]
    assert len(facts["legal"]) == 8
    assert facts["state_after_refusal"] == "OnlinePartition"
    assert "cannot move from OnlinePartition to NonExistentPartition" in facts["refusal"]


@every_version
def test_question_2_the_first_online_replica_leads_a_new_topic(version: str) -> None:
    """Initialisation uses no election strategy; dead replicas are not in the first ISR
    (docs/kafka/partition-states.md#initialisation)."""
    facts = found(2, version).facts
    assert facts["all-alive"] == {"leader": 3, "epoch": 0, "isr": [3, 4, 2]}
    assert facts["first-dead"] == {"leader": 4, "epoch": 0, "isr": [4, 2]}
    assert facts["none_alive_state"] == "NewPartition"
    assert facts["none-alive"] == {"leader": 3, "epoch": 0, "isr": [3]}
    assert facts["elected_by_strategy"] == []


@every_version
def test_question_3_an_outsider_leads_only_by_unclean_election(version: str) -> None:
    """A replica outside the ISR leads only by unclean election, which is on by default before 0.11
    (docs/kafka/election.md#unclean-election)."""
    facts = found(3, version).facts
    assert facts["off"]["leader_after_outsider"] is None
    assert (facts["off"]["leader_at_end"], facts["off"]["lost"]) == (2, 0)
    assert (facts["on"]["leader_after_outsider"], facts["on"]["lost"]) == (4, 3)
    assert facts["on"]["unclean_elections"] == 1
    assert facts["unclean_default"] is (version == "0.10")
    default = facts["on" if version == "0.10" else "off"]
    assert facts["default"] == default


@every_version
def test_question_3_the_last_isr_member_stays(version: str) -> None:
    """The last member stays in the ISR; up to 1.0 the ISR became empty where unclean election was
    on (docs/kafka/replica-states.md)."""
    facts = found(3, version).facts
    assert facts["off"]["isr_when_all_dead"] == [2]
    assert facts["on"]["isr_when_all_dead"] == ([] if version == "0.10" else [2])


@every_version
def test_question_4_the_last_isr_member_leads_not_the_first_to_start(version: str) -> None:
    """Without unclean election the last ISR member leads, whenever it starts; with it, the first
    replica to start leads."""
    facts = found(4, version).facts
    assert facts["4, then 3, then 2, unclean off"]["leaders"] == [None, None, 2]
    assert facts["4, then 3, then 2, unclean on"]["leaders"] == [4, 4, 4]
    assert facts["all at once, unclean off"]["leaders"] == [None, None, 4]
    assert facts["all at once, unclean off"]["isr"] == [4]
    assert facts["all at once, unclean on"]["leaders"] == [2, 2, 2]


@every_version
def test_question_5_leadership_returns_only_by_a_preferred_election(version: str) -> None:
    """A broker that starts gets no leadership back until a preferred election or the rebalance
    every 300 s (docs/kafka/brokers.md#a-broker-appears)."""
    facts = found(5, version).facts
    assert (facts["leader_after_crash"], facts["leader_after_return"]) == (3, 3)
    assert facts["role_after_return"] == "follower"
    assert 2 in facts["isr_after_catching_up"]
    assert 0 < facts["rebalanced_after_ms"] <= 600_000
    assert (facts["off_later"], facts["off_elected"]) == (3, 2)


@every_version
def test_question_6_clients_retry_and_lose_nothing(version: str) -> None:
    """With acks=all, over a crash and a move, every acknowledged record is stored once and read
    once."""
    facts = found(6, version).facts
    assert facts["acknowledged"] == facts["sent"] == facts["read"] == facts["stored"]
    assert (facts["lost"], facts["doubled"]) == (0, 0)
    assert facts["retries"] > 0
    assert facts["idempotent"] is (version != "0.10")
    assert facts["move"]["errors_producer"] == {"NOT_LEADER_OR_FOLLOWER": 1}
    assert facts["crash"]["metadata_producer"] > 10


@every_version
def test_question_7_a_crash_costs_the_session_a_move_the_back_off(version: str) -> None:
    """Clients wait for a session to expire or for a controlled shutdown; sessions last 6 s before
    2.5, 18 s since."""
    facts = found(7, version).facts
    crash = facts["crash"]
    session_ms = 6000 if version in ("0.10", "1.1") else 18_000
    assert crash["session_ms"] == session_ms
    assert session_ms * 0.6 < crash["led_ms"] < session_ms * 1.5
    assert (crash["path"], crash["epoch"]) == ("Online > Offline > Online", [0, 1])
    for name in ("controlled shutdown", "preferred election"):
        assert facts[name]["path"] == "Online > Online"
        assert facts[name]["led_ms"] < 1000
    assert crash["followed_ms"] > session_ms / 2
    assert crash["apart_ms"] <= 40


@every_version
def test_question_8_replicas_leave_the_isr_with_the_session(version: str) -> None:
    """The controller removes a dead broker from each ISR at once, except as its last member
    (docs/kafka/articles.md#claims)."""
    facts = found(8, version).facts
    for role in ("follower", "leader"):
        assert facts[role]["isr_soon"] == facts[role]["isr_before"]
        assert facts[role]["epoch_after"] == facts[role]["epoch_before"] + 1
        assert facts[role]["left_after_ms"] < facts["lag_ms"]
        assert facts[role]["controller_knew"]
    assert facts["last member"]["isr_after"] == ([] if version == "0.10" else [3])
    assert facts["last member"]["leader"] is None


@every_version
def test_question_9_two_events_two_strategies(version: str) -> None:
    """The second election pass covers the partitions that the first could not move
    (docs/kafka/brokers.md#controlled-shutdown)."""
    facts = found(9, version).facts
    controlled = facts["controlled"]
    assert controlled["strategies"] == ["ControlledShutdown", "Offline"]
    assert controlled["partitions"] == [["moved-0"], ["single-0"]]
    assert controlled["moved_by_request"] == {"leader": 3, "epoch": 1, "isr": [3, 4]}
    assert controlled["single_at_end"]["leader"] is None
    assert controlled["single_at_end"]["state"] == "OfflinePartition"
    assert facts["abrupt"]["strategies"] == ["Offline"]


def test_a_claim_without_facts_is_a_contradiction() -> None:
    """A question prints no conclusion that its run did not show."""
    finding = Finding(("what",))
    finding.claim(True, "this holds")
    finding.claim(False, "this does not")
    answered = Answer(1, "?", {"3.9": finding})
    assert not answered.holds
    assert answered.conclusions == [(("3.9",), "This holds.")]
    assert answered.contradictions == [(("3.9",), "this does not")]


def test_an_emulation_that_elects_any_replica_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers come from the run: with an emulation that elects any replica they are
    contradicted."""
    elect = strategies.leader_for_offline

    def elect_anybody(partitions: Any, *more: Any) -> Any:
        anybody = [(partition, stored, True) for partition, stored, _ in partitions]
        return elect(anybody, *more)

    monkeypatch.setattr(partition_state_machine, "leader_for_offline", elect_anybody)
    answered = answer(3, ["3.9"])
    assert not answered.holds
    assert any("does not become leader" in claim for _, claim in answered.contradictions)


def test_facts_shared_by_versions_are_printed_once() -> None:
    """Rows and clauses that several versions share are printed once, with those versions."""
    old, new = Finding(("what",)), Finding(("what",))
    for finding, own in ((old, "old"), (new, "new")):
        finding.row("shared")
        finding.row(own)
        finding.claim(True, "both")
        finding.claim(True, own)
    answered = Answer(1, "?", {"0.10": old, "3.9": new})
    both = ("0.10", "3.9")
    assert answered.rows == [(both, ("shared",)), (("0.10",), ("old",)), (("3.9",), ("new",))]
    assert answered.conclusions == [(both, "Both."), (("0.10",), "Old."), (("3.9",), "New.")]


def test_a_row_must_fit_its_columns() -> None:
    """A row with more cells than the table has columns is a bug of the scenario."""
    with pytest.raises(ValueError, match="2 cells"):
        Finding(("what",)).row("a", "b")


@pytest.mark.parametrize(
    ("number", "versions"), [(10, ["3.9"]), (0, ["3.9"]), (1, ["3.10"]), (1, [])]
)
def test_unknown_questions_and_versions_are_refused(number: int, versions: list[str]) -> None:
    """Unknown questions and versions are refused before any scenario runs."""
    with pytest.raises(UsageError):
        answer(number, versions)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["questions", *arguments])
    return ended.value.code, *capsys.readouterr()


def test_the_command_prints_states_and_conclusion(capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints question, table and sentence, with status 0 if the facts support the
    claim."""
    status, out, _ = run(capsys, "--question", "2", "--kafka-version", "2.8")
    assert status == 0
    assert "2. How is the leader of a new topic chosen?" in out
    assert "[3, 4, 2]" in out
    assert "The leader is the first assigned replica that is online" in out


def test_the_command_answers_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """With --json the command prints one document with the facts per version."""
    status, out, _ = run(
        capsys, "--json", "--question", "3", "--kafka-version", "0.10", "--kafka-version", "3.9"
    )
    document = json.loads(out)
    assert (status, document["holds"]) == (0, True)
    (question,) = document["questions"]
    assert list(question["versions"]) == ["0.10", "3.9"]
    assert question["versions"]["0.10"]["facts"]["default"]["leader_after_outsider"] == 4


def test_the_command_ends_with_1_when_a_claim_is_not_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command prints the contradiction and ends with status 1 when a claim is not shown."""

    def unproved(_version: str) -> Finding:
        finding = Finding(("what",))
        finding.row("seen")
        finding.claim(False, "pigs fly")
        return finding

    monkeypatch.setitem(QUESTIONS, 1, ("Do pigs fly?", unproved))
    status, out, _ = run(capsys, "--question", "1")
    assert status == 1
    assert "NOT SHOWN by the run (version all): pigs fly" in out


def test_a_wrong_number_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong number ends the command with status 2 and a list of the existing numbers."""
    status, _, err = run(capsys, "--question", "12")
    assert status == 2
    assert "1 to 9" in err


@pytest.mark.slow
def test_the_guide_shows_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """docs/guides/questions.md holds the output of `fakekafka questions`; if this fails, paste it
    again."""
    status, out, _ = run(capsys)
    assert status == 0
    guide = (ROOT / "docs/guides/questions.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```text\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    assert "\n".join(blocks) == re.sub(r"[ \t]+$", "", out, flags=re.MULTILINE).rstrip() + "\n"
