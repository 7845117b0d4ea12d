"""The gallery: five runs, each as a trace and as a page to open, with pictures and explanations.

python docs/trace_gallery.py [FOLDER]    write the traces and their pages (out/gallery), verify each

The build of the documentation site generates the gallery, see docs/site_hooks.py: no part of it is
in the repository, so it cannot be stale.
"""

from __future__ import annotations

import functools
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fakekafka import Trace, open_trace
from fakekafka.docs import cause_pictures, trace_questions
from fakekafka.docs.recorded import record
from fakekafka.tracing.web.page import write_page

ROOT = Path(__file__).resolve().parents[1]
_STORY_LINES = 16
_STARTED_MS = 1000


@dataclass(frozen=True)
class Moment:
    """A noteworthy place in a trace."""

    at: str
    text: str


@dataclass(frozen=True)
class Exhibit:
    """A trace of the gallery."""

    name: str
    title: str
    scenario: str
    version: str
    text: str
    story: str
    """The page of docs/stories about this run."""
    question: str
    at: str
    """Expression for the question's event, whose causes are drawn."""
    moments: tuple[Moment, ...]


EXHIBITS: tuple[Exhibit, ...] = (
    Exhibit(
        "leader-crash",
        "The leader crashes",
        "leader_crash_acks_all",
        "3.9",
        "The leader is killed while a producer with `acks=all` waits for its answer. The "
        "controller "
        "notices when the session expires, elects the follower, and the producer's next attempt is "
        "answered. Then the same happens at a worse moment: the follower has the record, and the "
        "producer does not know it.",
        "leader-crash.md",
        "Why did the producer wait eight seconds?",
        "kind == client_ok and why == 'offset 10'",
        (
            Moment("kind == crash", "The leader dies. Its requests break, and pings stop."),
            Moment("kind == expire", "Only now does its ZooKeeper session expire."),
            Moment(
                "change broker-3/orders-0/role if new == 'leader'",
                "The new leader begins epoch 1. Look at *State*: what changed is marked.",
            ),
            Moment(
                "kind == client_ok and why == 'offset 10'",
                "The producer has its answer. *Why* goes back to the crash.",
            ),
            Moment(
                "last kind == client_ok",
                "The batch that was sent twice: the leader knows its sequence number and appends "
                "nothing.",
            ),
        ),
    ),
    Exhibit(
        "unclean-election",
        "A replica that lags behind is elected",
        "unclean_election",
        "3.9",
        "The leader is the last member of the ISR, and it is killed. Unclean election is on, so "
        "the "
        "follower that lacks three acknowledged records is elected. The old leader comes back and "
        "cuts them off.",
        "unclean-election.md",
        "Why does a replica lead that was not in the ISR?",
        "change broker-3/orders-0/role if new == 'leader'",
        (
            Moment(
                "change broker-2/orders-0/isr if new == [2]",
                "The follower leaves the ISR: from here on records are acknowledged that it lacks.",
            ),
            Moment("kind == crash and actor == 'broker-2'", "The last member of the ISR dies."),
            Moment(
                "change broker-3/orders-0/role if new == 'leader'",
                "The election. In *Partitions* its log ends at 5, and the other one's at 8.",
            ),
            Moment(
                "change broker-2/orders-0/log_end_offset if old != None and new < old",
                "The old leader truncates: three acknowledged records are gone.",
            ),
        ),
    ),
    Exhibit(
        "kip-101-loss",
        "A follower throws away an acknowledged record",
        "kip_101_loss",
        "0.10",
        "Before KIP-101 a follower that starts cuts its log at its own high watermark, which is "
        "one "
        "fetch behind. Here the record it cuts off was acknowledged, and it is elected before it "
        "could fetch the record again.",
        "kip-101-loss.md",
        "Why did the old leader cut off an acknowledged record?",
        "change broker-4/orders-0/log_end_offset if old != None and new < old",
        (
            Moment(
                "kind == client_ok and why == 'offset 1' or "
                "type == ProduceResponse and partitions[0].base_offset == 1",
                "m1 is acknowledged: both have it, but only the leader's high watermark covers it.",
            ),
            Moment(
                "change broker-3/orders-0/log_end_offset if old != None and new < old",
                "The follower truncates to its high watermark, and m1 is gone from it.",
            ),
            Moment(
                "change broker-3/orders-0/role if new == 'leader'",
                "It is in the ISR, so it is elected when the leader dies.",
            ),
            Moment(
                "change broker-4/orders-0/log_end_offset if old != None and new < old",
                "The old leader comes back, must match the new one, and cuts m1, too.",
            ),
        ),
    ),
    Exhibit(
        "controlled-shutdown",
        "A leader is told to stop",
        "controlled_shutdown",
        "3.9",
        "A broker that is stopped in order asks the controller to move its leaderships first. "
        "Compare how long the partition has no leader here with the crash.",
        "controlled-shutdown.md",
        "Why did the leader move although no broker failed?",
        "change broker-3/orders-0/role if new == 'leader'",
        (
            Moment("type == ControlledShutdownRequest and kind == deliver", "The request."),
            Moment(
                "change broker-3/orders-0/role if new == 'leader'",
                "The other replica leads, a few milliseconds later.",
            ),
            Moment(
                "kind == stop and actor == 'broker-2'",
                "Only now is the broker gone; its session was closed and did not have to expire.",
            ),
            Moment(
                "last change broker-2/orders-0/role if new == 'leader'",
                "It is back, and a preferred leader election gives it the leadership again.",
            ),
        ),
    ),
    Exhibit(
        "split-controller",
        "A controller that does not know that it was replaced",
        "split_controller",
        "3.9",
        "The controller loses ZooKeeper, and another broker takes its place. A request of the old "
        "one arrives late. The brokers refuse it, because it has the smaller controller epoch.",
        "split-controller.md",
        "Why was the old controller refused?",
        "kind == deliver and error == 'STALE_CONTROLLER_EPOCH'",
        (
            Moment(
                "kind == hold and type == LeaderAndIsrRequest",
                "The request that will arrive late: it tells broker 4 to lead.",
            ),
            Moment(
                "kind == expire and peer == 'controller-1'", "The old controller's session is over."
            ),
            Moment(
                "change zk-1/znodes/controller if old == None and t > 5",
                "Broker 2 is the controller, with epoch 2.",
            ),
            Moment(
                "kind == release and type == LeaderAndIsrRequest",
                "The old request arrives while broker 3 leads.",
            ),
            Moment(
                "kind == deliver and error == 'STALE_CONTROLLER_EPOCH'",
                "It was refused. *Why* leads to the request of the new controller.",
            ),
        ),
    ),
)


