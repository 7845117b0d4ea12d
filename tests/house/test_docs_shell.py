"""The ```bash blocks that use the control port run, in the order of their page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from fakekafka.tests.support.paths import ROOT, own_programs
from fakekafka.tests.support.ports import free_port

_BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_STRICT = """set -eu
curl() { command curl --fail-with-body --silent --show-error --max-time 20 "$@"; echo; }
"""
_SERVED = """
until [ -e ready.json ]; do sleep 0.02; done
"""


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={**os.environ, **own_programs()},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_the_curl_commands_of_the_pages_are_answered_by_the_server_that_the_guide_starts(
    tmp_path: Path,
) -> None:
    """A refusal or an error of the server ends the script."""
    if not (shutil.which("curl") and shutil.which("bash")):
        pytest.skip("the machine lacks curl or bash")
    guide = (ROOT / "docs/guides/other-languages.md").read_text(encoding="utf-8")
    reference = (ROOT / "docs/reference/control-api.md").read_text(encoding="utf-8")
    start, *orders = _BLOCK.findall(guide)
    serve = next(line for line in start.splitlines() if line.startswith("fakekafka serve"))
    assert len(orders) == 2
    pages, fields = _BLOCK.findall(reference)
    script = "\n".join(
        [
            _STRICT,
            f"{serve} >serve.txt 2>&1 &",
            "trap 'kill $!' EXIT",
            _SERVED,
            *orders,
            pages,
            fields,
        ]
    )
    done = run(script.replace("8080", str(free_port())), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    answers = [line for line in done.stdout.splitlines() if line]
    assert len(answers) == script.count("\ncurl ")
    assert '"leader"' in answers[0]
    assert '"brokers"' in answers[-3]


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_the_debugger_takes_the_commands_that_its_guide_pipes_in(tmp_path: Path) -> None:
    guide = (ROOT / "docs/guides/debugger.md").read_text(encoding="utf-8")
    (piped,) = (block for block in _BLOCK.findall(guide) if "printf" in block)
    done = run(piped.removeprefix("$ "), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "killed" in done.stdout
