"""The runner of tests that clients keep in their repositories."""

from __future__ import annotations

import json
import os
import shutil
import sys
import urllib.request
from pathlib import Path

from . import checkouts, outputs
from .machine import Served, SuiteError, output, prepare
from .suite import FOLDER, Outcomes, Suite

_AIOKAFKA_FILES = (
    "admin",
    "client",
    "conn",
    "consumer",
    "coordinator",
    "fetcher",
    "helpers",
    "message_accumulator",
    "pep492",
    "producer",
    "sasl",
    "sender",
    "transactional_consumer",
    "transactional_producer",
)
"""Those with tests that need a broker; the others never leave the process."""
_CONFLUENT_FOLDERS = ("admin", "consumer", "producer", "serialization")
_THROTTLED = {
    "entity": [["client-id", "throttled_client"]],
    "changes": [["producer_byte_rate", 1000.0]],
}
_QUOTA = {"api": "AlterClientQuotas", "request": {"alterations": [_THROTTLED]}}
TOOLS = FOLDER / "programs" / "container.py"
_DOCKER = """#!/bin/sh
# "docker ps" and "docker exec ID bash -c COMMAND", without Docker.
case $1 in
ps) echo served ;;
exec) shift 4 && exec {python} {tools} "$@" ;;
esac
"""


def python_of(cache: Path, requirements: str, *packages: str) -> Path:
    """Return the interpreter of an environment with what a suite needs."""
    python = cache / "venv" / "bin" / "python"
    needed = (FOLDER / requirements).read_text() + "\n".join(packages)
    done = cache / "venv" / "installed"
    if not done.exists() or done.read_text() != needed:
        prepare([sys.executable, "-m", "venv", "--clear", cache / "venv"], cache)
        listed: list[str | Path] = ["-r", FOLDER / requirements, *packages]
        prepare([python, "-m", "pip", "install", "--quiet", *listed], cache)
        done.write_text(needed)
    return python


def pytest_outcomes(
    python: Path, source: Path, suite: Suite, tests: list[str], environment: dict[str, str]
) -> Outcomes:
    """Run files of tests in a folder and read the report."""
    report = source.parent / "report.xml"
    report.unlink(missing_ok=True)
    plain = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=120"]
    command: list[str | Path] = [python, *plain, f"--junit-xml={report}", *tests]
    written = output(command, source, suite.minutes * 60, environment)
    found = outputs.junit(report)
    if not found:
        raise SuiteError(f"pytest wrote no report:\n{written[-3000:]}")
    return found


def _ports(cluster: Served) -> dict[str, int]:
    return {name: int(at.rpartition(":")[2]) for name, at in cluster.listeners.items()}


def _plain_login(suite: Suite, cluster: Served) -> dict[str, str]:
    name, _, password = suite.user.partition(":")
    return {
        "bootstrap.servers": cluster.listeners["SASL_PLAINTEXT"],
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": name,
        "sasl.password": password,
    }


def _ask(cluster: Served, path: str, body: object) -> dict[str, str]:
    """Ask the control API."""
    data = json.dumps(body).encode()
    request = urllib.request.Request(f"{cluster.control_url}{path}", data, method="POST")
    with urllib.request.urlopen(request, timeout=20) as answer:
        told: dict[str, str] = json.load(answer)
    return told


def aiokafka(suite: Suite, cluster: Served) -> Outcomes:
    """Its tests with a broker; the fixture that starts a container gives ours instead."""
    source = checkouts.source(suite, "tests", "pyproject.toml")
    packages = f"aiokafka[lz4,snappy,zstd]=={suite.version}"
    python = python_of(source.parent, "aiokafka_requirements.txt", packages)
    shutil.copy(FOLDER / "programs" / "aiokafka_fixtures.py", source / "tests" / "served.py")
    with (source / "tests" / "conftest.py").open("a") as conftest:
        conftest.write("\nfrom .served import docker, kafka_server, kerberos_utils\n")
    told = _ask(cluster, "/client_certificates", {"common_name": "client"})
    certificates = source / "tests" / "ssl_cert"
    certificates.mkdir(exist_ok=True)
    (certificates / "ca.crt").write_text(told["ca_pem"])
    (certificates / "client.crt").write_text(told["certificate_pem"])
    (certificates / "client.key").write_text(told["key_pem"])
    served = {"ports": _ports(cluster), "tools": [sys.executable, str(TOOLS)]}
    environment = {
        "FAKEKAFKA_SERVED": json.dumps(served),
        "FAKEKAFKA_CONTAINER": json.dumps(_plain_login(suite, cluster)),
    }
    plain = ["--docker-image=aiolibs/kafka:2.13_2.8.1", "--no-pull", "-W", "ignore"]
    files = [f"tests/test_{name}.py" for name in _AIOKAFKA_FILES]
    return pytest_outcomes(python, source, suite, [*plain, *files], environment)


