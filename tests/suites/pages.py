"""Programs of the documents in other languages than Python, run as a reader would run them."""

from __future__ import annotations

from pathlib import Path

from fakekafka.tests.support.paths import own_programs
from fakekafka.tests.support.ports import free_port

from .machine import Served, output
from .suite import FOLDER, Outcome, Outcomes, Result

_ROOT = FOLDER.parents[1]
_TIMEOUT_S = 60.0
_ENDED = "process.on('exit', code => console.log(`ended with ${code}`))\n"


def program(page: str, language: str) -> str:
    """Return the first program of a page that is written in a language."""
    text = (_ROOT / page).read_text(encoding="utf-8")
    return text.split(f"```{language}\n", 1)[1].split("```\n", 1)[0]


def kafkajs(cluster: Served, folder: Path) -> Outcomes:
    """Run the README's program on a served cluster, and the guide's, which serves its own."""
    readme = program("README.md", "js").replace("127.0.0.1:9092", cluster.bootstrap.split(",")[0])
    guide = program("docs/guides/other-languages.md", "javascript")
    guide = guide.replace("8080", str(free_port()))
    found = {}
    for name, code, said in (
        ("the program of the README", readme, ["paid", "ended with 0"]),
        ("the program of the guide to other languages", guide, ["ended with 0"]),
    ):
        file = folder / "page.js"
        file.write_text(_ENDED + code)
        environment = {**own_programs(), "KAFKAJS_NO_PARTITIONER_WARNING": "1"}
        written = output(["node", file], folder, _TIMEOUT_S, environment)
        lines = [line for line in written.splitlines() if not line.startswith("{")]
        is_right = lines == said
        found[name] = Outcome(Result.PASSED) if is_right else Outcome(Result.FAILED, written[-300:])
    return found


_JAVA = """
import java.net.URI;
import java.net.http.*;
import java.nio.file.*;

public class Page {
    public static void main(String[] arguments) throws Exception {
        Runtime.getRuntime().addShutdownHook(new Thread(
            () -> ProcessHandle.current().children().forEach(ProcessHandle::destroy)));
%s
        process.destroy();
        System.exit(process.waitFor());
    }
}
"""


def java(folder: Path) -> Outcomes:
    """Run the Java lines of the guide, as the body of a program."""
    file = folder / "Page.java"
    guide = program("docs/guides/other-languages.md", "java")
    file.write_text(_JAVA % guide.replace("8080", str(free_port())))
    (folder / "ready.json").unlink(missing_ok=True)
    written = output(["java", file], folder, _TIMEOUT_S, own_programs())
    has_served = "bootstrap.servers=" in written
    is_right = has_served and "Exception" not in written and "error" not in written
    result = Outcome(Result.PASSED) if is_right else Outcome(Result.FAILED, written[-300:])
    return {"the Java lines of the guide to other languages": result}