@functools.cache
def recorded(name: str) -> tuple[bytes, Trace]:
    """Record an exhibit; return the content of the file, and the trace."""
    exhibit = next(exhibit for exhibit in EXHIBITS if exhibit.name == name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.fktrace"
        record(exhibit.scenario, exhibit.version, path)
        data = path.read_bytes()
    return data, _opened(data)


def _opened(data: bytes) -> Trace:
    with tempfile.NamedTemporaryFile(suffix=".fktrace") as file:
        file.write(data)
        file.flush()
        return open_trace(file.name)  # the trace keeps the deleted file open


def web_page(name: str) -> bytes:
    """Return the web page of an exhibit's trace."""
    _, trace = recorded(name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        write_page(trace.stored, path)
        return path.read_bytes()


def picture(exhibit: Exhibit) -> str:
    """Return the picture of the answer to an exhibit's question."""
    _, trace = recorded(exhibit.name)
    return cause_pictures.draw(exhibit.question, trace.why(exhibit.at))


def story_lines(trace: Trace) -> list[str]:
    """Return the story from the cluster's start on, shortened."""
    lines = [
        f"{time_ms:12.3f} ms  {text}"
        for time_ms, text in trace.story()
        if time_ms >= _STARTED_MS and ": state running" not in text
    ]
    more = len(lines) - _STORY_LINES
    return lines if more <= 0 else [*lines[:_STORY_LINES], f"... and {more} lines more"]


def page(exhibit: Exhibit) -> str:
    """Return the page of an exhibit in Markdown."""
    _, trace = recorded(exhibit.name)
    name, story = exhibit.name, Path(exhibit.story).stem
    file = f"{name}.fktrace"
    found = [(moment, trace.event(moment.at)) for moment in exhibit.moments]
    looks = [
        f"- [{event.time_us / 1e6:.3f} s]({name}-trace.html#s={event.seq}&p=Why){{target=_blank}} "
        f"{moment.text}"
        for moment, event in found
    ]
    return "\n".join(
        [
            f"# {exhibit.title}\n",
            f"{exhibit.text} [The story](../stories/{story}.md) tells it in full.\n",
            f"[Open the trace]({name}-trace.html)"
            "{ .md-button .md-button--primary target=_blank } "
            f"[Download it]({file}){{ .md-button download }}\n",
            f"![The replicas step by step](../stories/{exhibit.scenario}.svg)\n",
            "## What to look at\n",
            "Each link opens the trace at that event.\n",
            *looks,
            "",
            f"## {exhibit.question}\n",
            f"![{exhibit.question} The causes, from the first to the last]({name}.svg)\n",
            "```sh",
            f"fakekafka trace why {file} {trace_questions.quoted(exhibit.at)}",
            "```\n",
            "## What happened\n",
            "```text",
            *story_lines(trace),
            "```\n",
            "## The same run on your machine\n",
            "```sh",
            f"fakekafka run {exhibit.scenario} --kafka-version {exhibit.version} -o {file}",
            f"fakekafka trace verify {file}      # the same events again, byte for byte",
            f"fakekafka debug {file}             # step through it, and inject faults",
            f"fakekafka trace html {file} -o {name}-trace.html",
            "```",
            "",
        ]
    )


def index() -> str:
    """Return the first page of the gallery in Markdown."""
    lines = [
        "# Gallery",
        "",
        "Five runs to look at. Each is a trace, a file of some 40 kB that holds every message,",
        "every timer and every change of state, and a page that opens it in the browser.",
        "",
    ]
    for exhibit in EXHIBITS:
        _, trace = recorded(exhibit.name)
        lines += [
            f"## [{exhibit.title}]({exhibit.name}.md)",
            "",
            exhibit.text,
            "",
            f"{len(trace):,} events in {trace.duration_us / 1e6:.1f} virtual seconds, Kafka "
            f"{exhibit.version}. [Open it]({exhibit.name}-trace.html){{target=_blank}}",
            "",
        ]
    count = len(trace_questions.QUESTIONS)
    lines += [
        f"[{count} questions and their answers](questions.md) from these runs and others.",
        "",
    ]
    return "\n".join(lines)


def site_paths() -> list[str]:
    """Return the paths of all files that ``site_files`` returns."""
    kinds = (".md", ".svg", "-trace.html", ".fktrace")
    own = [f"gallery/{exhibit.name}{kind}" for exhibit in EXHIBITS for kind in kinds]
    return ["gallery/index.md", "gallery/questions.md", *own]


def site_files() -> dict[str, str | bytes]:
    """Return all files of the gallery by their path in the site's sources."""
    found: dict[str, str | bytes] = {
        "gallery/index.md": index(),
        "gallery/questions.md": trace_questions.page(),
    }
    for exhibit in EXHIBITS:
        found[f"gallery/{exhibit.name}.md"] = page(exhibit)
        found[f"gallery/{exhibit.name}.svg"] = picture(exhibit)
        found[f"gallery/{exhibit.name}-trace.html"] = web_page(exhibit.name)
        found[f"gallery/{exhibit.name}.fktrace"] = recorded(exhibit.name)[0]
    return found


def main(arguments: list[str]) -> int:
    """Write the traces and their pages, and verify each trace in another process."""
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(arguments[0]) if arguments else ROOT / "out" / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    for exhibit in EXHIBITS:
        path = folder / f"{exhibit.name}.fktrace"
        path.write_bytes(recorded(exhibit.name)[0])
        path.with_suffix(".html").write_bytes(web_page(exhibit.name))
        command = [sys.executable, "-m", "fakekafka.cli.main", "trace", "verify", str(path)]
        if subprocess.run(command, check=False).returncode:
            return 1
        print(f"open {path.with_suffix('.html')}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