def aiokafka_virtual(suite: Suite, _cluster: Served) -> Outcomes:
    """The same tests in virtual time: their loop is that of a program, and nothing is served."""
    source = checkouts.source(suite, "tests", "pyproject.toml")
    needed = source.parent / "packages"
    if not (needed / "docker").exists():
        listed = ("--no-deps", "-r", str(FOLDER / "aiokafka_requirements.txt"))
        prepare(
            [sys.executable, "-m", "pip", "install", "--quiet", "--target", needed, *listed], source
        )
    shutil.copy(FOLDER / "programs" / "aiokafka_virtual.py", source / "tests" / "virtual.py")
    with (source / "tests" / "conftest.py").open("a") as conftest:
        names = (
            "acl_manager, docker, kafka_config, kafka_server, kerberos_utils, loop, "
            "new_event_loop, ssl_folder"
        )
        conftest.write(f"\nfrom .virtual import {names}\n")
    plain = ["--docker-image=aiolibs/kafka:2.13_2.8.1", "--no-pull", "-W", "ignore"]
    plain += ["-p", "no:fakekafka"]
    files = [f"tests/test_{name}.py" for name in _AIOKAFKA_FILES]
    python = Path(sys.executable)
    environment = {"PYTHONPATH": str(needed)}
    return pytest_outcomes(python, source, suite, [*plain, *files], environment)


def confluent(suite: Suite, cluster: Served) -> Outcomes:
    """Its tests with a broker and without a schema registry, the older ones too."""
    source = checkouts.source(suite, "tests")
    packages = f"confluent-kafka[avro,schemaregistry]=={suite.version}"
    python = python_of(source.parent, "confluent_requirements.txt", packages)
    (source / "trivup" / "clusters").mkdir(parents=True, exist_ok=True)
    stand_in = FOLDER / "programs" / "trivup_cluster.py"
    shutil.copy(stand_in, source / "trivup" / "clusters" / "KafkaCluster.py")
    environment = {
        "BROKERS": cluster.bootstrap,
        "FAKEKAFKA_SERVED": json.dumps(_plain_login(suite, cluster)),
        "PYTHONPATH": str(source),
    }
    folders = [f"tests/integration/{name}" for name in _CONFLUENT_FOLDERS]
    plain = ["-o", "asyncio_mode=auto", "-W", "ignore"]
    found = pytest_outcomes(python, source, suite, [*plain, *folders], environment)
    _ask(cluster, "/brokers/1/ask", _QUOTA)
    program = FOLDER / "programs" / "confluent_old.py"
    written = output([python, program, cluster.bootstrap], source, suite.minutes * 60, environment)
    return {**found, **outputs.steps(written)}


def kafkajs(suite: Suite, cluster: Served) -> Outcomes:
    """Its tests; the ports of its brokers are written in them."""
    source = checkouts.source(suite)
    cache = source.parent
    shutil.copy(source / "package.json", cache)
    shutil.copy(source / "yarn.lock", cache)
    if not (cache / "node_modules" / ".bin" / "jest").exists():
        prepare(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"], cache)
    programs = cache / "bin"
    programs.mkdir(exist_ok=True)
    docker = programs / "docker"
    docker.write_text(_DOCKER.format(python=sys.executable, tools=TOOLS))
    docker.chmod(0o755)
    environment = {
        "FAKEKAFKA_CONTAINER": json.dumps({"bootstrap.servers": cluster.bootstrap}),
        "JEST_JUNIT_OUTPUT_DIR": str(cache),
        "KAFKAJS_DEBUG_PROTOCOL_BUFFERS": "1",
        "KAFKA_VERSION": "2.4",
        "NODE_ENV": "test",
        "NODE_OPTIONS": "--dns-result-order=ipv4first",
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
    }
    prepare(["bash", source / "scripts" / "createScramCredentials.sh"], source, **environment)
    report = cache / "report.json"
    report.unlink(missing_ok=True)
    plain = ["--ci", "--maxWorkers=2", "--no-watchman", "--forceExit", "--json"]
    command: list[str | Path] = [
        cache / "node_modules" / ".bin" / "jest",
        *plain,
        f"--outputFile={report}",
    ]
    written = output(command, source, suite.minutes * 60, environment)
    found = outputs.jest(report, source)
    if not found:
        raise SuiteError(f"jest wrote no report:\n{written[-3000:]}")
    return found
